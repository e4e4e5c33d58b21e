"""How a stream is cut into lines, whatever parts it arrives in."""

from collections.abc import AsyncIterator, Iterable

import pytest

from hyperjob_core.kube import http


class Content:
    """A stream that arrives in the given parts."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = parts

    async def iter_any(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


async def cut(*parts: bytes, empty: bool = False) -> list[bytes]:
    return [line async for line in http._split(Content(parts), empty=empty)]  # type: ignore[arg-type]


async def test_lines_are_joined_over_parts_and_the_last_needs_no_end() -> None:
    assert await cut(b"a", b"b\nc\n\nd", b"") == [b"ab", b"c", b"d"]
    assert await cut(b"a\n\nb\n", empty=True) == [b"a", b"", b"b"]


async def test_a_line_may_be_as_long_as_the_limit_and_no_longer(monkeypatch) -> None:
    monkeypatch.setattr(http, "_LONGEST_LINE", 10)
    assert await cut(b"12345", b"67890", b"\n", b"1234567890\n") == [b"1234567890"] * 2
    with pytest.raises(http._LineTooLongError, match="longer than 10 bytes"):
        await cut(b"12345", b"678901", b"\n")
