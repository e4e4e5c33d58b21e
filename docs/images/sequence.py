"""Draw a sequence diagram as SVG from a few lines of text.

`python docs/images/sequence.py FILE.seq…` writes FILE.svg beside each. In a FILE.seq, `title: TEXT`
names the picture, `parts: A | B | C` its columns, `== TEXT` starts a chapter, `A -> B: TEXT` is a
call, `A --> B: TEXT` an answer or a watch event, and `A: TEXT` a note.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import escape

COLUMN: Final = 190
MARGIN: Final = 95
ROW: Final = 34
TOP: Final = 64

_ARROW: Final = re.compile(r"^(?P<source>[^:>]+?) (?P<line>--?>) (?P<target>[^:]+): (?P<text>.+)$")
_NOTE: Final = re.compile(r"^(?P<part>[^:]+): (?P<text>.+)$")

_STYLE: Final = (
    ".box{fill:#e8f0ff;stroke:#2a5bd7;stroke-width:1.5}.life{stroke:#99a;stroke-dasharray:3 4}"
    ".call{stroke:#446;stroke-width:1.5;marker-end:url(#tip)}"
    ".back{stroke:#2b8a3e;stroke-width:1.5;stroke-dasharray:5 4;marker-end:url(#tip)}"
    ".note{fill:#fff8e1;stroke:#c9a227}.chapter{fill:#f1f3f5}"
    ".t{font-weight:600;fill:#112}.s{font-size:12.5px;fill:#334}"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """An element of an SVG: its name, attributes and text, and the elements in it."""

    name: str
    at: Mapping[str, str | int]
    text: str = ""
    inside: Iterable["Shape"] = ()

    def __str__(self) -> str:
        at = "".join(f' {name}="{escape(value)}"' for name, value in self.at.items())
        inside = "".join(map(str, self.inside))
        return f"<{self.name}{at}>{escape(self.text)}{inside}</{self.name}>"


_TIP: Final = Shape(
    "marker",
    {"id": "tip", "viewBox": "0 0 10 10", "refX": 9, "refY": 5, "markerWidth": 7}
    | {"markerHeight": 7, "orient": "auto-start-reverse"},
    inside=[Shape("path", {"d": "M0 0 10 5 0 10z", "fill": "#446"})],
)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A diagram as read: title, columns, and its lines in order."""

    title: str
    parts: tuple[str, ...]
    lines: tuple[str, ...]


def read(text: str) -> Sequence:
    """Read a diagram; raises ValueError with the line that cannot be understood."""
    title, parts, lines = "", (), []
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("title: "):
            title = line.removeprefix("title: ")
        elif line.startswith("parts: "):
            parts = tuple(part.strip() for part in line.removeprefix("parts: ").split("|"))
        else:
            lines.append(line)
    return Sequence(title, parts, tuple(lines))


def draw(sequence: Sequence) -> str:
    """Return the SVG."""
    width = MARGIN * 2 + COLUMN * (len(sequence.parts) - 1)
    height = TOP + ROW * len(sequence.lines) + 24
    where = {part: MARGIN + COLUMN * number for number, part in enumerate(sequence.parts)}
    shapes = [
        Shape("title", {}, sequence.title),
        Shape("defs", {}, inside=[_TIP, Shape("style", {}, _STYLE)]),
        Shape("rect", {"width": width, "height": height, "fill": "#fff"}),
    ]
    for part, x in where.items():
        shapes += [
            Shape("line", {"class": "life", "x1": x, "y1": 44, "x2": x, "y2": height - 8}),
            _box("box", x - 80, 12, 160, 32),
            _text(x, 33, part, "t"),
        ]
    for number, line in enumerate(sequence.lines):
        shapes += _line(line, where, TOP + ROW * number + 18, width)
    box = f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="14"'
    drawn = "\n".join(map(str, shapes))
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>\n{drawn}\n</svg>\n'


def _line(line: str, where: dict[str, int], y: int, width: int) -> list[Shape]:
    if line.startswith("== "):
        title = Shape("text", {"class": "t", "x": 18, "y": y - 1}, line[3:])
        return [_box("chapter", 8, y - 18, width - 16, 24), title]
    arrow = _ARROW.match(line)
    if arrow:
        start, end = _at(where, arrow["source"], line), _at(where, arrow["target"], line)
        kind = "back" if arrow["line"] == "-->" else "call"
        return [
            Shape("line", {"class": kind, "x1": start, "y1": y, "x2": end, "y2": y}),
            _text((start + end) // 2, y - 6, arrow["text"], "s"),
        ]
    note = _NOTE.match(line)
    if note is None:
        raise ValueError(f"cannot understand {line!r}")
    x, half = _at(where, note["part"], line), max(60, len(note["text"]) * 15 // 4)
    x = min(max(x, half + 6), width - half - 6)
    return [_box("note", x - half, y - 17, half * 2, 24), _text(x, y - 1, note["text"], "s")]


def _box(style: str, x: int, y: int, width: int, height: int) -> Shape:
    place = {"x": x, "y": y, "width": width, "height": height}
    return Shape("rect", {"class": style, **place, "rx": 6 if height > 24 else 4})


def _at(where: dict[str, int], part: str, line: str) -> int:
    if part not in where:
        raise ValueError(f"{line!r}: no part is called {part!r}")
    return where[part]


def _text(x: int, y: int, text: str, style: str) -> Shape:
    return Shape("text", {"class": style, "x": x, "y": y, "text-anchor": "middle"}, text)


def main() -> None:
    """Draw every file named."""
    for name in sys.argv[1:]:
        source = Path(name)
        target = source.with_suffix(".svg")
        target.write_text(draw(read(source.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
