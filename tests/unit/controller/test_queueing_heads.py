"""What the queue engine counts before it admits: sub-jobs that run, and all that a head needs."""

from dataclasses import replace

import pytest

from tests.unit.controller.queueworld import queue, unit, world


@pytest.mark.parametrize(
    ("max_domains", "admitted"),
    [(None, {"gang-0", "gang-1"}), (2, {"gang-0", "gang-1"}), (1, {"gang-0"})],
)
def test_sub_jobs_that_run_count_for_max_domains(
    max_domains: int | None, admitted: set[str]
) -> None:
    """The cluster of the first sub-job is full: a second cluster needs `maxDomains` 2."""
    gang = replace(
        unit("gang", 8, 8, max_domains=max_domains),
        held=frozenset({"gang-0"}),
        made=frozenset({"gang-0"}),
        clusters={"gang-0": "a"},
    )
    made = world([gang], a=8, b=16)
    made.decide()
    assert made.cache.admitted("ns/gang") == admitted


@pytest.mark.parametrize("sizes", [(8, 4), (4, 8), (6, 6)])
def test_room_is_kept_for_every_sub_job_of_a_head_whatever_its_size(sizes: tuple[int, int]) -> None:
    """Of 16 GPUs 5 are in use: 11 are too few for the head, and 3 beside its 8 would delay it."""
    made = world([unit("runs", 5)], a=16)
    made.decide()
    made.submit(unit("head", *sizes, age=1), unit("small", 3, age=2))
    made.decide()
    assert made.running() == {"runs"}
    made.end("ns/runs")
    made.decide()
    assert made.running() == {"head", "small"}


def test_a_queue_is_measured_by_what_its_next_job_asks_for_before_it_uses_any() -> None:
    """Neither queue uses GPUs: 4 of them are more of a share of 2 than of a share of 6."""
    queues = queue("a-small", weight=1), queue("b-large", weight=3)
    jobs = unit("one", 4, queue="a-small"), unit("two", 4, queue="b-large", age=1)
    made = world(jobs, *queues, c=8)
    made.foreign["c"] = 4
    made.decide()
    assert made.running() == {"two"}
