"""Static weights alone: how pods are divided, and what restarts after a failure."""

import asyncio
from collections import Counter

import pytest

from hyperjob.simulate.nodes import Node
from hyperjob.simulate.sites import site
from hyperjob.simulate.static import StaticWeights
from hyperjob_core.virtualtime import run
from tests.unit.simulate.scenarios import HOUR, clusters, jobs, scenario


def scene(*nodes: int, rows: list[tuple[float, float, int]], seed: int = 0) -> StaticWeights:
    return StaticWeights(scenario(clusters(*nodes), jobs(*rows), seed=seed))


@pytest.mark.parametrize(
    ("nodes", "number", "whole"),
    [
        ((3, 1), 8, {"c0": 6, "c1": 2}),
        ((1, 1, 2), 4, {"c0": 1, "c1": 1, "c2": 2}),
        ((3, 0), 5, {"c0": 5}),
    ],
)
def test_pods_are_divided_by_the_accelerators_of_clusters(
    nodes: tuple[int, ...], number: int, whole: dict[str, int]
) -> None:
    assert Counter(scene(*nodes, rows=[])._divide(number)) == whole


def test_the_rest_of_a_division_is_drawn_by_weight_and_equally_for_equal_seeds() -> None:
    drawn = [scene(3, 1, rows=[], seed=seed)._divide(5) for seed in range(40)]
    assert drawn == [scene(3, 1, rows=[], seed=seed)._divide(5) for seed in range(40)]
    for names in drawn:
        assert names[:4] == ["c0", "c0", "c0", "c1"]
    rests = Counter(names[4] for names in drawn)
    assert rests["c0"] > rests["c1"] > 0


def test_clusters_without_accelerators_get_equal_parts() -> None:
    sites = [site(name, [("cpu", {"cpu": "8", "pods": "9"}, 1)]) for name in ("a", "b")]
    assert StaticWeights(scenario(sites, []))._divide(4) == ["a", "a", "b", "b"]


def test_a_failed_pod_restarts_its_whole_job() -> None:
    async def act() -> None:
        world = scene(1, 1, rows=[(0.0, HOUR, 16)])
        world.begin()
        await asyncio.sleep(600)
        before = {
            key: pods.uid for each in world.members.values() for key, pods in each.jobs.items()
        }
        assert set(before.values()) == {"0"}
        world.fail(next(iter(before)), cause="pod")
        world.fail("of/nobody", cause="pod")
        await asyncio.sleep(1)
        after = {
            key: pods.uid for each in world.members.values() for key, pods in each.jobs.items()
        }
        assert after == dict.fromkeys(before, "1"), "each pod is another one"
        life = world.history.lives["default/j0"]
        assert life.stops == {"pod": 1}
        await world.ended.wait()
        assert life.outcome == "Completed"

    run(act())


def test_pods_of_a_lost_cluster_wait_until_it_is_back() -> None:
    async def act() -> None:
        world = scene(1, rows=[(0.0, HOUR, 8)])
        world.begin()
        await asyncio.sleep(600)
        life = world.history.lives["default/j0"]
        world.set_cluster("c0", down=True)
        world.set_cluster("c0", down=True)
        await asyncio.sleep(6 * HOUR)
        assert (life.stops, life.ended) == ({"cluster": 1}, None)
        back = world.time()
        world.set_cluster("c0", down=False)
        await world.ended.wait()
        assert life.ended is not None
        assert life.ended >= back + HOUR - 600

    run(act())


def test_a_node_that_is_out_gets_no_pods() -> None:
    async def act() -> None:
        world = scene(2, rows=[(0.0, HOUR, 8)])
        world.begin()
        await asyncio.sleep(600)
        node: Node = next(each for each in world.members["c0"].nodes.all if each.held)
        world.set_node("c0", node, out=True)
        await asyncio.sleep(600)
        assert not node.held
        assert world.history.lives["default/j0"].stops == {"node": 1}
        await world.ended.wait()
        assert world.progress == (1, 1)

    run(act())
