"""Markdown tables of generated pages.

The standard library only.
"""

from collections.abc import Iterator


def table(*heads: str) -> Iterator[str]:
    """Yield the first two lines of a table."""
    yield row(*heads)
    yield row(*("---" for _ in heads))


def row(*cells: str) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
