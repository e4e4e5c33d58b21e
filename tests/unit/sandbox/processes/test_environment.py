"""A container's command and variables are what a kubelet would make of them."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.processes.environment import MissingSourceError, Sources, environment
from hyperjob_sandbox.processes.expansion import expand

POD = {
    "metadata": {
        "name": "p-0",
        "namespace": "team",
        "uid": "u",
        "labels": {"app": "x"},
        "annotations": {"note": "n"},
    },
    "spec": {
        "nodeName": "node-1",
        "containers": [
            {"name": "c", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}},
        ],
    },
    "status": {"podIP": "127.64.0.2"},
}
SOURCES = Sources(
    config_maps={"cm": {"data": {"A": "1", "B": "2"}}},
    secrets={"s": {"data": {"KEY": base64.b64encode(b"hidden").decode()}}},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$(C)", "$(C)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A", "$A"),
        ("$(A", "$(A"),
        ("$", "$"),
        ("", ""),
    ],
)
def test_references_are_expanded(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


@given(st.text())
def test_a_text_without_a_dollar_stays(text: str) -> None:
    assert expand(text.replace("$", ""), {"A": "1"}) == text.replace("$", "")


VARIABLES = {
    "a value": ([{"name": "X", "value": "v"}], {"X": "v"}),
    "an earlier variable": (
        [{"name": "X", "value": "v"}, {"name": "Y", "value": "$(X)-$(Z)"}],
        {"X": "v", "Y": "v-$(Z)"},
    ),
    "a field": ([{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                {"X": "127.64.0.2"}),
    "a label": (
        [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}],
        {"X": "x"},
    ),
    "cores are rounded up": (
        [{"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
        {"X": "2"},
    ),
    "memory in its divisor": (
        [{"name": "X", "valueFrom": {"resourceFieldRef":
            {"resource": "limits.memory", "divisor": "1Mi"}}}],
        {"X": "1024"},
    ),
    "a key of a ConfigMap": (
        [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "B"}}}], {"X": "2"},
    ),
    "a key of a Secret": (
        [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "KEY"}}}],
        {"X": "hidden"},
    ),
    "an optional key that does not exist": (
        [{"name": "X", "valueFrom": {"secretKeyRef":
            {"name": "none", "key": "KEY", "optional": True}}}],
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIABLES)
def test_variables_come_from_everywhere(name: str) -> None:
    env, expected = VARIABLES[name]
    container = {**POD["spec"]["containers"][0], "env": env}
    assert environment(POD, container, SOURCES) == expected


def test_env_from_takes_all_keys_and_env_wins() -> None:
    container = {
        "name": "c",
        "envFrom": [
            {"configMapRef": {"name": "cm"}, "prefix": "P_"},
            {"secretRef": {"name": "none", "optional": True}},
        ],
        "env": [{"name": "P_A", "value": "own"}],
    }
    assert environment(POD, container, SOURCES) == {"P_A": "own", "P_B": "2"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "no", "key": "A"}}, 'configmap "no" not found'),
        ({"secretKeyRef": {"name": "no", "key": "A"}}, 'secret "no" not found'),
        ({"configMapKeyRef": {"name": "cm", "key": "C"}}, "couldn't find key C in ConfigMap cm"),
        ({"fieldRef": {"fieldPath": "spec.color"}}, "unsupported fieldRef: spec.color"),
    ],
)
def test_what_is_missing_is_named(source: dict, message: str) -> None:
    container = {"name": "c", "env": [{"name": "X", "valueFrom": source}]}
    with pytest.raises(MissingSourceError, match=message):
        environment(POD, container, SOURCES)
