"""HyperJobs that are too large to be held in memory, and what a pass of a large one costs."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hyperjob_core.api.limits import MAX_PODS, MAX_SUB_JOBS
from hyperjob_engine.expansion.expand import SpecError, check_size, expand
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.plan import plan
from tests.support.calls import calls
from tests.unit.engine.builders import (
    GPU,
    child,
    cluster,
    group,
    hyperjob,
    observed,
    task,
    template,
)
from tests.unit.engine.plans import A, message, phase

HUGE = 2**31 - 1
DELETED = "2026-01-02T03:04:00Z"


@contextmanager
def bounded() -> Iterator[None]:
    """Fail where more than four megabytes were needed at any moment."""
    tracemalloc.start()
    try:
        yield
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * 2**20


def split(mode: str, accelerators: int) -> dict[str, Any]:
    return {"mode": mode, "accelerators": accelerators, "acceleratorType": GPU}


CASES = {
    "replicas": lambda: group(replicas=HUGE),
    "many-groups": lambda: group(replicas=MAX_SUB_JOBS),
    "static-split": lambda: group(replicas=1, gpus=1, splitPolicy=split("static", HUGE)),
    "static-shares": lambda: group(replicas=HUGE, splitPolicy=split("static", HUGE)),
    "automatic-split": lambda: group(replicas=HUGE, splitPolicy=split("auto", HUGE)),
    "pods": lambda: group(replicas=1, templateSpec=template(task(replicas=HUGE))),
}


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_what_is_too_large_is_refused_with_the_reason_and_not_expanded(
    make: Callable[[], dict[str, Any]],
) -> None:
    raw = hyperjob(make(), {**group(replicas=1), "name": "other"})
    with bounded():
        decided = plan(observed(raw, clusters=(A,)))
    assert decided.actions == ()
    assert phase(decided) == ("Pending", "InvalidSpec")
    assert "and may have at most" in message(decided)


def test_of_a_hyperjob_that_is_deleted_nothing_is_expanded() -> None:
    raw = hyperjob(group(replicas=HUGE), deletionTimestamp=DELETED)
    with bounded():
        assert plan(observed(raw, clusters=(A,))).actions == ()


@pytest.mark.parametrize(
    "raw",
    [
        hyperjob(group(replicas=MAX_SUB_JOBS, gpus=1)),
        hyperjob(group(replicas=1, gpus=MAX_PODS)),
        hyperjob(
            group("fixed", replicas=MAX_SUB_JOBS - 1, gpus=1),
            group("auto", replicas=1, splitPolicy=split("auto", 8)),
        ),
        hyperjob(group(replicas=1, splitPolicy=split("auto", MAX_PODS))),
        hyperjob(
            group(
                replicas=1,
                templateSpec=template(task(replicas=1, gpus=8)),
                splitPolicy=split("auto", 8 * MAX_PODS),
            )
        ),
    ],
)
def test_the_largest_that_is_allowed_is_expanded(raw: dict[str, Any]) -> None:
    check_size(parse_hyperjob(raw))
    assert expand(parse_hyperjob(raw))


def test_one_more_is_refused() -> None:
    with pytest.raises(SpecError, match="it has 5001 sub-jobs"):
        check_size(parse_hyperjob(hyperjob(group(replicas=MAX_SUB_JOBS + 1, gpus=1))))


FEW, MANY = 1000, 4000
MOST = 4.4  # times the calls, for four times the sub-jobs


def nothing_made(count: int) -> Observed:
    clusters = tuple(cluster(f"c{number:02}", 10**6) for number in range(20))
    return observed(hyperjob(group(replicas=count, gpus=1)), clusters=clusters)


def all_run(count: int) -> Observed:
    objects = [
        each for number in range(count) for each in child(number, "Running", on="c00", gpus=1)
    ]
    raw = hyperjob(group(replicas=count, gpus=1))
    return observed(raw, *objects, clusters=(cluster("c00", 10**6),))


@pytest.mark.parametrize("scene", [nothing_made, all_run], ids=["nothing is made", "all run"])
def test_a_pass_of_four_times_the_sub_jobs_makes_four_times_the_calls(
    scene: Callable[[int], Observed],
) -> None:
    few, many = scene(FEW), scene(MANY)
    assert calls(lambda: plan(many)) <= MOST * calls(lambda: plan(few))
