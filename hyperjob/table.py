"""Tables in kubectl's layout: three blanks between columns, and no cell is cut."""

from collections.abc import Sequence

from rich.text import Text

Cell = str | Text
Row = Sequence[Cell]
_GAP = 3


class Layout:
    """Columns that keep their widths, so that later rows align with the same header."""

    def __init__(self, header: Sequence[str]) -> None:
        self._header = tuple(header)
        self._widths = [len(title) for title in header]

    def header(self) -> Text:
        """Return the line of column headers."""
        return self._line([Text(title, style="bold") for title in self._header])

    def rows(self, rows: Sequence[Row]) -> list[Text]:
        """Return the rows as lines; a column keeps the width of its longest cell so far."""
        for row in rows:
            for column, cell in enumerate(row):
                self._widths[column] = max(self._widths[column], len(cell))
        return [self._line(row) for row in rows]

    def _line(self, row: Row) -> Text:
        line = Text()
        for column, cell in enumerate(row):
            line.append_text(cell if isinstance(cell, Text) else Text(cell))
            if column < len(row) - 1:
                line.append(" " * (self._widths[column] - len(cell) + _GAP))
        return line


def table(header: Sequence[str], rows: Sequence[Row]) -> list[Text]:
    """Return the lines of a header and of rows."""
    layout = Layout(header)
    laid = layout.rows(rows)
    return [layout.header(), *laid]


def indented(lines: Sequence[Text], blanks: int = 2) -> list[Text]:
    """Return the lines, each with blanks before it."""
    return [Text(" " * blanks).append_text(line) for line in lines]
