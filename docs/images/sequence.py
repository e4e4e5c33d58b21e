"""Draw a sequence diagram as SVG from a few lines of text.

`python docs/images/sequence.py FILE.seq…` writes FILE.svg beside each. In a FILE.seq, `title: TEXT`
names the picture, `parts: A | B | C` its columns, `== TEXT` starts a chapter, `A -> B: TEXT` is a
call, `A --> B: TEXT` an answer or a watch event, and `A: TEXT` a note.
"""

import re
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

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
_FONT: Final = 'font-family="system-ui, sans-serif" font-size="14"'
_TIP: Final = (
    '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"'
    ' orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" fill="#446"/></marker>'
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
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {_FONT}>',
        f"<title>{escape(sequence.title)}</title>",
        f"<defs>{_TIP}<style>{_STYLE}</style></defs>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for part, x in where.items():
        out.append(f'<line class="life" x1="{x}" y1="44" x2="{x}" y2="{height - 8}"/>')
        out.append(f'<rect class="box" x="{x - 80}" y="12" width="160" height="32" rx="6"/>')
        out.append(_text(x, 33, part, "t"))
    for number, line in enumerate(sequence.lines):
        out += _line(line, where, TOP + ROW * number + 18, width)
    return "\n".join([*out, "</svg>", ""])


def _line(line: str, where: dict[str, int], y: int, width: int) -> list[str]:
    if line.startswith("== "):
        band = f'<rect class="chapter" x="8" y="{y - 18}" width="{width - 16}" height="24" rx="4"/>'
        return [band, f'<text class="t" x="18" y="{y - 1}">{escape(line[3:])}</text>']
    arrow = _ARROW.match(line)
    if arrow:
        start, end = _at(where, arrow["source"], line), _at(where, arrow["target"], line)
        kind = "back" if arrow["line"] == "-->" else "call"
        return [
            f'<line class="{kind}" x1="{start}" y1="{y}" x2="{end}" y2="{y}"/>',
            _text((start + end) // 2, y - 6, arrow["text"], "s"),
        ]
    note = _NOTE.match(line)
    if note is None:
        raise ValueError(f"cannot understand {line!r}")
    x, half = _at(where, note["part"], line), max(60, len(note["text"]) * 15 // 4)
    x = min(max(x, half + 6), width - half - 6)
    box = f'<rect class="note" x="{x - half}" y="{y - 17}" width="{half * 2}" height="24" rx="4"/>'
    return [box, _text(x, y - 1, note["text"], "s")]


def _at(where: dict[str, int], part: str, line: str) -> int:
    if part not in where:
        raise ValueError(f"{line!r}: no part is called {part!r}")
    return where[part]


def _text(x: int, y: int, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x}" y="{y}" text-anchor="middle">{escape(text)}</text>'


def main() -> None:
    """Draw every file named."""
    for name in sys.argv[1:]:
        source = Path(name)
        target = source.with_suffix(".svg")
        target.write_text(draw(read(source.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
