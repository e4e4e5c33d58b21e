"""Words that every part prints alike: lists that name the first few, cut texts, durations, hints.

The standard library only.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def listed(names: Sequence[str], *, shown: int = 3) -> str:
    """Name the first `shown`, and say how many more there are."""
    hidden = len(names) - shown
    told = ", ".join(names[:shown])
    return f"{told} and {hidden} more" if hidden > 0 else told


def shortened(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, and show that it was."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def nearest(value: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one is nearest to; None where no name is near.

    Of several near names, the name with the fewest edits wins: `gpu-esat` is `gpu-east`.
    """
    if not value or len(value) > 64:
        return None
    folded = {name.casefold(): name for name in known}
    wanted = value.casefold()
    matches = get_close_matches(wanted, folded, n=5, cutoff=0.7)
    best = min(matches, key=lambda name: _edits(wanted, name), default=None)
    return None if best is None else folded[best]


def _edits(left: str, right: str) -> int:
    """Count insertions, deletions, replacements and swaps of neighbours (optimal alignment)."""
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, a in enumerate(left):
        row = [i + 1]
        for j, b in enumerate(right):
            cost = min(row[j] + 1, last[j + 1] + 1, last[j] + (a != b))
            if i and j and a == right[j - 1] and left[i - 1] == b:
                cost = min(cost, before[j - 1] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def human_duration(seconds: float) -> str:
    """Print a span as kubectl prints ages: two units at most, coarser the longer it is."""
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
