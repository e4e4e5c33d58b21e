"""Pods that are recognised as plain: the rules, which are then not asked, would find nothing."""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import SchemaValidator

from hyperjob.api.shape import compile_schema
from webhook.validation import validate_create
from webhook.validation.place import ROOT
from webhook.validation.podtemplate.plain import is_plain
from webhook.validation.podtemplate.spec import validate_pod_spec
from webhook.validation.report import Report
from webhook.validation.schema import hyperjob_schema

POD: dict[str, Any] = {
    "automountServiceAccountToken": False,
    "containers": [
        {
            "name": "main",
            "image": "registry.example:5000/team/train@sha256:0123",
            "imagePullPolicy": "IfNotPresent",
            "command": ["torchrun"],
            "args": ["train.py", ""],
            "env": [
                {"name": "NCCL_DEBUG", "value": "INFO"},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b.c"}}},
                {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
            ],
            "ports": [
                {"containerPort": 23456, "name": "rdzv", "protocol": "TCP"},
                {"containerPort": 80, "name": "http"},
            ],
            "resources": {
                "requests": {"cpu": "500m", "memory": "64Gi", "nvidia.com/gpu": 8},
                "limits": {"cpu": 1, "memory": "64Gi", "nvidia.com/gpu": "8"},
            },
            "securityContext": {
                "capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]},
                "privileged": True,
                "runAsUser": 1000,
            },
            "volumeMounts": [
                {"name": "data", "mountPath": "/data", "readOnly": True},
                {"name": "shm", "mountPath": "/dev/shm"},
            ],
            "workingDir": "/work",
        },
        {"name": "side", "image": "busybox"},
    ],
    "dnsPolicy": "ClusterFirstWithHostNet",
    "hostNetwork": True,
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"kubernetes.io/arch": "arm64", "pool": ""},
    "priorityClassName": "high",
    "restartPolicy": "OnFailure",
    "runtimeClassName": "nvidia",
    "schedulerName": "volcano",
    "serviceAccountName": "trainer",
    "terminationGracePeriodSeconds": 60,
    "tolerations": [
        {"operator": "Exists", "key": "nvidia.com/gpu", "effect": "NoSchedule"},
        {"key": "pool", "value": "train"},
        {"operator": "Exists"},
    ],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "host", "hostPath": {"path": "/var/lib/data", "type": "Directory"}},
        {"name": "nfs", "nfs": {"server": "10.0.0.1", "path": "/export"}},
        {"name": "map", "configMap": {"name": "settings"}},
        {"name": "secret", "secret": {"secretName": "token"}},
    ],
}
STRANGE = (
        *("", "a", "main", "data", "shm", "/data", "../a", "..a", "/a/../b", " a", "a ", "a\n"),
        *("é", "A", "a.b", "a_b", "-a", "a-", "a/b", "a/b/c", "x" * 64, "x" * 300, "a" * 16, "--"),
        *("Always", "None", "Exists", "Equal", "Default", "Localhost", "metadata.labels['a']"),
        *("500m", "1.5", "-1", "1Gi", "9" * 40, "hugepages-2Mi", "cpu", "storage", "requests.x/y"),
        *(0, 1, 2, 8, -1, 65536, 2**31, 2**63, 2**70, 1.0, 1.5, True, False, None, [], {}, [{}]),
)  # fmt: skip
ODD = st.sampled_from(STRANGE)


@cache
def schema() -> tuple[dict[str, Any], SchemaValidator]:
    node = hyperjob_schema()
    for step in ("spec", "replicatedJobs", "templateSpec", "tasks", "template", "spec"):
        node = node["properties"][step]
        node = node.get("items", node)
    return node, SchemaValidator(compile_schema(node))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a value with every key or index in it."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


@st.composite
def pods(draw: st.DrawFn) -> Any:
    """Make pods that are plain but for a few strange edits."""
    pod = copy.deepcopy(POD)
    for _ in range(draw(st.integers(0, 3))):
        holder, key = draw(st.sampled_from(list(places(pod))))
        match draw(st.sampled_from(("set", "drop", "repeat", "add", "rename"))):
            case "set":
                holder[key] = draw(ODD)
            case "repeat" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case "add" if isinstance(holder, dict):
                known = sorted(schema()[0]["properties"])
                holder[draw(st.sampled_from(known) | ODD.map(str))] = draw(ODD)
            case "rename" if isinstance(holder, dict):
                holder[draw(ODD.map(str))] = holder.pop(key)
            case _:
                del holder[key]
    return pod


def edited_once() -> Iterator[Any]:
    """Yield the plain pod with each value in turn replaced by each strange one, and renamed."""
    pod = copy.deepcopy(POD)
    for holder, key in places(pod):
        before = holder[key]
        for strange in STRANGE:
            holder[key] = strange
            yield pod
        holder[key] = before
        if isinstance(holder, dict):
            for strange in map(str, STRANGE):
                renamed = {strange if name == key else name: holder[name] for name in holder}
                kept = dict(holder)
                holder.clear()
                holder.update(renamed)
                yield pod
                holder.clear()
                holder.update(kept)
    assert pod == POD


def assert_silent(pod: Any) -> None:
    schema()[1].validate_python(pod)
    report = Report()
    validate_pod_spec(pod, ROOT, report)
    assert [str(found.error) for found in report.refusals] == []
    assert [found.text for found in report.remarks] == []


def test_the_rules_have_nothing_to_say_about_a_plain_pod_with_any_single_edit() -> None:
    plain = 0
    for pod in edited_once():
        if is_plain(pod):
            plain += 1
            assert_silent(pod)
    assert plain > 1000


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=pods())
def test_the_rules_have_nothing_to_say_about_a_plain_pod(pod: Any) -> None:
    if is_plain(pod):
        assert_silent(pod)


def test_what_pods_are_usually_made_of_is_plain() -> None:
    assert is_plain(POD)


@pytest.mark.parametrize(
    "edit",
    [
        lambda pod: pod["containers"].append(dict(pod["containers"][1])),
        lambda pod: pod["containers"][0]["ports"][1].update(name="rdzv"),
        lambda pod: pod["containers"][0]["volumeMounts"][1].update(mountPath="/data"),
        lambda pod: pod["containers"][0]["volumeMounts"][1].update(name="gone"),
        lambda pod: pod["containers"][0]["resources"]["requests"].update(cpu=2),
        lambda pod: pod["containers"][0]["resources"]["requests"].update({"nvidia.com/gpu": 4}),
        lambda pod: pod["containers"][0]["resources"]["limits"].pop("nvidia.com/gpu"),
        lambda pod: pod["containers"][0]["resources"]["limits"].update({"hugepages-2Mi": "1Mi"}),
        lambda pod: pod["containers"][0]["resources"]["requests"].update(cpu=True),
        lambda pod: pod["containers"][0]["resources"]["requests"].update(cpu=["1"]),
        lambda pod: pod["volumes"].append(dict(pod["volumes"][0])),
        lambda pod: pod["volumes"][0].update(emptyDir={}),
        lambda pod: pod["volumes"].append({"name": "none"}),
    ],
)
def test_fields_that_do_not_go_together_are_left_to_the_rules(edit: Any) -> None:
    pod = copy.deepcopy(POD)
    edit(pod)
    assert not is_plain(pod)


def test_a_plain_pod_beside_a_strange_one_changes_no_answer() -> None:
    strange = {**copy.deepcopy(POD), "restartPolicy": "Sometimes"}
    tasks = [
        {"name": name, "replicas": 1, "template": {"spec": spec}}
        for name, spec in (("a", copy.deepcopy(POD)), ("b", strange))
    ]
    jobs = [{"name": "trainer", "replicas": 1, "templateSpec": {"tasks": tasks}}]
    outcome = validate_create({"metadata": {"name": "a"}, "spec": {"replicatedJobs": jobs}})
    at = "spec.replicatedJobs[0].templateSpec.tasks[1].template.spec.restartPolicy"
    assert [str(error) for error in outcome.errors] == [
        f'{at}: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'
    ]
