"""Add the name that a misspelt name was probably meant to be to an error."""

from collections.abc import Iterable

from hyperjob.text import nearest

__all__ = ["did_you_mean", "nearest"]


def did_you_mean(value: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?`, or nothing where no known name is near."""
    match = nearest(value, known)
    return f'; did you mean "{match}"?' if match and match != value else ""
