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


_REASONS: Final[Mapping[str, str]] = {"NoProgress": "bold red", "SlowProgress": "yellow"}
"""The colours of what runs, and trains badly."""


def phase(name: str, reason: str = "") -> Text:
    """Return a phase in its colour, or in that of its reason."""
    return Text(name, style=_REASONS.get(reason, _STYLES.get(name, "")))


def dim(text: str) -> Text:
    """Return a text in a dim style, for details."""
    return Text(text, style="dim")
