"""What people type at kubectl, against built-in kinds, where the transcript has none of it.

kubectl sends many of these bodies as protobuf.
"""

import json
from typing import Any

import pytest

from tests.support.controlplane import ControlPlane

pytestmark = pytest.mark.scenario

CREATES: list[tuple[str, list[str], dict[str, Any]]] = [
    (
        "configmap c",
        ["configmap", "c", "--from-literal=a=b"],
        {"data": {"a": "b"}},
    ),
    (
        "secret s",
        ["secret", "generic", "s", "--from-literal=a=b"],
        {"data": {"a": "Yg=="}, "type": "Opaque"},
    ),
    ("serviceaccount robot", ["serviceaccount", "robot"], {}),
    (
        "role r",
        ["role", "r", "--verb=get,list", "--resource=pods"],
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]},
    ),
    (
        "rolebinding rb",
        ["rolebinding", "rb", "--role=r", "--user=ann"],
        {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}},
    ),
    (
        "poddisruptionbudget p",
        ["pdb", "p", "--selector=a=b", "--min-available=50%"],
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}},
    ),
    ("quota q", ["quota", "q", "--hard=pods=3"], {"spec": {"hard": {"pods": "3"}}}),
]


def read(plane: ControlPlane, *arguments: str) -> dict[str, Any]:
    return dict(json.loads(plane.kubectl("get", *arguments, "-o", "json").stdout))


@pytest.mark.parametrize(("what", "arguments", "expected"), CREATES, ids=lambda v: str(v)[:24])
def test_create_makes_what_was_asked(
    control_plane: ControlPlane,
    namespace: str,
    what: str,
    arguments: list[str],
    expected: dict[str, Any],
) -> None:
    control_plane.kubectl("create", *arguments, "-n", namespace)
    found = read(control_plane, *what.split(), "-n", namespace)
    assert {key: found[key] for key in expected} == expected


def test_apply_merges_lists_of_builtin_kinds_by_key(
    control_plane: ControlPlane, namespace: str
) -> None:
    def service(*ports: int) -> str:
        spec = {"ports": [{"port": port, "name": f"p{port}"} for port in ports]}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
        return json.dumps(body)

    where = ("-n", namespace)
    control_plane.kubectl("apply", "-f", "-", *where, stdin=service(80, 81))
    again = control_plane.kubectl("apply", "-f", "-", *where, stdin=service(80, 81))
    assert again.stdout == "service/s unchanged\n"
    extra = json.dumps({"spec": {"ports": [{"port": 90, "name": "mine"}]}})
    control_plane.kubectl("patch", "service", "s", "-p", extra, *where)
    control_plane.kubectl("apply", "-f", "-", *where, stdin=service(80))
    found = read(control_plane, "service", "s", *where)
    assert {port["port"] for port in found["spec"]["ports"]} == {80, 90}


def test_events_are_shown_with_what_they_are_about(
    control_plane: ControlPlane, namespace: str
) -> None:
    where = ("-n", namespace)
    control_plane.kubectl("create", "configmap", "c", *where)
    uid = read(control_plane, "configmap", "c", *where)["metadata"]["uid"]
    about = {"kind": "ConfigMap", "name": "c", "namespace": namespace, "uid": uid}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "c.1", "namespace": namespace},
        "involvedObject": {**about, "apiVersion": "v1"},
        "reason": "Tested",
        "message": "it was tested",
        "type": "Warning",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 3,
        "source": {"component": "test"},
    }
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(event))
    described = control_plane.kubectl("describe", "configmap", "c", *where).stdout
    assert "(x3 over" in described
    assert "it was tested" in described
    listed = control_plane.kubectl("events", "--for=configmap/c", *where).stdout
    assert "Tested" in listed


MISSING = {
    "a kind": ("training.volcano.sh/v1alpha1", "Hyperjob"),
    "a version": ("training.volcano.sh/v1", "HyperJob"),
    "a group": ("training.volcano.org/v1alpha1", "HyperJob"),
}


@pytest.mark.parametrize(("version", "kind"), MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("verb", ["apply", "create"])
def test_a_kind_that_is_not_served_has_no_matches(
    control_plane: ControlPlane, namespace: str, verb: str, version: str, kind: str
) -> None:
    text = json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})
    done = control_plane.kubectl(verb, "-n", namespace, "-f", "-", stdin=text, check=False)
    assert done.returncode == 1
    assert f'no matches for kind "{kind}" in version "{version}"' in done.stderr
    assert done.stderr.startswith("error: resource mapping not found"), done.stderr
