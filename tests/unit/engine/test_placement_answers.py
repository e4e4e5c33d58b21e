"""Scores of nodes, bounds by resource models, and why clusters and nodes do not hold pods."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hyperjob_engine.model.members import MemberNode, NodeState, Taint
from hyperjob_engine.model.nodes import ANY_TIER, Grade, Nodes, PodGroup
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import ClosedQueue
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.explain import (
    alternatives,
    explain,
    explain_overflow,
    explain_overflow_of,
    explain_shortfall,
    obstacle,
    why_not,
)
from hyperjob_engine.placement.grades import Grades
from hyperjob_engine.placement.ground import Ground
from hyperjob_engine.placement.items import Bundle, Unfit, kind_of
from hyperjob_engine.placement.nodeshortage import node_shortage
from hyperjob_engine.placement.scores import default_score
from hyperjob_engine.placement.share import SplitShare, Wish
from hyperjob_engine.reasons.crowded import NodeShortage, NodeSum
from hyperjob_engine.reasons.hindrance import Crowding, Hindrance, Obstacle
from tests.unit.engine.builders import GPU, cluster, request
from tests.unit.engine.views import held, job, node, task, view

NANO = 10**9


def amounts(cpu: int = 0, memory: int = 0, gpu: int = 0) -> Mapping[str, int]:
    found = {"cpu": cpu, "memory": memory, GPU: gpu}
    return {name: amount for name, amount in found.items() if amount}


# Half of 50 + the evenness after - the evenness before (each 50 to 100), the mean of what stays
# free in percent, and the mean of what is in use afterwards in percent.
@pytest.mark.parametrize(
    ("free", "whole", "pod", "score"),
    [
        pytest.param((8, 8), (8, 8), (4, 4), 75 + 50 + 50, id="half of an empty node"),
        pytest.param((8, 8), (8, 8), (4, 0), 62 + 75 + 50, id="a pod makes the use uneven"),
        pytest.param((4, 8), (8, 8), (2, 4), 81 + 37 + 62.5, id="a pod makes the use more even"),
        pytest.param((8, 8, 8), (8, 8, 8), (4, 4), 75 + 50 + 50, id="its GPUs are left"),
        pytest.param(
            (8, 8, 8),
            (8, 8, 8),
            (4, 4, 8),
            63 + 50 + 50,
            id="its GPUs count for the evenness alone",
        ),
        pytest.param((3,), (3,), (1,), 75 + 66 + 33.333333, id="whole percent stay free"),
        pytest.param((-8, 8), (8, 8), (0, 8), 100 - 50 + 100, id="more than all is in use"),
        pytest.param((8,), (8,), (), 75 + 100, id="a pod that asks for nothing"),
        pytest.param((), (), (4,), 75, id="a node without resources"),
        pytest.param((1,), (1,), (1,), 75 + 0 + 100, id="a node of one unit"),
    ],
)
def test_a_node_scores_as_in_volcano(
    free: tuple[int, ...], whole: tuple[int, ...], pod: tuple[int, ...], score: float
) -> None:
    wanted = tuple(amounts(*pod).items())
    assert default_score(amounts(*free), amounts(*whole), wanted) == pytest.approx(score, abs=1e-6)


def graded(name: str = "a") -> Cluster:
    """A cluster of two nodes with four GPUs free on each, and never more."""
    nodes = Nodes((Grade(2, {GPU: 4}, {GPU: 5}),), {GPU: 8}, all_counted=True)
    return cluster(name, nodes=nodes)


def gpus(each: int, number: int) -> PodGroup:
    return PodGroup({GPU: each}, number)


@pytest.mark.parametrize(
    ("placed", "pods", "crowding"),
    [
        ((), [gpus(4, 2)], None),
        ((), [gpus(4, 3)], Crowding(GPU, 4, 3, 2)),
        ((), [gpus(4, 1), gpus(4, 2)], Crowding(GPU, 4, 3, 2)),
        ((), [gpus(4, 1), gpus(1, 7)], None),
        ((), [gpus(4, 1), gpus(1, 8)], Crowding(GPU, 1, 9, 8)),
        ((), [gpus(0, 99), PodGroup({"cpu": 1}, 99)], None),
        ([gpus(4, 1)], [gpus(4, 2)], Crowding(GPU, 4, 3, 2)),
        ([gpus(4, 2)], [gpus(1, 6)], None),
        ([gpus(4, 2)], [gpus(1, 7)], Crowding(GPU, 1, 9, 8)),
        ([gpus(4, 3)], [gpus(2, 1)], None),
        ([gpus(4, 3)], [gpus(2, 2)], Crowding(GPU, 2, 5, 4)),
    ],
)
def test_resource_models_bound_the_pods_of_each_size_and_of_all_larger_ones(
    placed: list[PodGroup], pods: list[PodGroup], crowding: Crowding | None
) -> None:
    grades = Grades([graded(), cluster("b")])
    grades.add("a", placed)
    assert grades.crowding("a", pods) == crowding
    assert grades.crowding("a", pods) == crowding, "the bounds that it keeps are the same"
    assert grades.crowding("b", pods) is None, "a cluster without resource models"


def test_pods_that_leave_make_room_in_their_own_copy_alone() -> None:
    grades = Grades([graded()])
    grades.add("a", [gpus(4, 2)])
    copy = grades.copy()
    copy.add("a", [gpus(4, 2)], -1)
    assert grades.crowding("a", [gpus(4, 1)]) == Crowding(GPU, 4, 3, 2)
    assert copy.crowding("a", [gpus(4, 2)]) is None
    copy.add("a", [gpus(4, 1)], -1)
    assert copy.crowding("a", [gpus(4, 3)]) is not None, "pods that never came leave no room"
    assert (bool(copy), bool(Grades([cluster("b")]))) == (True, False)


ZONED = view(
    [
        node("n0", labels={"zone": "x"}),
        node("n1", 8, held("p", 6), labels={"zone": "x"}, taints=(Taint("t", "", "NoSchedule"),)),
        node("n2", 8, held("q", 4), labels={"zone": "y"}),
        node("n3", 8, held("r", 8), labels={"zone": "x"}),
        node("n4", state=NodeState.CORDONED, labels={"zone": "x"}),
        node("n5", state=NodeState.NOT_READY, labels={"zone": "x"}),
        node("n6", state=NodeState.NOT_READY, labels={"zone": "x"}),
    ]
)


def shortage(
    ground: Ground, block: Bundle | None = None, cpu: int = 0, **spec: Any
) -> NodeShortage:
    kind = kind_of(job(task(1, 7, cpu=cpu, **spec)).pods[0])
    return node_shortage(ground, Unfit(kind, 3, 1, block))


def test_a_shortage_counts_nodes_that_are_ready_of_these_those_that_match_and_the_tainted() -> None:
    assert shortage(Ground(ZONED), nodeSelector={"zone": "x"}) == NodeShortage(
        resource=GPU,
        amount=7 * NANO,
        wanted=3,
        most=1,
        ready=NodeSum(4, 3, 14 * NANO, 8 * NANO),
        selector=(("zone", "x"),),
        matching=NodeSum(3, 2, 10 * NANO, 8 * NANO),
        taint="t",
        effect="NoSchedule",
        tainted=1,
        cordoned=1,
        not_ready=2,
    )


@pytest.mark.parametrize(
    ("block", "tier", "name"),
    [
        (Bundle(1, ""), 1, ""),
        (Bundle(2, "rack"), 2, "rack"),
        (Bundle(ANY_TIER, "rack"), 0, ""),
        (None, 0, ""),
    ],
)
def test_a_shortage_names_the_tier_of_a_block_unless_any_tier_will_do(
    block: Bundle | None, tier: int, name: str
) -> None:
    found = shortage(Ground(ZONED), block)
    assert (found.tier, found.tier_name) == (tier, name)


@pytest.mark.parametrize(
    ("nodes", "short"),
    [
        pytest.param([node("n", cpu=1)], "cpu", id="too few CPUs"),
        pytest.param([node("n", cpu=1, room=0)], "cpu", id="the first by name of two"),
        pytest.param([node("m", cpu=1, room=0), node("n", room=0)], "pods", id="the most frequent"),
        pytest.param([node("m", cpu=1), node("n")], "", id="one node has all"),
        pytest.param([node("n", 6, cpu=1)], "", id="the accelerators are too few already"),
        pytest.param([node("n", 7, cpu=4)], "", id="exactly enough"),
        pytest.param(
            [node("n", cpu=1, taints=(Taint("t", "", "NoExecute"),))], "", id="a tainted node"
        ),
    ],
)
def test_a_shortage_names_what_the_nodes_with_enough_accelerators_lack(
    nodes: list[MemberNode], short: str
) -> None:
    assert shortage(Ground(view(nodes)), cpu=4).short == short


OBSTACLES: dict[str, tuple[Cluster, dict[str, Any], Obstacle | None]] = {
    "it has room": (cluster("a"), {}, None),
    "it is not ready, and all else": (
        cluster("a", 0, unusable="no"),
        {"excluded": frozenset("a"), "closed": ClosedQueue("q", frozenset("a"))},
        Obstacle.UNUSABLE,
    ),
    "its Queue is closed, which excludes it": (
        cluster("a", 0),
        {"closed": ClosedQueue("q", frozenset("a"))},
        Obstacle.QUEUE_CLOSED,
    ),
    "another cluster's Queue is closed": (
        cluster("a"),
        {"closed": ClosedQueue("q", frozenset("b"))},
        None,
    ),
    "it was left": (
        cluster("a", 0),
        {"excluded": frozenset("a"), "preferred": "b", "required": True},
        Obstacle.EXCLUDED,
    ),
    "it is not among the required ones": (
        cluster("a", 0),
        {"preferred": "b", "required": True},
        Obstacle.NOT_ALLOWED,
    ),
    "it is too small": (cluster("a", 0), {}, Obstacle.LACKS),
    "its nodes are too small": (graded(), {"pods": (gpus(4, 3),)}, Obstacle.NODES),
}


@pytest.mark.parametrize(("where", "fields", "code"), OBSTACLES.values(), ids=list(OBSTACLES))
def test_the_first_obstacle_against_a_cluster_is_named(
    where: Cluster, fields: dict[str, Any], code: Obstacle | None
) -> None:
    room = FreeRoom.of([where], ())
    found = obstacle(request("hj-trainer-0", 8, **fields), where, room, None)
    assert (found.code if found else None) == code
    against = why_not(request("hj-trainer-0", 8, **fields), "a", where, room, None)
    assert against.code == (code or Obstacle.OTHERS)


def test_a_cluster_that_is_not_there_is_unknown() -> None:
    found = why_not(request("hj-trainer-0"), "z", None, FreeRoom.of([], ()), None)
    assert found == Hindrance(cluster="z", code=Obstacle.UNKNOWN)


def test_a_further_cluster_is_one_too_many_only_at_the_limit_of_clusters() -> None:
    a, b = cluster("a"), cluster("b")
    room = FreeRoom.of([a, b], [("trainer", "a")])
    wanted = request("hj-trainer-1")
    found = obstacle(wanted, b, room, 1)
    assert found == Hindrance(cluster="b", code=Obstacle.MAX_DOMAINS, limit=1)
    assert obstacle(wanted, a, room, 1) is None, "it is in use already"
    assert obstacle(wanted, b, room, 2) is None


ROOMS = [cluster("a", 8), cluster("b", 8), cluster("c", 16)]


@pytest.mark.parametrize(
    ("chosen", "standing", "fields", "codes"),
    [
        ("a", (), {}, {"b": Obstacle.BY_NAME, "c": Obstacle.LOOSER}),
        ("c", (), {}, {"a": Obstacle.LEFT_TO_OTHERS, "b": Obstacle.LEFT_TO_OTHERS}),
        (
            "b",
            (),
            {"preferred": ("b", "a")},
            {"a": Obstacle.LATER, "c": Obstacle.NOT_PREFERRED},
        ),
        ("a", [("trainer", "b")], {}, {"b": Obstacle.SIBLING, "c": Obstacle.LOOSER}),
        ("a", [("trainer", "b")], {"last": "a"}, dict.fromkeys("bc", Obstacle.MOVES)),
        ("gone", (), {}, dict.fromkeys("abc", Obstacle.SETTLED)),
        ("", (), {}, dict.fromkeys("abc", Obstacle.NOT_FOR_ALL)),
    ],
)
def test_each_other_cluster_is_less_good_by_the_first_rule_that_differs(
    chosen: str,
    standing: list[tuple[str, str]],
    fields: dict[str, Any],
    codes: dict[str, Obstacle],
) -> None:
    room = FreeRoom.of(ROOMS, standing)
    wanted = request("hj-trainer-0", 8, **fields)
    found = alternatives(wanted, chosen, ROOMS, room, max_domains=None)
    assert {name: each.code for name, each in found.items()} == codes
    runs = alternatives(wanted, chosen, ROOMS, room, max_domains=None, runs=True)
    assert {each.code for each in runs.values()} == {Obstacle.STAYS}


def test_of_many_clusters_the_preferred_and_first_by_name_are_shown_the_others_counted() -> None:
    many = [cluster(name, 0) for name in "hgfedcba"]
    room = FreeRoom.of(many, ())
    wanted = request("hj-trainer-0", 8, preferred=("h", "z"))
    found = explain(wanted, many, room, max_domains=None)
    assert [each.cluster for each in found.hindrances] == ["h", "z", "a", "b", "c"]
    assert found.hidden == 4
    only = explain(replace(wanted, required=True), many, room, max_domains=None)
    assert ([each.cluster for each in only.hindrances], only.hidden) == (["h", "z"], 0)
    over = explain_overflow(
        replace(wanted, preferred=tuple("abcdefg")), many, room, max_domains=None
    )
    assert ([each.cluster for each in over.hindrances], over.hidden) == (list("abcde"), 2)


def wish(accelerators: int, *, fixed: int = 0, per_pod: int = 1, preferred: str = "") -> Wish:
    return Wish(
        group="trainer",
        accelerators=accelerators,
        kind=GPU,
        fixed=fixed,
        per_pod=per_pod,
        pod={GPU: per_pod * NANO},
        others=(),
        preferred=tuple(preferred),
        required=False,
    )


@pytest.mark.parametrize(
    ("accelerators", "fixed", "per_pod", "fewest"),
    [(9, 1, 2, 1), (8, 1, 3, 2), (10, 0, 3, 0), (1, 0, 1, 1), (1, 1, 1, 0)],
)
def test_a_shortfall_names_the_fewest_sub_jobs_that_make_exactly_the_wanted_number(
    accelerators: int, fixed: int, per_pod: int, fewest: int
) -> None:
    found = explain_shortfall(
        wish(accelerators, fixed=fixed, per_pod=per_pod), [], FreeRoom.of([], ()), max_domains=None
    )
    assert found.fewest == fewest


def test_an_overflow_of_a_split_names_what_each_preferred_cluster_takes_and_why_others_do_not() -> (
    None
):
    clusters = [cluster("a"), cluster("b"), cluster("c", unusable="no")]
    asked = wish(9, fixed=1, per_pod=2, preferred="abcz")
    found = explain_overflow_of(asked, clusters, [SplitShare("a", 3), SplitShare("d", 1)])
    assert [
        (each.cluster, each.room, each.hindrance and each.hindrance.code) for each in found.parts
    ] == [
        ("a", 7, None),
        ("b", 0, None),
        ("c", 0, Obstacle.UNUSABLE),
        ("z", 0, Obstacle.UNKNOWN),
    ]
