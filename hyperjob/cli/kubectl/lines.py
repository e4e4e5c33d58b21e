"""Trees as lines of text with guides. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of a tree, and the nodes below it."""

    text: Text
    children: Sequence["TreeLine"] = ()


def draw(node: TreeLine) -> list[Text]:
    """Draw a tree, its root without a guide."""
    lines = [node.text]
    for position, child in enumerate(node.children):
        last = position == len(node.children) - 1
        first, *rest = draw(child)
        lines.append(Text("└─ " if last else "├─ ", style="dim").append_text(_plain(first)))
        guide = "   " if last else "│  "
        lines += [Text(guide, style="dim").append_text(_plain(line)) for line in rest]
    return lines


def _plain(line: Text) -> Text:
    """Return a line that keeps its own style behind a guide, which is dim."""
    return Text(style="not dim").append_text(line) if not line.style else line
