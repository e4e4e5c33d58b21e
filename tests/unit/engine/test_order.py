"""The order in which Volcano takes the pods of a vcjob, by the priorities of their templates."""

import pytest

from hyperjob_core.api.names import TASK_PRIORITY
from hyperjob_engine.expansion.order import in_order
from tests.unit.engine.test_placement_nodes import partitions
from tests.unit.engine.views import Object, task

ANTI = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
]}}  # fmt: skip
SPREAD = {"affinity": ANTI}
ORDERS: dict[str, tuple[list[Object], list[str | None]]] = {
    "large pods before small ones": ([task(1, 1), task(4, 8), task(2, 4)], ["1", "3", "2"]),
    "of one size those with more demands": (
        [
            task(1, 8, tolerations=[{"operator": "Exists"}]),
            task(1, 8),
            task(1, 8, nodeSelector={"gpu": "H100"}),
            task(1, 8, nodeSelector={"gpu": "H100"}, **SPREAD),
        ],
        ["1", "2", "3", "4"],
    ),
    "of equal accelerators the larger request": (
        [task(1, 8, cpu=1), task(1, 8, cpu=9)],
        ["1", "2"],
    ),
    "the pods of one HyperNode before all others, and low tiers first": (
        [
            task(1, 8),
            task(8, 2, partitions=partitions(2, 4, 2)),
            task(4, 1, partitions=partitions(2, 2, 1)),
            task(4, 4, partitions=partitions(2, 2, 2)),
        ],
        ["1", "2", "3", "2"],
    ),
    "alike": ([task(2, 8, name="a"), task(1, 8, name="b")], [None, None]),
    "no pods last": ([task(0, 4), task(2, 8), task(1, 1)], ["1", "3", "2"]),
    "one with a class of its own": (
        [task(1, 8), task(1, 1, priorityClassName="high")],
        [None, None],
    ),
    "tasks of which all pods must start, and last those of which none must": (
        [{**task(9, 2), "minAvailable": 0}, {**task(4, 8), "minAvailable": 2}, task(1, 1)],
        ["1", "2", "3"],
    ),
    "all alike in a HyperNode, which must have room for all": (
        [{**task(9, 2), "minAvailable": 0}, {**task(4, 8), "minAvailable": 2}],
        ["1", "2"],
    ),
}


@pytest.mark.parametrize("case", ORDERS)
def test_volcano_takes_first(case: str) -> None:
    tasks, wanted = ORDERS[case]
    given: Object = {"tasks": tasks, "queue": "q"}
    if "HyperNode," in case:
        given["networkTopology"] = {"highestTierAllowed": 1}
    found = in_order(given)
    marks = [each["template"]["metadata"].get("annotations", {}) for each in found["tasks"]]
    assert [each.get(TASK_PRIORITY) for each in marks] == wanted
    for each in found["tasks"]:
        each["template"]["metadata"].pop("annotations", None)
    assert found == given


def test_priorities_that_a_template_has_stay() -> None:
    small = task(1, 1)
    small["template"]["metadata"]["annotations"] = {TASK_PRIORITY: "7"}
    given = {"tasks": [small, task(1, 8)]}
    assert in_order(given) == given
