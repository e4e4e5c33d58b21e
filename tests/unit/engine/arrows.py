"""The table of phases in the documentation, as tests read it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PAGE: Final = Path(__file__).parents[3] / "docs/lifecycle.md"
NEW: Final = "new"


@dataclass(frozen=True)
class Arrow:
    """One row: phases that lead into another one, and the name of the case that shows it."""

    into: str
    origins: tuple[str, ...]
    case: str


def arrows() -> tuple[Arrow, ...]:
    """Read the rows of the table of arrows."""
    text = _PAGE.read_text().partition("## Every transition")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith(("| into", "| ---"))
    ]
    return tuple(
        Arrow(into, tuple(name.strip() for name in origins.split(",")), case)
        for into, origins, _, case in rows
    )


def pairs() -> frozenset[tuple[str, str]]:
    """Give every allowed change of phase."""
    return frozenset((origin, arrow.into) for arrow in arrows() for origin in arrow.origins)
