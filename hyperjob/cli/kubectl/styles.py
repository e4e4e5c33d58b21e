"""The colours of phases in all commands."""

from collections.abc import Mapping
from typing import Final

from rich.text import Text

_STYLES: Final[Mapping[str, str]] = {
    "Pending": "yellow",
    "Queued": "yellow",
    "Unplaced": "yellow",
    "Placed": "cyan",
    "Starting": "cyan",
    "Running": "bold cyan",
    "Degraded": "bold red",
    "Restarting": "magenta",
    "Stopping": "dim",
    "Suspended": "dim",
    "Completed": "bold green",
    "Succeeded": "bold green",
    "Failed": "bold red",
    "Aborted": "bold red",
    "Terminated": "bold red",
    "Terminating": "dim",
}


def phase(name: str) -> Text:
    """Return a phase in its colour."""
    return Text(name, style=_STYLES.get(name, ""))


def dim(text: str) -> Text:
    """Return a text in a dim style, for details."""
    return Text(text, style="dim")
