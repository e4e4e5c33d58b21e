"""What a pass costs as a HyperJob grows: counted in function calls, which no machine changes."""

from collections.abc import Callable

import pytest

from hyperjob_engine.model.observed import Observed
from hyperjob_engine.plan import plan
from tests.support.calls import calls
from tests.unit.engine.builders import (
    child,
    cluster,
    group,
    hyperjob,
    observed,
)

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
