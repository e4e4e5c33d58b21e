"""Suggestions for misspelt names in error messages ("did you mean ...").

The cost is bounded for any number of wrong and of known names.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

MAX_LENGTH: Final = 64
"""The greatest length of a name with a suggestion, and of the suggestion."""
MAX_KNOWN: Final = 1000
"""The number of known names with which a wrong name is compared."""
MAX_HINTS: Final = 32
"""The number of wrong names with a suggestion in one review."""
MAX_COMPARED: Final = 100_000
"""The number of compared letter pairs in one review; common prefixes and suffixes are free."""
_TYPO: Final = 0.15
_FAR: Final = 0.3
"""The ratio of edits to the letters of both names from which on two names are not similar."""


class Hints:
    """The suggestions for one object, within the limits."""

    __slots__ = ("compared", "made")

    def __init__(self) -> None:
        self.made = 0
        self.compared = 0

    def nearest(self, value: str, known: Iterable[str]) -> str | None:
        """Return the known name that is most similar to a misspelt one; None if none is similar.

        The measure is the number of letters that are missing, added, or exchanged with their
        neighbour, regardless of case; of equally similar names the first is the result.
        """
        if not 0 < len(value) <= MAX_LENGTH or self.made >= MAX_HINTS:
            return None
        self.made += 1
        wrong, best, least = value.casefold(), None, MAX_LENGTH
        for name in islice(known, MAX_KNOWN):
            limit = min(least, int(_FAR * (len(name) + len(value))) + 1)
            if abs(len(name) - len(value)) >= limit or len(name) > MAX_LENGTH:
                continue
            if self.compared >= MAX_COMPARED:
                break
            one, other = _apart(wrong, name.casefold())
            self.compared += len(one) * len(other)
            found = _edits(one, other, limit)
            if found < limit:
                best, least = name, found
        return best

    def did_you_mean(self, value: str, known: Iterable[str]) -> str:
        """Return `; did you mean "x"?`; empty if no name is similar."""
        match = self.nearest(value, known)
        return suggestion(match if match != value else None)


def suggestion(name: str | None) -> str:
    """Return `; did you mean "x"?`; empty without a name."""
    return f'; did you mean "{name}"?' if name else ""


def nearest(value: str, known: Iterable[str]) -> str | None:
    """Return `Hints.nearest` without a shared limit, for names that are few and fixed."""
    return Hints().nearest(value, known)


def did_you_mean(value: str, known: Iterable[str]) -> str:
    """Return `Hints.did_you_mean` without a shared limit, for names that are few and fixed."""
    return Hints().did_you_mean(value, known)


def is_typo(value: str, name: str) -> bool:
    """Return whether a text is a name with few wrong letters, regardless of case.

    Of the letters of both, at most 15 % are missing, added, or exchanged with their neighbour.
    """
    limit = int(_TYPO * (len(value) + len(name))) + 1
    if abs(len(value) - len(name)) >= limit or len(value) > MAX_LENGTH:
        return False
    return _edits(*_apart(value.casefold(), name.casefold()), limit) < limit


def _apart(one: str, other: str) -> tuple[str, str]:
    """Return two texts without their common prefix and suffix."""
    start, shorter = 0, min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    end = 0
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return one[start : len(one) - end], other[start : len(other) - end]


def _edits(one: str, other: str, limit: int) -> int:
    """Return the edits from one text to another, or `limit` if they are as many or more."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, char in enumerate(one, start=1):
        row = [i]
        for j, letter in enumerate(other, start=1):
            edits = last[j - 1] if char == letter else 1 + min(last[j], row[j - 1])
            if i > 1 and j > 1 and char == other[j - 2] and one[i - 2] == letter:
                edits = min(edits, before[j - 2] + 1)
            row.append(edits)
        if min(row) >= limit:
            return limit
        before, last = last, row
    return min(last[-1], limit)
