"""Lists with an item twice: the pods stay the same, and the schema of a vcjob allows the result."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.expansion.templates import distinct

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
