"""Guess what a misspelt name was meant to be.

A hint only: it is added to an error that stands without it.
"""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(value: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one is nearest to, if it is near enough."""
    if not value or len(value) > 64:
        return None
    folded = {name.casefold(): name for name in known}
    matches = get_close_matches(value.casefold(), folded, n=1, cutoff=0.7)
    return folded[matches[0]] if matches else None


def did_you_mean(value: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?`, or nothing where nothing is near."""
    match = nearest(value, known)
    return f'; did you mean "{match}"?' if match and match != value else ""
