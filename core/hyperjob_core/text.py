"""Common formats of text: shortened lists, cut texts, control characters, durations.

The standard library only.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

_CONTROL: Final = re.compile(
    "["
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and newline, DEL and C1: a terminal obeys them
    r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # Unicode's bidi controls reverse text
    # Characters without a glyph hide text in a name, or make two names look alike: fillers, zero
    # width, invisible operators, annotations, tags. The two selectors of emoji stay.
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    r"\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)

_LONG: Final = 40


def listed(names: Sequence[str], *, shown: int = 3) -> str:
    """Return the first `shown` names, with the number of the others."""
    hidden = len(names) - shown
    text = ", ".join(names[:shown])
    return f"{text} and {hidden} more" if hidden > 0 else text


def alike(texts: Iterable[tuple[str, str]]) -> Sequence[str]:
    """Return one text for all names with an equal text: "each of a, b and 1 more lacks 8 cpu"."""
    names: dict[str, list[str]] = {}
    for name, text in texts:
        names.setdefault(text, []).append(name)
    return [
        f"{each[0]} {text}" if len(each) == 1 else f"each of {listed(each)} {text}"
        for text, each in names.items()
    ]


def shortened(text: str, limit: int) -> str:
    """Return a text cut to `limit` characters, with an ellipsis if it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def once(texts: Sequence[str]) -> list[str]:
    """Return the texts, where a repeated long text becomes "as above"."""
    seen: set[str] = set()
    written = []
    for text in texts:
        written.append("as above" if text in seen and len(text) > _LONG else text)
        seen.add(text)
    return written


def printable(text: str) -> str:
    r"""Return a text with control and invisible characters as `\u001b`, except tabs and newlines.

    Inside a string of JSON the result has the same meaning: a character above U+FFFF becomes two
    surrogates.
    """
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    """Return the JSON escapes of a character, two for one above U+FFFF."""
    units = found[0].encode("utf-16-be")
    return "".join(
        f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)
    )


def human_duration(seconds: float) -> str:
    """Return a duration as kubectl prints ages: two units at most, coarser the longer it is."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"


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
