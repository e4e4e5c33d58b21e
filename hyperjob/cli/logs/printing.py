"""Print lines of logs behind the name of where they come from."""

import json

from rich.console import Console
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.client.logs.choosing import Source

_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")


class Printer:
    """Prints lines as text, each cluster in a colour of its own, or as a JSON document each."""

    def __init__(self, *, prefix: bool, as_json: bool) -> None:
        self._styles: dict[str, str] = {}
        self._prefix = prefix
        self._json = as_json
        self._console: Console = out.console()

    def print(self, source: Source, line: bytes) -> None:
        """Print one line as it is; what is no UTF-8 is shown as such."""
        text = line.decode(errors="replace").rstrip("\r")
        if self._json:
            entry = {
                "cluster": source.cluster,
                "pod": source.pod,
                "container": source.container,
                "line": text,
            }
            self._console.out(json.dumps(entry, ensure_ascii=False), highlight=False)
            return
        if not self._console.is_terminal:
            self._console.out(f"[{source.label}] {text}" if self._prefix else text, highlight=False)
            return
        head = Text(f"[{source.label}] " if self._prefix else "")
        colour = _COLOURS[len(self._styles) % len(_COLOURS)]
        head.stylize(self._styles.setdefault(source.cluster, colour))
        # a log may bring colours of its own
        self._console.print(head.append_text(Text.from_ansi(text)), soft_wrap=True)
