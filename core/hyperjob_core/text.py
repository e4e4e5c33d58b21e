"""Common formats of text: shortened lists, cut texts, control characters, durations.

The standard library only.
"""

import re
from collections.abc import Iterable, Sequence
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
_DIGITS: Final = re.compile(r"([0-9]+)")


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


def in_order(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts names as people count: gpu-2 comes before gpu-10."""
    parts = _DIGITS.split(name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
