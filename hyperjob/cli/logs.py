"""`hyperjob logs`: the logs of a HyperJob's pods, from all their clusters.

The command reads several logs at a time through Karmada's cluster proxy, and prints each line as
it arrives, behind the names of its cluster, pod and container.
"""

import json
import re
import sys
from contextlib import aclosing
from dataclasses import replace

import click
from rich.console import Console
from rich.text import Text

from hyperjob.cli.files import gathered
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import (
    DURATION,
    Access,
    access,
    container_option,
    name_argument,
    pod_options,
)
from hyperjob.cli.kubectl.exits import Code, run
from hyperjob.cli.kubectl.terminal import untouched
from hyperjob.client.logs.choosing import ContainerLog, Wanted
from hyperjob.client.logs.following import Following
from hyperjob.client.logs.reading import ChosenLogs, kept_lines
from hyperjob.client.summary import read
from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.lines import LogLine
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.text import printable


@click.command()
@name_argument(trainjobs=True)
@access()
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Stream new lines, also of pods that start later, until the HyperJob ends.",
)
@pod_options
@container_option
@click.option(
    "--all-containers", is_flag=True, help="Print the logs of every container of each pod."
)
@click.option(
    "--tail",
    type=click.IntRange(min=-1),
    metavar="N",
    help="Number of last lines of each container; -1 for all.  [default: 10, or all of a single"
    " container]",
)
@click.option(
    "--since", type=DURATION, metavar="DURATION", help="Only lines newer than this, such as 10m."
)
@click.option(
    "-p",
    "--previous",
    is_flag=True,
    help="Print the log of the container from before its last restart.",
)
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print the last lines of the containers that failed in this attempt of their sub-job, from"
    " 1, also after later restarts.",
)
@click.option("--timestamps", is_flag=True, help="Print a timestamp before each line.")
@click.option(
    "--prefix/--no-prefix",
    default=True,
    show_default=True,
    help="Print cluster and pod before each line.",
)
@click.option("--progress", is_flag=True, help="Print progress lines and stacks too.")
@out.output(out.JSON)
@gathered("wanted", Wanted)
def logs(
    name: str,
    access: Access,
    follow: bool,
    wanted: Wanted,
    timestamps: bool,
    prefix: bool,
    progress: bool,
    form: str,
) -> None:
    """Print the logs of a HyperJob's pods from all clusters.

    Without -f, the command prints the lines in the order of their times. With -f, it prints lines
    as they come, also of pods that start or restart later, until the HyperJob, or all of --job,
    has ended.

    Progress lines and stacks, which the controller reads, are hidden without --progress or -o json.

    With --attempt, it prints what the status keeps of an attempt that is over, such as a traceback.

    Example: kubectl hyperjob logs llm-training --job trainer-0 --tail 20
    """
    if wanted.container and wanted.all_containers:
        raise click.UsageError("give --container or --all-containers, not both")
    if follow and wanted.previous:
        raise click.UsageError("give --follow or --previous, not both")
    if wanted.attempt is not None and (follow or wanted.previous):
        raise click.UsageError("give --attempt, or --follow or --previous, not both")
    shown = replace(wanted, hides=not (progress or form == out.JSON))

    async def show() -> None:
        async with access.connect() as kube:
            summary = read(await kube.get(HYPERJOBS, name, namespace=access.home(kube)))
            kept = kept_lines(summary, shown)
            printer = Printer(
                prefix=prefix,
                timestamps=timestamps or kept is not None,
                as_json=form == out.JSON,
            )
            for source, line in kept or ():
                printer.print(source, line)
            if kept is not None:
                return
            found = (
                Following(kube, summary, shown, say=out.remark)
                if follow
                else await ChosenLogs.of(kube, summary, shown, say=out.remark)
            )
            async with aclosing(found.lines()) as lines:
                async for source, line in lines:
                    printer.print(source, line)
        if hidden := found.reader.hidden:
            out.remark(f"hidden lines of progress and stacks: {hidden}; see --progress")
        if found.failed:
            raise SystemExit(Code.FAILED)

    run(show())


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
