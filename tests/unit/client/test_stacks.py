"""The comparison of stacks: where most processes of a training wait, and which of them do not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.reasons.stacks import Pod, Stack, parse_stack, survey_of
from hyperjob_engine.reasons.stall import comparison

REDUCE = [["all_reduce", "/x/site-packages/torch/distributed.py", 288], ["step", "/w/train.py", 88]]
LOADER = [["__next__", "/w/loader.py", 412]]


def line(frames: Any, **fields: Any) -> bytes:
    return (
        b"2026 [rank] "
        + json.dumps({"hyperjob": {"stacks": {"threads": [frames], **fields}}}).encode()
    )


def stack(
    frames: Any = REDUCE, *, cluster: str = "gpu-east", pod: str = "p", **fields: Any
) -> Stack:
    found = parse_stack(line(frames, **fields), pod=Pod(cluster, pod))
    assert found is not None
    return found


def ranks(*numbers: int, of: int, frames: Any = REDUCE, cluster: str = "gpu-east") -> list[Stack]:
    return [stack(frames, cluster=cluster, pid=n, rank=n, of=of) for n in numbers]


CASES = {
    "nothing printed": ([], ""),
    "one rank is elsewhere": (
        ranks(*range(7), of=8) + ranks(7, of=8, frames=LOADER, cluster="gpu-west"),
        (
            "7 of 8 ranks are in all_reduce (distributed.py:288), called from step (train.py:88);"
            " rank 7 in gpu-west is in __next__ (loader.py:412)"
        ),
    ),
    "one rank is stopped": (
        ranks(0, 1, 3, of=4),
        (
            "3 of 4 ranks are in all_reduce (distributed.py:288), called from step (train.py:88);"
            " no stack from rank 2"
        ),
    ),
    "processes without ranks": (
        [stack(pod="a"), stack(pod="b"), stack(LOADER, pod="c")],
        (
            "2 of 3 processes are in all_reduce (distributed.py:288),"
            " called from step (train.py:88); pod gpu-east/c is in __next__ (loader.py:412)"
        ),
    ),
    "the last stack of a process counts": (
        [stack(LOADER, rank=0, of=1), stack(rank=0, of=1)],
        "rank 0 in gpu-east is in all_reduce (distributed.py:288), called from step (train.py:88)",
    ),
}


@pytest.mark.parametrize(("stacks", "text"), CASES.values(), ids=list(CASES))
def test_the_processes_are_grouped_by_where_they_wait(stacks: list[Stack], text: str) -> None:
    assert comparison(survey_of(stacks)) == text


@pytest.mark.parametrize(
    "raw",
    [
        b'{"hyperjob": {"step": 4}}',
        b'{"hyperjob": {"stacks": ',
        b'{"hyperjob": {"stacks": 1}}',
        b'{"hyperjob": {"stacks": {"threads": [[1]]}}}',
        b'{"hyperjob": {"stacks": {"threads": 3}}}',
        b"",
    ],
)
def test_a_line_that_is_no_stack_is_ignored(raw: bytes) -> None:
    assert parse_stack(raw, pod=Pod("c", "p")) is None


@given(st.lists(st.lists(st.text(max_size=300), min_size=2, max_size=2), min_size=1, max_size=5))
def test_the_text_of_a_tenant_is_bounded_and_printable(names: list[list[str]]) -> None:
    found = [stack([[function, file, 1]], pod=str(n)) for n, (function, file) in enumerate(names)]
    text = comparison(survey_of(found))
    assert len(text) < 1500
    assert "\n" not in text
    assert "\x1b" not in text
