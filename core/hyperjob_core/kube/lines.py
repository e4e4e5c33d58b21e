"""Split a stream of bytes into lines of a bounded length."""

from typing import Final

LONGEST_LINE: Final = 32 * 1024 * 1024
"""The longest line of a watch in bytes; no object of an API server is larger."""


class Splitter:
    """Splits a stream into lines without their newlines; holds at most `longest` bytes.

    The rest of a longer line is dropped, from the begin of a character of UTF-8 on; `cut` then
    stays true.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0
        self.cut = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in this part of the stream, empty ones too."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._hold(end)
            lines.append(self.rest())
        if rest:
            self._hold(rest)
        return lines

    def rest(self) -> bytes:
        """Remove and return the line that has not ended yet; empty if there is none."""
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line

    def _hold(self, part: bytes) -> None:
        room = self._longest - self._size
        self._size += len(part)
        if room < 0:
            return  # the line has been cut
        if len(part) > room:
            self.cut = True
            held = b"".join([*self._parts, part[: room + 1]])
            self._parts[:] = [held[: _boundary(held, self._longest)]]
        elif part:
            self._parts.append(part)


def _boundary(text: bytes, end: int) -> int:
    """Return the last begin of a character of UTF-8 at or before `end`; `end` in other texts."""
    for start in range(end, max(-1, end - 4), -1):
        if text[start] & 0xC0 != 0x80:
            return start
    return end
