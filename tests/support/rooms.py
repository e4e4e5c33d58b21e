"""The rooms of the product: each import package, and the folder that has it."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
BELOW: Final = (
    "page",
    "core",
    "engine",
    "queueing",
    "rules",
    "install",
    "webhook",
    "controller",
    "certs",
    "trainjobs",
)
"""The rooms that `hyperjob`, the room of what a person types, imports."""
ROOMS: Final = ("hyperjob", *BELOW)
PACKAGES: Final = {
    "hyperjob": ROOT / "hyperjob",
    **{f"hyperjob_{room}": ROOT / room / f"hyperjob_{room}" for room in BELOW},
}


def module_of(path: Path) -> str:
    """Return the name by which a file of the product is imported."""
    for name, folder in PACKAGES.items():
        if path.is_relative_to(folder):
            return ".".join((name, *path.relative_to(folder).with_suffix("").parts))
    raise ValueError(path)
