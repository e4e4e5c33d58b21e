"""Gang placement: all or nothing, and never more on a node than it has."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.member.gang import (
    FreeNode,
    GangPod,
    Minimum,
    domains,
    fit_error,
    free_node,
    is_suitable,
    place,
    request_of,
)


def node(name="n", labels=None, taints=(), unschedulable=False, **allocatable):
    amounts = {"pods": "10", **{key.replace("_", "/"): str(v) for key, v in allocatable.items()}}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"allocatable": amounts},
    }


def pod_spec(gpus=1, **spec):
    limits = {"example.com/gpu": gpus}
    return {"containers": [{"name": "c", "resources": {"limits": limits}}], **spec}


def gang(count, task="worker", gpus=1, **spec):
    made = pod_spec(gpus, **spec)
    return [GangPod(f"{task}-{index}", task, request_of(made), made) for index in range(count)]


def free(*gpus):
    return [
        free_node(node(f"n{index}", **{"example.com_gpu": amount}), [])
        for index, amount in enumerate(gpus)
    ]


sizes = st.lists(st.integers(0, 8), min_size=1, max_size=6)
wanted = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=4)


@given(capacities=sizes, tasks=wanted, short=st.integers(0, 3), running=st.integers(0, 2))
def test_a_gang_is_placed_whole_or_not_at_all_and_never_over_capacity(
    capacities, tasks, short, running
):
    nodes = free(*capacities)
    before = [dict(each.free) for each in nodes]
    pods = [
        pod
        for index, (count, gpus) in enumerate(tasks)
        for pod in gang(count, task=f"t{index}", gpus=gpus)
    ]
    minimum = Minimum(
        max(0, len(pods) + running - short),
        {f"t{index}": max(0, count - short) for index, (count, _) in enumerate(tasks)},
    )
    placed = place(pods, nodes, minimum, running={"t0": running})
    by_key = {pod.key: pod for pod in pods}
    used = {each.name: Counter() for each in nodes}
    for key, name in placed.items():
        used[name].update(by_key[key].request)
    for each, had in zip(nodes, before, strict=True):
        for resource, amount in had.items():
            assert used[each.name][resource] <= amount
            assert each.free[resource] == amount - used[each.name][resource]
    if placed:
        count = Counter(by_key[key].task for key in placed)
        count["t0"] += running
        assert minimum.is_met(count)


@given(capacities=sizes, count=st.integers(1, 20))
def test_a_gang_of_single_gpus_is_placed_exactly_when_there_are_enough(capacities, count):
    room = sum(min(amount, 10) for amount in capacities)
    placed = place(gang(count), free(*capacities), Minimum(count, {"worker": count}))
    assert len(placed) == (count if count <= room else 0)


def test_every_task_reaches_its_minimum_before_any_gets_more():
    pods = gang(4, task="a") + gang(1, task="b")
    placed = place(pods, free(3), Minimum(3, {"a": 2, "b": 1}))
    assert Counter(key[0] for key in placed) == {"a": 2, "b": 1}


def test_minima_of_tasks_count_where_the_whole_asks_for_all_of_them():
    pods = [pod for task in "abcd" for pod in gang(1, task=task)]
    each = dict.fromkeys("abcd", 1)
    assert len(place(pods, free(3), Minimum(1, each))) == 3
    assert place(pods, free(3), Minimum(4, each)) == {}


def test_the_fullest_node_that_fits_is_taken_first():
    placed = place(gang(2), free(8, 2), Minimum(2, {}))
    assert set(placed.values()) == {"n1"}


def test_finished_pods_take_nothing_of_a_node():
    pods = [
        {"spec": pod_spec(2), "status": {"phase": "Running"}},
        {"spec": pod_spec(1), "status": {"phase": "Succeeded"}},
    ]
    left = free_node(node(**{"example.com_gpu": 8}), pods).free
    assert left == {"example.com/gpu": 6 * 10**9, "pods": 9 * 10**9}


def affinity(*expressions):
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
ASCEND = {"key": "hardware-type", "operator": "In", "values": ["Ascend910C"]}


@pytest.mark.parametrize(
    ("spec", "target", "suits"),
    [
        ({}, node(), True),
        ({"nodeSelector": {"a": "b"}}, node(labels={"a": "b"}), True),
        ({"nodeSelector": {"a": "b"}}, node(labels={"a": "c"}), False),
        (affinity(ASCEND), node(labels={"hardware-type": "Ascend910C"}), True),
        (affinity(ASCEND), node(labels={"hardware-type": "Ascend910B"}), False),
        (affinity({"key": "n", "operator": "Gt", "values": ["3"]}), node(labels={"n": "4"}), True),
        (affinity({"key": "n", "operator": "Lt", "values": ["3"]}), node(labels={"n": "4"}), False),
        (affinity({"key": "n", "operator": "Exists"}), node(), False),
        (affinity({"key": "n", "operator": "DoesNotExist"}), node(), True),
        (affinity(), node(), False),
        ({}, node(taints=[TAINT]), False),
        ({"tolerations": [{"key": "dedicated", "value": "x"}]}, node(taints=[TAINT]), True),
        ({"tolerations": [{"key": "dedicated", "value": "y"}]}, node(taints=[TAINT]), False),
        ({"tolerations": [{"operator": "Exists"}]}, node(taints=[TAINT]), True),
        ({}, node(taints=[{**TAINT, "effect": "PreferNoSchedule"}]), True),
        ({}, node(unschedulable=True), False),
    ],
)
def test_labels_affinity_and_taints_decide_which_nodes_suit(spec, target, suits):
    assert is_suitable(pod_spec(**spec), free_node(target, [])) is suits


@pytest.mark.parametrize("part", ["volcano.sh/vgpu-cores", "huawei.com/Ascend310P-memory"])
def test_part_of_a_shared_device_counts_where_the_node_lists_it(part: str):
    node = FreeNode("n", Counter(cpu=10**9))
    assert node.holds({part: 50})
    node.free.subtract({part: 50})
    assert node.holds({part: 50})
    assert not FreeNode("n", Counter({part: 49})).holds({part: 50})


def test_an_amount_that_no_node_has_is_never_free():
    assert not FreeNode("n", Counter(cpu=10**9)).holds({"example.com/gpu": 1})


@pytest.mark.parametrize(
    ("pods", "nodes", "told"),
    [
        (gang(2, gpus=16), free(8, 8), "worker-0: 0/2 nodes are unavailable: 2 Insufficient"),
        (gang(3, gpus=8), free(8, 8), "worker-2: 0/2 nodes are unavailable: 2 Insufficient"),
        (gang(1), [], "worker-0: 0/0 nodes are unavailable"),
        (
            gang(3, hostNetwork=True, containers=[{"ports": [{"containerPort": 22}]}]),
            free(8, 8),
            "worker-2: 0/2 nodes are unavailable: 2 node(s) didn't have free ports",
        ),
        (
            gang(1, nodeSelector={"zone": "a"}),
            free(8),
            "worker-0: 0/1 nodes are unavailable: 1 node(s) didn't match Pod's node affinity",
        ),
    ],
    ids=[
        "larger than a node",
        "more than there is room for",
        "no node",
        "a port of the node",
        "another label",
    ],
)
def test_the_first_pod_without_a_node_names_what_nodes_lack(pods, nodes, told):
    before = [dict(each.free) for each in nodes]
    fitting, why = fit_error(pods, nodes)
    assert why.startswith(f". Origin reason is {told}")
    assert fitting == (2 if len(pods) == 3 else 0)
    assert [each.free for each in nodes] == before


def hypernode(name, tier, kind, *members):
    selectors = [
        {"regexMatch": {"pattern": each}} if "." in each else {"exactMatch": {"name": each}}
        for each in members
    ]
    found = [{"type": kind, "selector": each} for each in selectors]
    return {"metadata": {"name": name}, "spec": {"tier": tier, "members": found}}


RACKS = [
    hypernode("spine", 2, "HyperNode", "r."),
    hypernode("r0", 1, "Node", "n0", "n1"),
    hypernode("r1", 1, "Node", "n[2-3].*"),
]


@pytest.mark.parametrize(
    ("topology", "sets"),
    [
        (None, [[0, 1, 2, 3]]),
        ({"mode": "soft", "highestTierAllowed": 1}, [[0, 1, 2, 3]]),
        ({"mode": "hard"}, [[0, 1, 2, 3]]),
        ({"mode": "hard", "highestTierAllowed": 1}, [[0, 1], [2, 3]]),
        ({"highestTierAllowed": 2}, [[0, 1], [2, 3], [0, 1, 2, 3]]),
        ({"mode": "hard", "highestTierAllowed": 3}, [[0, 1], [2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]),
    ],
)
def test_a_hard_topology_allows_the_nodes_of_one_hypernode(topology, sets):
    found = domains(RACKS, free(8, 8, 8, 8), topology)
    assert [[int(node.name[1]) for node in nodes] for nodes in found] == sets
