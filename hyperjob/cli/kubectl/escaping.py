"""Text of other people is shown and never obeyed: names, messages, annotations, logs, errors.

Control characters make a terminal act: copy to the clipboard, set the title, hide lines.
Everything that a command writes to standard output and error passes here, whatever prints it.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, cast

from hyperjob.text import printable


class Escaped(io.TextIOBase):
    """Writes to another stream, with control characters escaped."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, and return its own length."""
        self.stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        """Pass on what was written."""
        self.stream.flush()

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def isatty(self) -> bool:
        """Return whether the other stream is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the other stream."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a slot there
        """The encoding of the other stream."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # a slot there
        """What the other stream does with text that it cannot encode."""
        return self.stream.errors

    @property
    def buffer(self) -> io.BufferedIOBase:
        """The bytes below, which click asks for."""
        return cast("io.BufferedIOBase", self.stream.buffer)


@contextmanager
def escaped() -> Iterator[None]:
    """Escape what the block writes to standard output and error."""
    before = sys.stdout, sys.stderr
    if before[0] is not None:
        sys.stdout = cast("TextIO", Escaped(untouched(before[0])))
    if before[1] is not None:
        sys.stderr = cast("TextIO", Escaped(untouched(before[1])))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def untouched(stream: TextIO) -> TextIO:
    """Return the stream below, for what is escaped already or is to arrive byte by byte."""
    found: object = stream
    return found.stream if isinstance(found, Escaped) else stream
