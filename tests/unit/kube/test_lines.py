"""How a stream is split into lines, whatever parts it arrives in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.lines import Splitter


def cut(*parts: bytes, longest: int = 1000) -> list[bytes]:
    splitter = Splitter(longest)
    lines = [line for part in parts for line in splitter.feed(part)]
    return [*lines, splitter.rest()]


def test_lines_are_joined_over_parts_and_the_last_needs_no_end() -> None:
    assert cut(b"a", b"b\nc\n\nd", b"") == [b"ab", b"c", b"", b"d"]
    assert cut(b"a\n", b"\nb\n") == [b"a", b"", b"b", b""]


@given(st.lists(st.binary(max_size=9).map(lambda part: part.replace(b"\r", b"\n"))))
def test_the_parts_do_not_matter(parts: list[bytes]) -> None:
    assert cut(*parts) == b"".join(parts).split(b"\n")


@pytest.mark.parametrize("parts", [[b"1234567890xyz\n12"], [b"12345", b"67890", b"xyz", b"\n12"]])
def test_of_a_line_that_is_too_long_the_rest_is_dropped(parts: list[bytes]) -> None:
    splitter = Splitter(10)
    lines = [line for part in parts for line in splitter.feed(part)]
    assert (lines, splitter.rest(), splitter.cut) == ([b"1234567890"], b"12", True)


def test_a_line_may_be_as_long_as_the_limit() -> None:
    splitter = Splitter(10)
    assert splitter.feed(b"12345") == []
    assert splitter.feed(b"67890\n") == [b"1234567890"]
    assert not splitter.cut


@given(st.text(min_size=1), st.integers(1, 20), st.integers(1, 5))
def test_a_line_is_cut_between_characters(text: str, longest: int, part: int) -> None:
    text = text.replace("\n", "")
    data = text.encode(errors="replace")
    found = cut(*_parts(data, part), longest=longest)[-1]
    assert len(found) <= longest
    assert data.startswith(found)
    assert data.decode().startswith(found.decode())
    assert len(data) <= longest or len(found) > longest - 4


def test_a_text_that_is_no_utf_8_is_cut_at_the_limit() -> None:
    assert cut(b"\x80" * 20, longest=10) == [b"\x80" * 10]


def _parts(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]
