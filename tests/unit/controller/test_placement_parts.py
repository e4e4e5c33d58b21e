"""Parts of placement, each by itself: HyperNodes, preferences, nodes without pods, reservations."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hyperjob_engine.model.members import NodeState
from hyperjob_engine.model.nodes import Frozen
from hyperjob_engine.placement.capacity import less, summarise, unreserved
from hyperjob_engine.placement.ground import Ground, Kind, Vacating, among, room
from hyperjob_engine.placement.items import kind_of
from hyperjob_engine.placement.network import Network
from hyperjob_engine.placement.preference import UnmetWishes, prefers, unmet
from hyperjob_engine.resources import Resources
from tests.unit.controller.builders import GPU, Object
from tests.unit.controller.views import held, job, node, seen, task, view

# Two racks of two nodes in a row; n4 is in no HyperNode.
TIERS: Mapping[str, tuple[int, list[str]]] = {
    "row": (2, ["n0", "n1", "n2", "n3"]),
    "r0": (1, ["n0", "n1"]),
    "r1": (1, ["n2", "n3"]),
}
RACKS = Network(view([node(f"n{n}", cpu=10) for n in range(5)], tiers=TIERS))


def number(name: str) -> int:
    """Return the number of a HyperNode by one of its nodes and its tier."""
    where = {"r0": (0, 1), "r1": (2, 1), "row": (0, 2), "": (4, 3)}[name]
    return next(
        each.number
        for each in RACKS.domains
        if where[0] in each.positions and each.tier == where[1]
    )


def test_hypernodes_are_below_the_next_tier_that_has_their_nodes_and_below_the_whole() -> None:
    assert [(each.tier, sorted(each.positions)) for each in RACKS.domains] in (
        [(1, [0, 1]), (1, [2, 3]), (2, [0, 1, 2, 3]), (3, [0, 1, 2, 3, 4])],
        [(1, [2, 3]), (1, [0, 1]), (2, [0, 1, 2, 3]), (3, [0, 1, 2, 3, 4])],
    )
    row, whole = number("row"), number("")
    assert [RACKS.parents[number(name)] for name in ("r0", "r1", "row", "")] == [
        row,
        row,
        whole,
        None,
    ]
    assert list(RACKS.paths[number("r1")]) == [number("r1"), row, whole]
    assert list(RACKS.lowest) == [number("r0")] * 2 + [number("r1")] * 2 + [whole]


def test_a_hypernode_of_other_nodes_is_no_parent() -> None:
    apart = Network(
        view(
            [node(f"n{n}") for n in range(4)],
            tiers={"r0": (1, ["n0"]), "row": (2, ["n1", "n2"]), "same": (1, ["n0", "gone"])},
        )
    )
    whole = len(apart.domains) - 1
    assert [apart.parents[each.number] for each in apart.domains] == [whole, whole, whole, None]


@pytest.mark.parametrize(
    ("home", "leaf", "score"),
    [("r0", "r0", 100), ("r0", "r1", 50), ("row", "r1", 50), ("", "r0", 0), ("r0", None, 0)],
)
def test_nodes_are_near_by_the_lowest_tier_around_them_and_the_other_pods(
    home: str, leaf: str | None, score: float
) -> None:
    assert RACKS.nearness(number(home), None if leaf is None else number(leaf)) == score


def test_two_hypernodes_are_joined_by_the_lowest_around_both() -> None:
    r0, r1, row = number("r0"), number("r1"), number("row")
    assert RACKS.joined(None, r1) == r1
    assert RACKS.joined(r1, r1) == r1
    assert RACKS.joined(r0, r1) == row
    assert RACKS.joined(row, r1) == row
    assert [RACKS.leaf(each) for each in (r0, row)] == [r0, None]


@pytest.mark.parametrize(
    ("used", "wanted", "packed"),
    [
        ((0, 0), (5, 0), 0.125),
        ((10, 0), (5, 0), 0.375),
        ((10, 0), (10, 0), 0.5),
        ((10, 0), (11, 0), 0.0),
        ((0, 0), (0, 1), 0.0),
    ],
)
def test_a_hypernode_is_as_full_as_its_resources_on_average(
    used: tuple[int, int], wanted: tuple[int, int], packed: float
) -> None:
    """The rack has 20 CPUs and no memory, and pods beyond what it has do not fit."""
    nano = 10**9
    sums = tuple(each * nano for each in used), tuple(each * nano for each in wanted)
    assert RACKS.packed(number("r0"), *sums) == packed
    weights = {1: 1 / (1 + 0.8 + 0.8**2), 2: 0.8 / (1 + 0.8 + 0.8**2)}
    assert RACKS.part(number("r0"), *sums) == pytest.approx(100 * weights[1] * packed)
    assert RACKS.part(number(""), *sums) == 0


def liked(*terms: tuple[int, str]) -> Object:
    """Prefer nodes of a rack, each with a weight."""
    return {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": weight,
                        "preference": {
                            "matchExpressions": [
                                {"key": "rack", "operator": "In", "values": [rack]}
                            ]
                        },
                    }
                    for weight, rack in terms
                ]
            }
        }
    }


LIKED = view([node(f"n{n}", labels={"rack": rack}) for n, rack in enumerate(("a", "b", "b", "c"))])


@pytest.mark.parametrize(("pods", "weight"), [(1, 0), (2, 70), (3, 140), (4, 245)])
def test_what_the_best_nodes_leave_unmet_is_summed_over_the_pods(pods: int, weight: int) -> None:
    """A pod fills a node: the first is in rack a, with weight 100, two are in b, with 30.

    The last pod would be on a node that it prefers not.
    """
    wanted = job(task(pods, 8, **liked((100, "a"), (30, "b"), (-5, "c")))).pods
    assert prefers(wanted)
    most = 130
    found = unmet(Ground(LIKED), wanted)
    assert found == UnmetWishes(weight=weight + 30 * pods)
    assert unmet(None, wanted) == UnmetWishes(weight=most * pods)


def test_pods_without_a_wish_leave_none_unmet() -> None:
    wanted = job(task(2, 8)).pods
    assert not prefers(wanted)
    assert unmet(None, wanted) == unmet(Ground(LIKED), wanted) == UnmetWishes()


@pytest.mark.parametrize(("pods", "tier"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 1 << 20)])
def test_the_tier_of_a_soft_topology_is_the_lowest_that_could_hold_all_pods(
    pods: int, tier: int
) -> None:
    wanted = job(task(pods, 8), networkTopology={"mode": "soft"}).pods
    assert prefers(wanted)
    shown = view([node(f"n{n}") for n in range(5)], tiers=TIERS)
    assert unmet(Ground(shown), wanted) == UnmetWishes(tier=tier)
    assert unmet(Ground(LIKED), wanted) == UnmetWishes(tier=1 << 20), "no HyperNodes"
    assert unmet(None, wanted) == UnmetWishes(tier=1 << 20)


def test_one_reservation_of_equal_ones_is_taken_back() -> None:
    first, second = job(task(2, 4)), job(task(2, 4), name="k")
    other = job(task(1, 4))
    shown = seen(view([node("n0"), node("n1"), node("n2")]), first, second, other)
    found = unreserved(shown, [first])
    assert found.free[GPU] == shown.free[GPU] + 8 * 10**9
    assert sorted(each.number for each in found.reserved_pods) == [1, 2]
    assert less(found, [first]).free == shown.free
    assert unreserved(found, [second, other]).reserved_pods == ()


def test_a_cluster_that_reports_no_resources_says_nothing_of_pods_without_a_node() -> None:
    raw: Object = {
        "metadata": {"name": "a"},
        "status": {"resourceSummary": {"allocating": {"cpu": "2"}}},
    }
    assert summarise(raw).unscheduled is None
    raw["status"]["resourceSummary"]["allocatable"] = {"cpu": "8"}
    assert summarise(raw).unscheduled == {"cpu": 2 * 10**9}


def frozen(**amounts: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(amounts.items()))


@pytest.mark.parametrize(
    ("free", "request_", "pods"),
    [
        ({"cpu": 10, "memory": 7}, frozen(cpu=3, memory=2), 3),
        ({"cpu": 10, "memory": 7}, frozen(cpu=2, memory=3), 2),
        ({"cpu": 10}, frozen(cpu=3, memory=2), 0),
        ({"cpu": 10, "memory": -1}, frozen(cpu=3, memory=2), 0),
        ({"cpu": 2}, frozen(cpu=3), 0),
        ({"cpu": 3}, frozen(cpu=3), 1),
        ({"cpu": 4}, frozen(cpu=2, memory=0), 2),
    ],
)
def test_as_many_pods_fit_as_the_scarcest_resource_allows(
    free: Resources, request_: Frozen, pods: int
) -> None:
    assert room(free, request_) == pods


def test_a_pod_that_asks_for_nothing_fits_without_limit() -> None:
    assert room({}, ()) == room({"cpu": 1}, frozen(cpu=0)) > 10**6


@pytest.mark.parametrize(
    ("shown", "numbers"),
    [
        ({}, []),
        ({"a": 2}, [2]),
        ({"b": 1}, [0, 1]),
        ({"a": 3, "b": 2}, [3, 2]),
        ({"a": 5, "b": 1}, [3, 2]),
        ({"changed": 2}, [2]),
        ({"changed": 4}, [3, 1]),
        ({"a": 1, "b": 1, "changed": 1}, [2, 1]),
        ({"changed": 99}, [3, 2]),
    ],
)
def test_pods_that_a_member_shows_are_those_of_their_request_then_any(
    shown: dict[str, int], numbers: list[int]
) -> None:
    requests = {"a": frozen(cpu=1), "b": frozen(cpu=2), "changed": frozen(cpu=9)}
    groups = [
        replace(job(task(1, 1)).pods[0], request=dict(requests[name]), number=number)
        for name, number in (("a", 3), ("b", 2))
    ]
    found = among(groups, {requests[name]: number for name, number in shown.items()})
    expected = [(g.frozen, n) for g, n in zip(groups, numbers, strict=False) if n]
    assert [(each.frozen, each.number) for each in found] == expected


BUSY = view(
    [
        node("n0", 8, held("p", 2, job="j"), held("q", 3, job="k", ending=True)),
        node("n1", 8, held("r", 4), held("s", 1, ending=True)),
        node("n2", 8, held("t", 8), state=NodeState.CORDONED),
    ],
    held("w", 5, job="j"),
)


def in_gpus(amounts: Mapping[str, Resources]) -> dict[str, int]:
    return {name: each.get(GPU, 0) // 10**9 for name, each in amounts.items()}


def test_what_ends_is_known_by_vcjob_and_all_other_pods_that_end_together() -> None:
    ground = Ground(BUSY)
    assert in_gpus(ground.leaving(["ns/j"])) == {"ns/j": 7, "": 4}
    assert in_gpus(ground.leaving(["ns/k"])) == {"ns/k": 3, "": 1}
    assert in_gpus(ground.leaving([])) == {"": 4}
    assert sum(ground.pods_of("ns/j").values()) == 2
    assert ground.pods_of("ns/k") == {}, "its pod ends"
    assert ground.pods_of("") == {}


@pytest.mark.parametrize("known", [True, False])
def test_the_nodes_without_the_pods_of_a_vcjob_have_its_resources_free(known: bool) -> None:
    ground = Ground(BUSY)
    if known:
        assert in_gpus({"": ground.free, "all": ground.allocatable}) == {"": 6, "all": 24}
    after = ground.without(["ns/j"])
    assert in_gpus({"": after.free, "all": after.allocatable}) == {"": 8, "all": 24}
    assert [pod.name for each in after.nodes for pod in each.pods] == ["q", "r", "s", "t"]
    assert after.view.waiting == ()
    assert after.nodes[1] is ground.nodes[1], "a node without such a pod is the same"
    emptied = ground.vacated(Vacating.ENDING)
    assert in_gpus({"": emptied.free}) == {"": 5}, "the pod that waits gets 5 of 10"
    assert [pod.name for pod in emptied.view.waiting] == ["w"]
    assert ground.vacated(Vacating.ENDING) is emptied


def spread(labels: Mapping[str, str], *selected: str) -> Kind:
    """A kind of pods with labels, apart from the pods with these names on each node."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {
            "matchExpressions": [{"key": "app", "operator": "In", "values": list(selected)}]
        },
    }
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec: Object = {"affinity": rule} if selected else {}
    return kind_of(job(task(1, 1, labels=dict(labels), **spec)).pods[0])


def test_pods_are_apart_if_one_of_them_asks_for_it() -> None:
    free, apart = spread({"app": "x"}), spread({"app": "y"}, "x")
    host = frozenset({"kubernetes.io/hostname"})
    assert free.conflicts(free) == frozenset()
    assert free.conflicts(apart) == apart.conflicts(free) == host
    assert apart.conflicts(apart) == frozenset()
    assert (free.alone, apart.alone, spread({"app": "x"}, "x").alone) == (False, False, True)
