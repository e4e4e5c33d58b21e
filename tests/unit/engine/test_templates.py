"""Templates of vcjobs: the order in which Volcano takes the pods, and lists with an item twice."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.names import TASK_PRIORITY
from hyperjob_engine.expansion.templates import distinct, in_order
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


A1, A2, B = {"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B", "value": "3"}
SEES_A = {"name": "B", "value": "$(A)/x"}


def vcjob(box=None, **pod):
    return {"tasks": [{"name": "t", "template": {"spec": {**pod, "containers": [box or {}]}}}]}


BOXES = {
    "the last variable of a name": ({"env": [A1, B, A2]}, {"env": [B, A2]}),
    "one to which a value before the last refers": (
        {"env": [A1, SEES_A, A2]},
        {"env": [A1, SEES_A, A2]},
    ),
    "the first port of a number and protocol": (
        {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 80, "protocol": "TCP"}]},
        {"ports": [{"containerPort": 80, "name": "a"}]},
    ),
    "ports of two protocols": (
        {"ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]},
        {"ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]},
    ),
}


@pytest.mark.parametrize("case", BOXES)
def test_a_container_keeps(case):
    given_box, wanted = BOXES[case]
    assert distinct(vcjob(given_box)) == vcjob(wanted)


def test_a_pod_keeps_one_secret_of_a_name_and_all_host_names_of_an_address():
    template = vcjob(
        imagePullSecrets=[{"name": "s"}, {"name": "s"}],
        hostAliases=[
            {"ip": "10.0.0.1", "hostnames": ["a"]},
            {"ip": "10.0.0.1", "hostnames": ["b"]},
        ],
    )
    assert distinct(template) == vcjob(
        imagePullSecrets=[{"name": "s"}],
        hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a", "b"]}],
    )


def environment(variables):
    """Return what a kubelet makes of variables."""
    found = {}
    for each in variables:
        value = each["value"]
        for name, known in found.items():
            value = value.replace(f"$({name})", known)
        found[each["name"]] = value
    return found


@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from("ABC"), "value": st.sampled_from(["1", "$(A)", "$(B)-2"])}
        ),
        max_size=6,
    )
)
def test_a_container_gets_the_same_environment(variables):
    template = vcjob({"env": variables})
    before = json.dumps(template)
    (task,) = distinct(template)["tasks"]
    found = task["template"]["spec"]["containers"][0]["env"]
    assert environment(found) == environment(variables)
    assert json.dumps(template) == before
