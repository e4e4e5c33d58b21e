"""Words that every part says in the same way: lists that name the first few, texts cut to a limit.

The standard library only.
"""

from collections.abc import Sequence


def listed(names: Sequence[str], *, shown: int = 3) -> str:
    """Name the first `shown`, and say how many more there are."""
    hidden = len(names) - shown
    told = ", ".join(names[:shown])
    return f"{told} and {hidden} more" if hidden > 0 else told


def shortened(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, and show that it was."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
