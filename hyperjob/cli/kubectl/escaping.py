"""Escape control characters in names, messages, annotations, logs and errors.

Control characters let the author of a text act on the reader's terminal: copy to the clipboard,
set the title, hide lines. All output of a command, standard error too, passes through this module.
"""

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO, cast

from hyperjob_core.text import printable

_SIMPLE: Final = {"├": "|", "└": "`", "│": "|", "─": "-", "…": "...", "\u03bc": "u", "\u00b5": "u"}
"""The text for characters of our own output that an encoding lacks."""
_HANDLER: Final = "hyperjob-simple"


def _simple(error: UnicodeError) -> tuple[str, int]:
    """Return simple text for what a stream cannot encode; a name keeps its length."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_SIMPLE.get(each, "?") for each in text), error.end


codecs.register_error(_HANDLER, _simple)


class Escaped(io.TextIOBase):
    """A stream that escapes control characters and writes to another stream."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text and return its length before escaping."""
        self.stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        """Flush the other stream."""
        self.stream.flush()

    def writable(self) -> bool:
        """Return True."""
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
        """The error handler of the other stream for text that it cannot encode."""
        return self.stream.errors

    @property
    def buffer(self) -> io.BufferedIOBase:
        """The byte stream of the other stream, which click needs."""
        return cast("io.BufferedIOBase", self.stream.buffer)


@contextmanager
def escaped() -> Iterator[None]:
    """Escape the output of the block to standard output and standard error.

    Characters that the encoding of a stream lacks, as ASCII does, become simple ones.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)
    if before[0] is not None:
        sys.stdout = cast("TextIO", Escaped(untouched(before[0])))
    if before[1] is not None:
        sys.stderr = cast("TextIO", Escaped(untouched(before[1])))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def untouched(stream: TextIO) -> TextIO:
    """Return the stream without escaping, for text that is escaped already and for raw logs."""
    found: object = stream
    return found.stream if isinstance(found, Escaped) else stream
