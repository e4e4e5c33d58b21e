"""Bounds by resource models, and why clusters and nodes do not hold pods."""

import re
from dataclasses import replace
from typing import Any

import pytest

from hyperjob_engine.model.members import Expression, MemberNode, NodeState, Taint
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import Bundle, ClosedQueue, Tier, kind_of, kinds_of
from hyperjob_engine.placement.explain import (
    alternatives,
    explain,
    explain_overflow,
    explain_overflow_of,
    obstacle,
    why_not,
)
from hyperjob_engine.placement.ground import Ground
from hyperjob_engine.placement.nodeshortage import node_shortage
from hyperjob_engine.placement.packing import Unfit
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import SplitShare
from hyperjob_engine.resources import parse_resources
from tests.unit.engine.builders import GPU, cluster, request
from tests.unit.engine.test_share import wish
from tests.unit.engine.views import held, job, node, seen, task, view

NANO = 10**9


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


def shortage(ground: Ground, block: Bundle | None = None, cpu: int = 0, **spec: Any) -> str:
    (kind,) = kinds_of(job(task(1, 7, cpu=cpu, **spec)).pods)
    return node_shortage(ground, Unfit(kind, 3, 1, block))


def test_a_shortage_counts_nodes_that_are_ready_of_these_those_that_match_and_the_tainted() -> None:
    assert shortage(Ground(ZONED), nodeSelector={"zone": "x"}) == (
        f"has 14 {GPU} free on 3 nodes, which hold 1 of 3 pods with 7 each; 3 nodes match zone=x,"
        " 10 free; 1 node has a taint that it does not tolerate (t:NoSchedule); nodes left out:"
        " 1 cordoned, 2 not ready"
    )


@pytest.mark.parametrize(
    ("block", "cause"),
    [
        (Bundle(Tier(1)), "but no HyperNode of tier 1 with room for 3 pods with 7 each"),
        (Bundle(Tier(2, "rack")), "but no HyperNode of tier rack with room for 3 pods with 7 each"),
        (None, "which hold 1 of 3 pods with 7 each"),
    ],
)
def test_a_shortage_names_the_tier_of_a_block(block: Bundle | None, cause: str) -> None:
    assert f"free on 3 nodes, {cause};" in shortage(Ground(ZONED), block)


@pytest.mark.parametrize(
    ("nodes", "short"),
    [
        pytest.param([node("n", cpu=1)], "4 cpu (largest 1)", id="too few CPUs"),
        pytest.param(
            [node("n", cpu=1, room=0)], "4 cpu (largest 1)", id="the first by name of two"
        ),
        pytest.param(
            [node("m", cpu=1, room=0), node("n", room=0)],
            "room for another pod",
            id="the most frequent",
        ),
        pytest.param([node("m", cpu=3), node("n", cpu=1)], "4 cpu (largest 3)", id="the largest"),
        pytest.param([node("m", cpu=1), node("n")], "", id="one node has all"),
        pytest.param(
            [node("n", cpu=4, room=0)], "room for another pod", id="of CPUs exactly enough"
        ),
        pytest.param(
            [node("l", cpu=1), node("m", cpu=2), node("n", room=0)],
            "4 cpu and room for another pod",
            id="each node has one of two",
        ),
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
    told = shortage(Ground(view(nodes)), cpu=4)
    assert re.findall(r"no node with 7 free also has (.*)", told) == ([short] if short else [])


REQUIREMENTS = {
    "gpu": Expression("gpu", "Exists", ()),
    "no gpu": Expression("gpu", "DoesNotExist", ()),
    "gpu=H100": Expression("gpu", "In", ("H100",)),
    "gpu!=H100": Expression("gpu", "NotIn", ("H100",)),
    "gpu in (A100, H100)": Expression("gpu", "In", ("A100", "H100")),
    "gpu not in (A100, H100)": Expression("gpu", "NotIn", ("A100", "H100")),
    "gpu in ()": Expression("gpu", "In", ()),
    "generation>8": Expression("generation", "Gt", ("8",)),
    "generation<8": Expression("generation", "Lt", ("8",)),
    "gpuNearx": Expression("gpu", "Near", ("x",)),
}


@pytest.mark.parametrize("text", REQUIREMENTS)
def test_a_required_label_reads_as_in_a_selector(text: str) -> None:
    (kind,) = kinds_of(job(task(1, 7)).pods)
    wants = replace(kind.wants, terms=((REQUIREMENTS[text],),))
    found = node_shortage(Ground(ZONED), Unfit(replace(kind, wants=wants), 3, 1, None))
    assert re.search(rf"nodes? match(es)? {re.escape(text)}, ", found)


OBSTACLES: dict[str, tuple[Cluster, dict[str, Any], str]] = {
    "it has room": (cluster("a"), {}, ""),
    "it is not ready, and all else": (
        cluster("a", 0, unusable="no"),
        {"excluded": frozenset("a"), "closed": ClosedQueue("q", frozenset("a"))},
        "is not Ready",
    ),
    "its Queue is closed, which excludes it": (
        cluster("a", 0),
        {"closed": ClosedQueue("q", frozenset("a"))},
        "has closed queue q",
    ),
    "another cluster's Queue is closed": (
        cluster("a"),
        {"closed": ClosedQueue("q", frozenset("b"))},
        "",
    ),
    "it was left": (
        cluster("a", 0),
        {"excluded": frozenset("a"), "preferred": "b", "required": True},
        "is excluded",
    ),
    "it is not among the required ones": (
        cluster("a", 0),
        {"preferred": "b", "required": True},
        "is not in clusterNames (clusterPolicy Required)",
    ),
    "it is too small": (cluster("a", 0), {}, f"lacks 8 {GPU} (has none)"),
    "its nodes are too small": (
        seen(view([node("n0", 8, held("p", 4)), node("n1", 8, held("q", 4))])),
        {"pods": ((kind_of({GPU: 8 * NANO}), 1),)},
        f"has 8 {GPU} free on 2 nodes, but no node with 8 free (largest 4)",
    ),
}


@pytest.mark.parametrize(("where", "fields", "text"), OBSTACLES.values(), ids=list(OBSTACLES))
def test_the_first_obstacle_against_a_cluster_is_named(
    where: Cluster, fields: dict[str, Any], text: str
) -> None:
    room = Room([where])
    found = obstacle(request("hj-trainer-0", 8, **fields), where, room, None)
    assert (found.text if found else "") == text
    against = why_not(request("hj-trainer-0", 8, **fields), "a", room, None)
    assert against.text == (text or "has room for this sub-job, but not for the others on it")
    assert against.has_room is not bool(text)


def test_a_cluster_that_is_not_there_is_unknown() -> None:
    found = why_not(request("hj-trainer-0"), "z", Room([]), None)
    assert (found.cluster, found.text) == ("z", "does not exist")


def test_a_further_cluster_is_one_too_many_only_at_the_limit_of_clusters() -> None:
    a, b = cluster("a"), cluster("b")
    room = Room([a, b], [("trainer", "a")])
    wanted = request("hj-trainer-1")
    found = obstacle(wanted, b, room, 1)
    assert (found.text, found.has_room) == ("has room but maxDomains 1 is used up", True)
    assert obstacle(wanted, a, room, 1) is None, "it is in use already"
    assert obstacle(wanted, b, room, 2) is None


ROOMS = [cluster("a", 8), cluster("b", 8), cluster("c", 16)]
LOOSER = "but fits less closely than a"


OTHERS: list[tuple[str, list[tuple[str, str]], dict[str, Any], dict[str, str]]] = [
    ("a", [], {}, {"b": "as much room as a, which comes first by name", "c": LOOSER}),
    ("c", [], {}, dict.fromkeys("ab", "but another sub-job needs it")),
    (
        "b",
        [],
        {"preferred": ("b", "a")},
        {"a": "but comes after b in clusterNames", "c": "but is not in clusterNames"},
    ),
    (
        "a",
        [("trainer", "b")],
        {},
        {"b": "but has a sub-job of trainer already", "c": LOOSER},
    ),
    (
        "a",
        [("trainer", "b")],
        {"last": "a"},
        dict.fromkeys("bc", "but the sub-job was on a before"),
    ),
    ("gone", [], {}, dict.fromkeys("abc", "but the sub-job is placed already")),
    ("", [], {}, dict.fromkeys("abc", "but not for all that must be placed together")),
]


@pytest.mark.parametrize(("chosen", "standing", "fields", "texts"), OTHERS)
def test_each_other_cluster_is_less_good_by_the_first_rule_that_differs(
    chosen: str,
    standing: list[tuple[str, str]],
    fields: dict[str, Any],
    texts: dict[str, str],
) -> None:
    room = Room(ROOMS, standing)
    wanted = request("hj-trainer-0", 8, **fields)
    found = alternatives(wanted, chosen, room, max_domains=None)
    said = {name: re.sub("^has(?: room,)? ", "", each.text) for name, each in found.items()}
    assert said == texts
    runs = alternatives(wanted, chosen, room, max_domains=None, runs=True)
    stays = "has room, but running sub-jobs stay where they are"
    assert {each.text for each in runs.values()} == {stays}


def test_a_cluster_with_less_left_over_is_less_good_where_it_is_farther_from_the_others() -> None:
    near, far = (cluster(name, gpus, provider=name) for name, gpus in (("a", 16), ("b", 8)))
    room = Room([near, far], [("other", "a")])
    found = alternatives(request("hj-trainer-0", 8), "a", room, max_domains=None)
    assert found["b"].text == "has room, but is farther from the other sub-jobs"


def test_of_many_clusters_the_preferred_and_first_by_name_are_shown_the_others_counted() -> None:
    many = [cluster(name, 0) for name in "hgfedcba"]
    room = Room(many)
    wanted = request("hj-trainer-0", 8, preferred=("h", "z"))
    needs, lacks = f"needs 8 {GPU}", f"lacks 8 {GPU} (has none)"
    found = explain(wanted, Room([*many, cluster("i", 64)]), max_domains=None)
    assert found.text == (
        f"{needs}: z does not exist; each of h, a, b and 1 more {lacks}; and 5 more clusters do not"
        " fit either"
    )
    small = [cluster("h", 7)]
    required = replace(wanted, required=True)
    only = explain(required, Room(small), max_domains=None)
    assert only.text == (
        f"{needs} (clusterPolicy Required): h lacks 1 {GPU} (has 7); z does not exist"
    )
    asked = replace(wanted, preferred=tuple("abcdefg"))
    over = explain_overflow(asked, room, max_domains=None)
    assert over == f"each of a, b, c and 2 more {lacks}; and 2 more clusters do not fit either"


def test_an_overflow_of_a_split_names_what_each_preferred_cluster_takes_and_why_others_do_not() -> (
    None
):
    clusters = [cluster("a"), cluster("b"), cluster("c", unusable="no")]
    asked = wish(9, fixed=1, per_pod=2, preferred=("a", "b", "c", "z"))
    found = explain_overflow_of(
        asked, Room(clusters).clusters, [SplitShare("a", 3), SplitShare("d", 1)]
    )
    assert found == (
        f"a has room for 7 of 9 {GPU}; b has too little room; c is not Ready; z does not exist"
    )


@pytest.mark.parametrize(
    ("wanted", "has", "elsewhere", "absent"),
    [
        ({GPU: "1"}, {"cpu": "8"}, {"cpu": "8"}, f"no cluster has {GPU}"),
        ({GPU: "1"}, {"cpu": "8"}, {f"{GPU}x": "8"}, f"no cluster has {GPU}; did you mean {GPU}x?"),
        ({GPU: "1"}, {GPU: "0", "cpu": "8"}, {"cpu": "8"}, f"no cluster has {GPU}"),
        (
            {f"{GPU}s": "1"},
            {"cpu": "8"},
            {GPU: "8", f"{GPU}s": "0"},
            f"no cluster has {GPU}s; did you mean {GPU}?",
        ),
        ({GPU: "1"}, {"cpu": "8"}, {GPU: "8"}, ""),
        ({GPU: "9"}, {GPU: "8"}, {"cpu": "8"}, ""),
        ({"memory": "1Gi"}, {"cpu": "8"}, {"cpu": "8"}, ""),
        ({GPU: "1"}, {"cpu": "8"}, {}, ""),
    ],
)
def test_a_device_that_no_cluster_has_is_named(
    wanted: dict[str, str], has: dict[str, str], elsewhere: dict[str, str], absent: str
) -> None:
    clusters = [
        replace(cluster(name), free=parse_resources(each), allocatable=parse_resources(each))
        for name, each in (("a", has), ("b", elsewhere))
    ]
    asked = replace(request("j"), demand=parse_resources(wanted))
    found = explain(asked, Room(clusters), max_domains=None)
    assert (found.text if found.absent else "") == absent


def test_a_pod_of_as_many_devices_as_the_nodes_of_a_cluster_have_together_is_too_large() -> None:
    found = explain(
        job(task(1, 8)), Room([seen(view([node("n0", 4), node("n1", 4)]))]), max_domains=None
    )
    assert (
        found.text == f"no node has 8 {GPU} for one pod of replicatedJob g: make its pods smaller"
    )


def test_a_cluster_on_which_others_took_what_was_promised_has_nothing_free() -> None:
    taken = replace(cluster("a", 8, total=8), free=parse_resources({GPU: "-3", "pods": "9"}))
    found = explain(request("j", 2), Room([taken]), max_domains=None)
    assert found.text == f"needs 2 {GPU}: a lacks 2 {GPU} (0 free)"
