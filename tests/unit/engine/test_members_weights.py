"""What facts of members weigh is what they take of memory, whatever the objects say."""

import gc
import tracemalloc
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from hyperjob_core.kube.resources import HYPERNODES, NODES, PODS, Resource
from hyperjob_engine.members.facts import FACTS
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.members.weights import Weights
from hyperjob_engine.placement.ground import ground_of
from tests.support.hostile import GROWING, grown, ordinary

Object = dict[str, Any]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
COUNT = 20
FOLDED: Final = (PODS, NODES, HYPERNODES)
SAME = frozenset({"effect", "operator", "phase", "restartPolicy", "status", "type"})


def varied(part: Any, number: int, key: str = "") -> Any:
    """Return a part of an object with other texts and amounts: nothing of it is shared."""
    if isinstance(part, dict):
        return {each: varied(value, number, each) for each, value in part.items()}
    if isinstance(part, list):
        return [varied(each, number) for each in part]
    if not isinstance(part, str) or key in SAME:
        return part
    return str(10**9 + number) if part.isdecimal() else f"{part}{number}"


def weighed(resource: Resource, objects: list[Object]) -> tuple[int, int]:
    """Return what the facts of one of two halves weigh, and the memory of their fold and ground.

    The interpreter's table of interned strings grows by megabytes at once, in one half at most.
    """
    halves = [weighed_at_once(resource, objects[start::2]) for start in (0, 1)]
    return min(halves, key=lambda half: half[1] / half[0])


def weighed_at_once(resource: Resource, objects: list[Object]) -> tuple[int, int]:
    """Return what the facts of objects weigh, and the memory of their fold, view and ground."""
    gc.collect()
    tracemalloc.start()
    try:
        fold, weights, weight = MemberFold(), Weights(), 0
        for raw in objects:
            found = FACTS[resource](raw)
            weight += weights.of_fact(found)
            fold.put(resource, found)
        view = fold.view()
        assert ground_of("east", view).free is not None
        del raw, found
        gc.collect()
        return weight, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [name for name, (of, _) in GROWING.items() if of in FOLDED])
@pytest.mark.parametrize("size", [20, 200])
def test_facts_take_at_most_half_more_memory_than_they_weigh(name: str, size: int) -> None:
    resource, _ = GROWING[name]
    objects = [varied(grown(name, size), number) for number in range(COUNT)]
    weight, took = weighed(resource, objects)
    assert took <= 1.5 * weight


def test_a_node_of_empty_taints_weighs_what_it_takes() -> None:
    objects = [ordinary(NODES, f"n{number}") for number in range(10)]
    for number, each in enumerate(objects):
        each["spec"]["taints"] = [{}] * 900 + [{"key": str(number)}]
    weight, took = weighed(NODES, objects)
    assert took <= weight
    assert weight > 5 * 900 * 50


def test_ordinary_pods_share_what_they_have_in_common() -> None:
    def labels(number: int) -> dict[str, str]:
        common = {f"app.kubernetes.io/part-{each}": "trainer" for each in range(10)}
        return {**common, "volcano.sh/task-index": str(number)}

    objects = [ordinary(PODS, f"p{number}0") for number in range(1000)]
    for number, each in enumerate(objects):
        each["metadata"]["labels"] = labels(number)
        each["spec"]["affinity"] = {}
    weight, took = weighed(PODS, objects)
    assert took <= weight <= 2_000 * len(objects) / 2
