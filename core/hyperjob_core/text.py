"""Common formats of text: shortened lists, cut texts, control characters, durations.

The standard library only.
"""

import re
from collections.abc import Sequence
from typing import Final

# C0 except tab and newline, DEL and C1, line and paragraph separators, and Unicode's bidi controls,
# which reverse text: a terminal obeys them, or shows another text.
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)

_LONG: Final = 40


def listed(names: Sequence[str], *, shown: int = 3) -> str:
    """Return the first `shown` names, with the number of the others."""
    hidden = len(names) - shown
    text = ", ".join(names[:shown])
    return f"{text} and {hidden} more" if hidden > 0 else text


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
    r"""Return a text with control characters as `\u001b`, except tabs and newlines.

    Inside a string of JSON the result has the same meaning.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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
