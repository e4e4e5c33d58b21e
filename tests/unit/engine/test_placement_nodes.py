from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.model.members import (
    ANY_NODE,
    Apart,
    Expression,
    MemberNode,
    MemberView,
    NodeState,
    Taint,
)
from hyperjob_engine.model.request import Kind, PlacementRequest
from hyperjob_engine.model.wants import parse_apart, parse_ports
from hyperjob_engine.placement.ground import Ground
from hyperjob_engine.placement.packing import unfit
from hyperjob_engine.placement.room import Room, after_ends
from hyperjob_engine.resources import parse_resources
from tests.unit.engine.builders import GPU, Object, place
from tests.unit.engine.views import held, job, node, seen, task, view

ON = "requiredDuringSchedulingIgnoredDuringExecution"


def fits(shown: MemberView, wanted: PlacementRequest, *reserved: PlacementRequest) -> bool:
    return any(Room([seen(shown, *reserved)]).ranked(wanted))


def affinity(*expressions: dict[str, Any], field: str = "matchExpressions") -> dict[str, Any]:
    return {"nodeAffinity": {ON: {"nodeSelectorTerms": [{field: list(expressions)}]}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


H100 = {"gpu": "H100", "generation": "9"}
MIXED = view([node("n0", 8, labels=H100), node("n1", 8, labels={"gpu": "A100"}), node("n2", 8)])
DEDICATED = Taint("team", "red", "NoSchedule")


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"nodeSelector": {"gpu": "H100"}}, 1),
        ({"nodeSelector": {"gpu": "H200"}}, 0),
        ({"affinity": affinity(expression("gpu", "In", "H100", "A100"))}, 2),
        ({"affinity": affinity(expression("gpu", "NotIn", "A100"))}, 2),
        ({"affinity": affinity(expression("gpu", "Exists"))}, 2),
        ({"affinity": affinity(expression("gpu", "DoesNotExist"))}, 1),
        ({"affinity": affinity(expression("generation", "Gt", "8"))}, 1),
        ({"affinity": affinity(expression("generation", "Lt", "9"))}, 0),
        ({"affinity": affinity(expression("generation", "Gt", "x"))}, 0),
        ({"affinity": affinity(expression("generation", "Near", "9"))}, 0),
        ({"affinity": affinity(expression("metadata.name", "In", "n2"), field="matchFields")}, 1),
        ({"affinity": affinity()}, 0),
        ({"affinity": affinity(expression("gpu", "Exists")), "nodeSelector": {"gpu": "A100"}}, 1),
        ({}, 3),
    ],
)
def test_selectors_and_affinity_choose_nodes(spec: dict[str, Any], pods: int) -> None:
    most = [number for number in (1, 2, 3, 4) if fits(MIXED, job(task(number, 8, **spec)))]
    assert most == list(range(1, pods + 1))


@pytest.mark.parametrize(
    ("toleration", "fit"),
    [
        ({}, False),
        ({"key": "team", "value": "red"}, True),
        ({"key": "team", "value": "blue"}, False),
        ({"key": "team", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "team", "operator": "Exists", "effect": "NoSchedule"}, True),
    ],
)
def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(
    toleration: dict[str, str], fit: bool
) -> None:
    shown = view([node("n0", taints=(DEDICATED,))])
    assert fits(shown, job(task(1, 8, tolerations=[toleration] if toleration else []))) is fit


def test_a_taint_that_only_prefers_other_pods_keeps_none_away() -> None:
    soft = replace(DEDICATED, effect="PreferNoSchedule")
    assert fits(view([node("n0", taints=(soft,))]), job(task(1, 8)))


@pytest.mark.parametrize("state", [NodeState.CORDONED, NodeState.NOT_READY])
def test_a_node_that_takes_no_pods_holds_nothing(state: NodeState) -> None:
    shown = view([node("n0", state=state), node("n1", 4)])
    assert not fits(shown, job(task(1, 8)))
    assert seen(shown).free[GPU] == 4 * 10**9


@pytest.mark.parametrize("room", [3, 4])
def test_the_number_of_pods_of_a_node_counts(room: int) -> None:
    assert fits(view([node("n0", 8, room=room)]), job(task(4, 1))) is (room == 4)


def test_all_resources_of_a_node_count_at_once() -> None:
    shown = view([node("gpus", 8, cpu=4), node("cores", 0, cpu=64)])
    assert not fits(shown, job(task(1, 8, cpu=8)))
    assert fits(shown, job(task(1, 8, cpu=4), task(1, 0, cpu=60, name="loader")))


def test_terminating_pods_still_hold_their_nodes() -> None:
    assert not fits(view([node("n0", 8, held("p", 1, ending=True))]), job(task(1, 8)))


def test_waiting_pods_of_others_take_the_nodes_that_they_fit_on() -> None:
    free = [node("n0", 8), node("n1", 4)]
    assert not fits(view(free, held("w", 6)), job(task(1, 8)))
    assert fits(view(free, held("w", 9)), job(task(1, 8))), "it fits nowhere itself"
    two = [node("n0", 8), node("n1", 8)]
    assert not fits(view(two, held("w", 6)), job(task(2, 5))), "10 are free, 2 of them on one node"
    assert seen(view(free, held("w", 6))).free[GPU] == 6 * 10**9


def test_labels_that_no_pod_selects_make_no_kinds_of_waiting_pods() -> None:
    """Each pod of a vcjob has labels of its own: as many kinds would take seconds to count."""
    pods = [
        replace(held(f"w{i}", 1), labels=(("app", "ab"[i % 2]), ("index", str(i))))
        for i in range(100)
    ]
    free = [node("n0", 8), *(node(f"m{i}", 1) for i in range(99))]
    ground = Ground(view(free, *pods))
    assert len(ground.waiting(ground.selected)) == 1
    apart = parse_apart({"affinity": anti()}, {})
    assert not fits(ground.view, job(task(2, 4), task(1, 0, name="loader")))
    shy = Ground(view(free, *pods, replace(held("x", 1), apart=apart)))
    assert len(shy.waiting(shy.selected)) == 3


def test_waiting_pods_of_others_may_ask_for_none_of_a_resource() -> None:
    free = [node("n0", 8), node("n1", 8)]
    assert fits(view(free, held("w", 0), held("v", 1)), job(task(1, 8)))


def test_reservations_hold_nodes_until_the_view_shows_their_pods() -> None:
    shown, wanted = view([node("n0", 8), node("n1", 8)]), job(task(1, 8))
    assert fits(shown, wanted, replace(wanted, name="k"))
    assert not fits(shown, wanted, replace(wanted, name="k"), replace(wanted, name="l"))
    assert not fits(shown, wanted, job(task(2, 5), name="k"))


def test_an_answer_about_nodes_is_for_as_many_promised_pods_as_were_asked_about() -> None:
    ground = Ground(view([node("n0", 8), node("n1", 8)]))
    one, two = dict(job(task(1, 5)).pods), dict(job(task(2, 5)).pods)
    assert unfit(ground, one, one) is None
    assert unfit(ground, one, two) is not None, "6 are free, 3 on each node"


def anti(key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}}
    return {"podAntiAffinity": {ON: [term]}}


@pytest.mark.parametrize(
    ("pods", "key", "fit"),
    [
        (2, "kubernetes.io/hostname", True),
        (3, "kubernetes.io/hostname", False),
        (1, "zone", True),
        (2, "zone", False),
    ],
)
def test_pods_that_must_be_apart_share_no_domain(pods: int, key: str, fit: bool) -> None:
    shown = view([node(f"n{i}", labels={"zone": "z"}) for i in range(2)])
    assert fits(shown, job(task(pods, 1, labels={"app": "a"}, affinity=anti(key)))) is fit


def test_anti_affinity_counts_for_both_pods() -> None:
    term = Apart("kubernetes.io/hostname", (Expression("app", "In", ("a",)),))
    theirs = view([node("n0", 8, held("p", 1, apart=(term,)))])
    assert not fits(theirs, job(task(1, 1, labels={"app": "a"})))
    assert fits(theirs, job(task(1, 1, labels={"app": "b"})))
    zone = held("q", 1, apart=(replace(term, topology_key="zone"),))
    both = view([*theirs.nodes, node("n1", 8, zone, labels={"zone": "z"})])
    assert not fits(both, job(task(1, 1, labels={"app": "a"}))), "each node has a term of its own"
    ours = view([node("n0", 8, held("p", 1, labels={"app": "a"}))])
    assert not fits(ours, job(task(1, 1, affinity=anti())))
    assert fits(view([node("n0", 8, held("p", 1))]), job(task(1, 1, affinity=anti())))


def port(number: int, host: int | None = None, ip: str = "", protocol: str = "TCP") -> Object:
    found: Object = {"containerPort": number, "protocol": protocol}
    return found | ({"hostPort": host} if host else {}) | ({"hostIP": ip} if ip else {})


PORTS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "one port": ({"ports": [port(80, 8080)]}, {"ports": [port(81, 8080)]}, False),
    "two ports": ({"ports": [port(80, 8080)]}, {"ports": [port(80, 8081)]}, True),
    "ports of their containers": ({"ports": [port(80)]}, {"ports": [port(80)]}, True),
    "one port of two protocols": (
        {"ports": [port(80, 8080)]},
        {"ports": [port(80, 8080, protocol="UDP")]},
        True,
    ),
    "one port of two addresses": (
        {"ports": [port(80, 8080, "10.0.0.1")]},
        {"ports": [port(80, 8080, "10.0.0.2")]},
        True,
    ),
    "one port of every address": (
        {"ports": [port(80, 8080, "10.0.0.1")]},
        {"ports": [port(80, 8080, "0.0.0.0")]},
        False,
    ),
    "the network of the host": (
        {"hostNetwork": True, "ports": [port(80)]},
        {"ports": [port(1, 80)]},
        False,
    ),
}


@pytest.mark.parametrize(("one", "other", "fit"), PORTS.values(), ids=list(PORTS))
@pytest.mark.parametrize("shown", [False, True])
def test_two_pods_of_a_node_have_no_port_of_it_in_common(
    one: dict[str, Any], other: dict[str, Any], fit: bool, shown: bool
) -> None:
    """The first pod is of the same gang, or is on the node already."""
    first, second = task(1, 1, name="first", **one), task(1, 1, **other)
    pod = replace(held("p", 1), ports=parse_ports(first["template"]["spec"]))
    if shown:
        assert fits(view([node("n0", 8, pod)]), job(second)) is fit
    else:
        assert fits(view([node("n0")]), job(first, second)) is fit
    assert fits(view([node("n0", 8, pod), node("n1")]), job(second))


def test_pods_with_a_port_of_the_node_take_a_node_each() -> None:
    wanted = job(task(3, 1, ports=[port(22, 22)]))
    assert not fits(view([node("n0"), node("n1")]), wanted)
    assert fits(view([node("n0"), node("n1"), node("n2")]), wanted)
    text = place([wanted], [seen(view([node("n0"), node("n1")]))]).unplaced["j"].text
    assert text.endswith("each node has one pod with its host ports")


def test_pods_of_two_tasks_stay_apart() -> None:
    wanted = job(task(1, 1, labels={"app": "a"}), task(1, 1, name="other", affinity=anti()))
    assert not fits(view([node("n0")]), wanted)
    assert fits(view([node("n0"), node("n1")]), wanted)


NODES = st.lists(st.integers(0, 8), min_size=1, max_size=6)


def racked(racks: list[list[int]]) -> MemberView:
    """A member with a HyperNode of tier 1 around each list of nodes, by their GPUs."""
    names = [[f"n{i}-{j}" for j in range(len(rack))] for i, rack in enumerate(racks)]
    nodes = [
        node(name, gpus)
        for mine, rack in zip(names, racks, strict=True)
        for name, gpus in zip(mine, rack, strict=True)
    ]
    tiers = {f"r{i}": (1, mine) for i, mine in enumerate(names)}
    spine = (2, [each.name for each in nodes])
    return view(nodes, tiers={**tiers, "spine": spine})


RACKS = view(
    [node(f"n{i}", 8) for i in range(4)],
    tiers={
        "r0": (1, ("n0", "n1")),
        "r1": (1, ("n2", "n3")),
        "spine": (2, ("n0", "n1", "n2", "n3")),
    },
)


@pytest.mark.parametrize(
    ("pods", "topology", "fit"),
    [
        (2, {"mode": "hard", "highestTierAllowed": 1}, True),
        (3, {"mode": "hard", "highestTierAllowed": 1}, False),
        (3, {"mode": "hard", "highestTierAllowed": 2}, True),
        (3, {"mode": "soft", "highestTierAllowed": 1}, True),
        (3, {"highestTierAllowed": 1}, False),
        (4, {}, True),
    ],
)
def test_a_hard_topology_keeps_all_pods_in_one_hypernode(
    pods: int, topology: dict[str, Any], fit: bool
) -> None:
    assert fits(RACKS, job(task(pods, 8), networkTopology=topology)) is fit


def partitions(total: int, size: int, tier: int) -> dict[str, Any]:
    return {
        "totalPartitions": total,
        "partitionSize": size,
        "networkTopology": {"mode": "hard", "highestTierAllowed": tier},
    }


def test_partitions_of_a_hard_job_share_its_hypernode() -> None:
    parts = partitions(2, 2, 1)
    inside = {"mode": "hard", "highestTierAllowed": 1}
    assert not fits(RACKS, job(task(4, 8, partitions=parts), networkTopology=inside))
    assert fits(RACKS, job(task(4, 4, partitions=parts), networkTopology=inside))


def test_two_jobs_with_a_hard_topology_take_two_hypernodes() -> None:
    wanted = job(task(2, 8), networkTopology={"highestTierAllowed": 1})
    assert fits(RACKS, wanted, replace(wanted, name="k"))
    assert not fits(RACKS, wanted, replace(wanted, name="k"), replace(wanted, name="l"))


def test_promised_pods_without_a_topology_take_nodes_too() -> None:
    wanted = job(task(2, 8), networkTopology={"highestTierAllowed": 1})
    others = [job(task(1, 8), name=name) for name in ("k", "l", "m")]
    assert fits(RACKS, wanted, *others[:2])
    assert not fits(RACKS, wanted, *others)


def test_partitions_with_a_soft_topology_fit_in_several_hypernodes() -> None:
    soft = {**partitions(1, 3, 1), "networkTopology": {"mode": "soft"}}
    assert fits(RACKS, job(task(3, 8, partitions=soft)))
    assert not fits(RACKS, job(task(3, 8, partitions=partitions(1, 3, 1))))


def test_a_block_must_not_be_able_to_spoil_a_large_pod() -> None:
    wanted = job(task(1, 8), task(2, 1, name="block", partitions=partitions(1, 2, 1)))
    tiers = {"r0": (1, ("n0",)), "r1": (1, ("n1",))}
    assert fits(view([node("n0", 8), node("n1", 8)], tiers=tiers), wanted)
    assert not fits(view([node("n0", 8), node("n1", 8, held("p", 1))], tiers=tiers), wanted)


def test_a_small_pod_leaves_a_large_one_its_only_node() -> None:
    full = node("n3", 8, held("q", 8))
    one_free = view([node("n0", 8), node("n1", 4), node("n2", 4), full])
    assert fits(one_free, job(task(1, 2, name="small"), task(1, 8)))
    assert not fits(one_free, job(task(1, 2, name="small"), task(2, 8)))


def test_of_pods_of_one_size_those_that_fit_on_fewer_nodes_go_first() -> None:
    shown = view([node("n0", 8, labels=H100), node("n1", 8), node("n2", 8, held("q", 8))])
    strict = task(1, 8, name="strict", nodeSelector={"gpu": "H100"})
    assert fits(shown, job(task(1, 8), strict))
    assert not fits(shown, job(task(2, 8), strict))


@pytest.mark.parametrize("optional", [0, 1])
def test_a_hypernode_has_room_for_all_pods_of_a_hard_job_or_for_none(optional: int) -> None:
    """Volcano asks for it, however few of the pods must start."""
    racks = {"r0": (1, ["n0", "n1"]), "r1": (1, ["n2", "n3"])}
    shown = view([node(f"n{i}", 8) for i in range(4)], tiers=racks)
    some, more = task(8, 2), {**task(optional, 1, name="more"), "minAvailable": 0}
    hard = {"mode": "hard", "highestTierAllowed": 1}
    for tasks in ((some, more), (more, some)):
        assert fits(shown, job(*tasks, networkTopology=hard, minAvailable=8)) is (not optional)
        assert fits(shown, job(*tasks, minAvailable=8))


def test_where_no_end_of_others_makes_the_choice_of_nodes_safe_volcano_decides() -> None:
    """Both pods of 4 GPUs on the only H100 leave no room there for those of 2."""
    wanted = job(task(2, 4, name="large"), task(2, 2, nodeSelector={"gpu": "H100"}))
    tight = [node("n0", 4), node("n1", 8, labels=H100)]
    assert fits(view(tight), wanted)
    assert not fits(view([*tight, node("n2", 8, held("q", 8), labels=H100)]), wanted)
    assert not fits(view([node("n0", 2), *tight[1:]]), wanted)


@given(NODES, st.lists(st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 4, 8])), max_size=4))
def test_pods_whose_sizes_divide_each_other_fit_exactly_if_the_nodes_hold_them(
    sizes: list[int], tasks: list[tuple[int, int]]
) -> None:
    wanted = job(*(task(n, gpus, name=f"t{i}") for i, (n, gpus) in enumerate(tasks)))
    held_alike = all(
        sum(number * gpus for number, gpus in tasks if gpus >= size)
        <= sum(each // size * size for each in sizes)
        for size in (1, 2, 4, 8)
    )
    shown = view([node(f"n{i}", size) for i, size in enumerate(sizes)])
    assert fits(shown, wanted) is held_alike


@given(NODES, st.integers(1, 8), st.integers(1, 20))
def test_pods_of_one_kind_fit_exactly_as_many_as_the_nodes_hold(
    sizes: list[int], gpus: int, pods: int
) -> None:
    shown = view([node(f"n{i}", size) for i, size in enumerate(sizes)])
    assert fits(shown, job(task(pods, gpus))) is (sum(size // gpus for size in sizes) >= pods)


@given(st.lists(NODES, min_size=1, max_size=4), st.integers(1, 8), st.integers(1, 12))
def test_pods_of_one_kind_fit_in_a_hypernode_exactly_if_one_holds_them(
    racks: list[list[int]], gpus: int, pods: int
) -> None:
    wanted = job(task(pods, gpus), networkTopology={"highestTierAllowed": 1})
    most = max(sum(size // gpus for size in rack) for rack in racks)
    assert fits(racked(racks), wanted) is (most >= pods)


@given(st.lists(NODES, min_size=1, max_size=4), st.integers(1, 8), st.integers(1, 4))
def test_partitions_of_one_kind_fit_exactly_as_many_as_the_hypernodes_hold(
    racks: list[list[int]], gpus: int, size: int
) -> None:
    most = sum(sum(each // gpus for each in rack) // size for rack in racks)
    for total, fit in ((most, True), (most + 1, False)):
        wanted = task(total * size, gpus, partitions=partitions(total, size, 1))
        assert not total or fits(racked(racks), job(wanted)) is fit


@given(NODES, st.integers(1, 3), st.integers(1, 6), st.integers(1, 8))
def test_pods_of_two_kinds_fit_only_if_some_choice_of_nodes_holds_them(
    sizes: list[int], small: int, number: int, large: int
) -> None:
    shown = view([node(f"n{i}", size) for i, size in enumerate(sizes)])
    held_beside = [
        sum((size - (large if i == at else 0)) // small for i, size in enumerate(sizes))
        for at, most in enumerate(sizes)
        if most >= large
    ]
    if fits(shown, job(task(number, small, name="small"), task(1, large))):
        assert max(held_beside, default=-1) >= number


MEMORY = parse_resources({"cpu": 8, "memory": "512Gi", "pods": 9})
SHORT = [
    (
        view([node(f"n{i}", 8, held("p", 2)) for i in range(3)]),
        task(1, 8),
        f"needs 8 {GPU}: a has 18 {GPU} free on 3 nodes, but no node with 8 free (largest 6)",
    ),
    (
        MIXED,
        task(2, 8, nodeSelector={"gpu": "H100"}),
        (
            f"needs 16 {GPU}: a has 24 {GPU} free on 3 nodes, which hold 1 of 2 pods with 8 each;"
            " 1 node matches gpu=H100, 8 free"
        ),
    ),
    (
        MIXED,
        task(1, 8, nodeSelector={"gpu": "H200"}),
        "no node matches gpu=H200; did you mean gpu=H100?",
    ),
    (
        MIXED,
        task(1, 8, nodeSelector={"gpu": "H100", "pool": "x"}),
        "no node matches gpu=H100 and pool=x",
    ),
    (
        view([node("n0", 8, held("p", 4), labels=H100), node("n1", 8)]),
        task(1, 8, nodeSelector={"gpu": "H100"}),
        (
            f"needs 8 {GPU}: a has 12 {GPU} free on 2 nodes, but no node that matches with 8 free;"
            " 1 node matches gpu=H100, 4 free"
        ),
    ),
    (
        MIXED,
        task(1, 8, nodeName="elsewhere"),
        "no node matches metadata.name=elsewhere",
    ),
    (
        view([node("n0", 8, labels={"hardware-type": "H100"})]),
        task(1, 80, nodeSelector={"hardwaretype": "H100"}),
        "no node matches hardwaretype=H100; did you mean the label hardware-type?",
    ),
    (
        view([node("n0", 8, taints=(DEDICATED,)), node("n1", 4, taints=(DEDICATED,))]),
        task(1, 8),
        "every node has a taint that its pods do not tolerate (team:NoSchedule)",
    ),
    (
        view([node("n0", 8, taints=(DEDICATED,)), node("n1", 0)]),
        task(1, 8),
        f"every node with 8 {GPU} has a taint that its pods do not tolerate (team:NoSchedule)",
    ),
    (
        view(
            [
                node("n0", taints=(DEDICATED,)),
                node("n1", 8, held("p", 8)),
                node("n2", state=NodeState.CORDONED),
            ]
        ),
        task(1, 8),
        (
            f"needs 8 {GPU}: a has 8 {GPU} free on 1 node, but no room for 1 pod with 8;"
            " 1 node has a taint that it does not tolerate (team:NoSchedule);"
            " nodes left out: 1 cordoned"
        ),
    ),
    (
        view([node("n0", 8, cpu=4), node("n1", 0)]),
        task(1, 8, cpu=8),
        (
            f"needs 8 {GPU}: a has 8 {GPU} free on 1 node, but no node with 8 free also has 8"
            " cpu (largest 4)"
        ),
    ),
    (
        view([replace(node(name), allocatable=MEMORY, free=MEMORY) for name in ("n0", "n1")]),
        task(1, 0, overhead={"memory": "1Ti"}),
        (
            "needs 1Ti memory: a has 1Ti memory free on 2 nodes, but no node with 1Ti free"
            " (largest 512Gi)"
        ),
    ),
]


def test_pods_that_name_their_node_fit_in_its_cluster_alone_whatever_taint_it_has() -> None:
    shown = view([node("n0", 8, taints=(DEDICATED,)), node("n1", 4)])
    assert fits(shown, job(task(1, 8, nodeName="n0")))
    assert not fits(shown, job(task(1, 8, nodeName="n1")))


@pytest.mark.parametrize(("shown", "wanted", "text"), SHORT)
def test_the_message_names_the_nodes_and_what_keeps_pods_from_them(
    shown: MemberView, wanted: dict[str, Any], text: str
) -> None:
    found = place([job(wanted)], [seen(shown)])
    assert found.unplaced["j"].text == text


def test_the_message_is_about_the_first_task_without_nodes() -> None:
    pool = task(1, 1, name="pool", nodeSelector={"gpu": "H200"})
    found = place([job(task(1, 8), pool)], [seen(MIXED)])
    assert found.unplaced["j"].text == "no node matches gpu=H200; did you mean gpu=H100?"
    tasks = task(4, 5), task(2, 6, name="second"), task(1, 4, name="third")
    ground = Ground(view(node(f"n{i}", 8) for i in range(5)))
    lacks = unfit(ground, dict(job(*tasks).pods), {})
    assert lacks is not None
    assert (dict(lacks.kind.request)[GPU], lacks.wanted, lacks.most) == (5 * 10**9, 4, 3)


def test_the_message_names_the_tier() -> None:
    wanted = job(task(3, 8), networkTopology={"highestTierAllowed": 1})
    assert place([wanted], [seen(RACKS)]).unplaced["j"].text == (
        f"needs 24 {GPU}: a has 32 {GPU} free on 4 nodes,"
        " but no HyperNode of tier 1 with room for 3 pods with 8 each"
    )


SHAPES = st.sampled_from(
    [
        node("n", 8),
        node("n", 4, held("p", 1)),
        node("n", 8, taints=(DEDICATED,)),
        node("n", 8, labels=H100),
        node("n", 8, state=NodeState.CORDONED),
        node("n", 8, held("p", 1, apart=(Apart("kubernetes.io/hostname", ()),))),
    ]
)


@given(st.lists(st.lists(SHAPES, min_size=3, max_size=3), min_size=2, max_size=5))
def test_a_ground_after_changes_counts_as_a_fresh_one(steps: list[list[MemberNode]]) -> None:
    kinds = [
        Kind((("nvidia.com/gpu", 10**9),), ANY_NODE),
        Kind((("nvidia.com/gpu", 4 * 10**9),), replace(ANY_NODE, selector=(("gpu", "H100"),))),
    ]
    ground: Ground | None = None
    for step in steps:
        shown = view(replace(each, name=f"n{i}") for i, each in enumerate(step))
        ground, fresh = Ground(shown, ground), Ground(shown)
        assert ground.sums == fresh.sums
        positions = [sorted(i for _, i in each.parting) for each in (ground, fresh)]
        assert positions[0] == positions[1]
        for kind in kinds:
            assert ground.counts(kind) == fresh.counts(kind)


def test_pods_that_left_in_a_trial_are_on_their_nodes_again_when_they_return() -> None:
    room, pod = Room([seen(view([node("n0", 8, held("p", 8, job="k"))]))]), job(task(1, 8))
    for sign, fit in ((1, True), (-1, False)):
        room.leave("a", "ns/k", pod.demand, sign)
        assert room.nodes_hold("a", pod.pods) is fit


def test_pods_of_other_workloads_stay_when_all_that_are_about_to_end_have_ended() -> None:
    """A pod without a vcjob ends on n0, and another one stays on n1."""
    ends, stays = held("ends", 8, ending=True), held("stays", 8)
    shown = seen(view([node("n0", 8, ends), node("n1", 8, stays), node("n2", 4)]))
    room = Room([replace(shown, ending=Ground(shown.view).leaving(()))])
    wanted = job(task(1, 8))
    assert list(room.ranked(wanted)) == []
    after = after_ends(room)
    assert list(after.ranked(wanted)) == ["a"]
    after.hold(wanted, "a")
    after.subtract("a", wanted.demand, -1)
    assert list(after.ranked(wanted)) == [], "the sums are enough, and no node is"
    alone = seen(view([node("n0", 8)], ends))
    rooms = [
        room := Room([replace(alone, ending=Ground(alone.view).leaving(()))]),
        after_ends(room),
    ]
    assert [list(each.ranked(wanted)) for each in rooms] == [[], ["a"]], "it had no node yet"
