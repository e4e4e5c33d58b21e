"""What is no HyperJob is refused before any request."""

from pathlib import Path
from typing import Any

import pytest

from hyperjob.sdk import AsyncClient, SourceError

REFUSED: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "the HyperJob has no metadata.name: `trainer` returns a whole HyperJob"),
    "no name": ({"metadata": {"namespace": "ml"}}, "has no metadata.name"),
    "an empty name": ({"metadata": {"name": ""}}, "has no metadata.name"),
    "metadata that is none": ({"metadata": "llm"}, "has no metadata.name"),
    "another kind": ({"kind": "Pod", "metadata": {"name": "x"}}, "expected kind HyperJob, .*'Pod'"),
    "a list": ([], "expected a mapping, found list"),
    "none": (None, "expected a mapping, found NoneType"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
async def test_a_document_that_is_none_is_refused(given: Any, message: str) -> None:
    for method in (AsyncClient().submit, AsyncClient().plan):
        with pytest.raises(SourceError, match=message):
            await method(given)


FILES = {
    "nothing": (b"", "expected one HyperJob, found 0 documents"),
    "two": (b"a: 1\n---\nb: 2\n", "expected one HyperJob, found 2 documents"),
    "a text": (b"hello\n", "expected a mapping, found str"),
    "no name": (b"kind: HyperJob\n", "job.yaml has no metadata.name"),
    "no YAML": (b"{", "not YAML"),
    "no text": (b"\xff\xfe\x00", "not YAML"),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES)
async def test_a_file_without_one_hyperjob_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "job.yaml").write_bytes(content)
    with pytest.raises(SourceError, match=message):
        await AsyncClient().submit(tmp_path / "job.yaml")
