"""The comparison of stacks: where most processes of a training wait, and which of them do not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.reasons.stacks import Pod, Stack, comparison, parse_stack, survey_of

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
    return parse_stack(line(frames, **fields), pod=Pod(cluster, pod))


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
    "each pod has unpacked the program into a folder of its own": (
        [
            stack([["train", f"/tmp/tmp{n}/main.py", 18, "loss.backward()"]], pod=str(n))
            for n in range(3)
        ],
        "3 of 3 processes are in train (main.py:18 loss.backward())",
    ),
    "the last stack of a process counts": (
        [stack(LOADER, rank=0, of=1), stack(rank=0, of=1)],
        "rank 0 in gpu-east is in all_reduce (distributed.py:288), called from step (train.py:88)",
    ),
}


@pytest.mark.parametrize(("stacks", "text"), CASES.values(), ids=list(CASES))
def test_the_processes_are_grouped_by_where_they_wait(stacks: list[Stack], text: str) -> None:
    assert comparison(survey_of(stacks)) == text


DDP = [
    ["_engine_run_backward", "/x/site-packages/torch/autograd/graph.py", 865],
    ["train", "/w/ddp.py", 18, "loss.backward()"],
]
ELSEWHERE = {
    "in a loader": LOADER,
    "in its forward": [["forward", "/w/ddp.py", 9]],
    "in a collective that the others do not reach": [["barrier", "/x/site-packages/c10d.py", 1]],
    "in a checkpoint": [["save", "/x/site-packages/torch/serialization.py", 7]],
}


@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize("wait", [DDP, REDUCE, [["recv", "/x/site-packages/pipeline.py", 3]]])
def test_what_most_ranks_have_in_common_is_the_wait(where: str, wait: Any) -> None:
    others = [stack(wait, rank=rank, of=4, pod=str(rank)) for rank in range(3)]
    found = survey_of([*others, stack(ELSEWHERE[where], rank=3, of=4, pod="3")])
    assert [pod.name for pod in found.suspects()] == ["3"]


def test_a_known_wait_decides_only_where_no_place_has_most_of_the_ranks() -> None:
    two = [stack(LOADER, rank=0, of=2, pod="0"), stack(DDP, rank=1, of=2, pod="1")]
    assert [pod.name for pod in survey_of(two).suspects()] == ["0"]
    unknown = [two[0], stack([["forward", "/w/ddp.py", 9]], rank=1, of=2, pod="1")]
    assert survey_of(unknown).suspects() == ()


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
