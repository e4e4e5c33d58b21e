"""Print lines of logs, each behind the names of its cluster, pod and container."""

import json
import re
import sys

import click
from rich.console import Console
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.escaping import untouched
from hyperjob.client.logs.choosing import ContainerLog
from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.lines import LogLine
from hyperjob_core.text import printable

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
"""Colours in a log stay."""
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")


class Printer:
    """Prints lines as text with a colour for each cluster, or each line as a JSON object."""

    def __init__(self, *, prefix: bool, timestamps: bool, as_json: bool) -> None:
        self._styles: dict[str, str] = {}
        self._prefix = prefix
        self._timestamps = timestamps
        self._json = as_json
        self._console: Console = out.console()
        self._raw = not self._console.is_terminal

    def print(self, source: ContainerLog, timed: bytes) -> None:
        """Print one line behind its time; a terminal gets escaped controls, except colours.

        Bytes that are not UTF-8 are printed as U+FFFD, except into a pipe.
        """
        found = LogLine.of(timed)
        line = timed if self._timestamps else found.text
        text = line.decode(errors="replace").rstrip("\r")
        if self._json:
            entry = {
                "cluster": source.cluster,
                "pod": source.pod,
                "container": source.container,
                "line": text,
                **({"rank": source.rank} if source.rank is not None else {}),
                **({"time": micro_time(found.moment)} if found.time else {}),
            }
            click.echo(json.dumps(entry, ensure_ascii=False))
            return
        if self._raw:
            before = f"[{source.label}] ".encode() if self._prefix else b""
            click.echo(before + line, file=untouched(sys.stdout))
            return
        head = Text(f"[{source.label}] " if self._prefix else "")
        colour = _COLOURS[len(self._styles) % len(_COLOURS)]
        head.stylize(self._styles.setdefault(source.cluster, colour))
        parts = _COLOUR.split(text)
        parts[::2] = map(printable, parts[::2])
        shown = Text.from_ansi("".join(parts))
        self._console.print(head.append_text(shown), soft_wrap=True)
