"""No rule about pods compares each item of a list with every other: four times the items take about
four times as long, and not sixteen."""

from collections.abc import Callable
from contextlib import suppress
from time import thread_time
from typing import Any

import pytest

from hyperjob_core.api.field import ROOT
from hyperjob_rules.validation.podtemplate.spec import validate_pod_spec
from hyperjob_rules.validation.rules import EnoughError, Report

FEW = 1000
MANY = 4 * FEW
QUADRATIC = 9.0

Make = Callable[[int], dict[str, Any]]


def names(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"a{number}", **fields} for number in range(count)]


def of_container(field: str, make: Callable[[int], Any]) -> Make:
    return lambda count: {"containers": [{"name": "a", "image": "b", field: make(count)}]}


def spread(count: int) -> list[dict[str, Any]]:
    return [
        {"maxSkew": 1, "topologyKey": f"a{number}", "whenUnsatisfiable": "DoNotSchedule"}
        for number in range(count)
    ]


def mounted(count: int) -> list[dict[str, Any]]:
    return [{"name": f"a{number}", "mountPath": f"/a{number}"} for number in range(count)]


def mounts(count: int) -> dict[str, Any]:
    volumes = names(count, persistentVolumeClaim={"claimName": "a"})
    devices = [{"name": f"a{n}", "devicePath": f"/b{n}"} for n in range(count)]
    container = {
        "name": "a",
        "image": "b",
        "volumeMounts": mounted(count),
        "volumeDevices": devices,
    }
    return {"containers": [container], "volumes": volumes}


def claims(count: int) -> dict[str, Any]:
    resources = {"claims": [{"name": "a", "request": f"r{n}"} for n in range(count)]}
    container = {"name": "a", "image": "b", "resources": resources}
    return {"containers": [container], "resourceClaims": names(count, resourceClaimName="a")}


def selector(count: int) -> dict[str, Any]:
    expressions = [{"key": f"a{n}", "operator": "Exists"} for n in range(count)]
    keys = [f"b{n}" for n in range(count)]
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": expressions},
        "matchLabelKeys": keys,
        "mismatchLabelKeys": [f"c{n}" for n in range(count)],
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"containers": [{"name": "a", "image": "b"}], "affinity": {"podAffinity": required}}


def projected(count: int) -> dict[str, Any]:
    sources = [
        {"secret": {"name": "a", "items": [{"key": "a", "path": f"a{n}"}]}} for n in range(count)
    ]
    volume = {"name": "a", "projected": {"sources": sources}}
    return {"containers": [{"name": "a", "image": "b"}], "volumes": [volume]}


def on(field: str, make: Callable[[int], Any]) -> Make:
    return lambda count: {"containers": [{"name": "a", "image": "b"}], field: make(count)}


LISTS: dict[str, Make] = {
    "containers": lambda count: {"containers": names(count, image="b")},
    "initContainers": on("initContainers", lambda count: names(count, image="b")),
    "host ports": of_container(
        "ports", lambda count: [{"containerPort": n + 1, "hostPort": n + 1} for n in range(count)]
    ),
    "ports": of_container("ports", lambda count: names(count, containerPort=1)),
    "env": of_container("env", names),
    "envFrom": of_container("envFrom", lambda count: [{"secretRef": {"name": "a"}}] * count),
    "limits": of_container(
        "resources", lambda count: {"limits": {f"a.example/b{n}": 1 for n in range(count)}}
    ),
    "mounts and devices": mounts,
    "claims": claims,
    "unknown mounts": of_container(
        "volumeMounts",
        lambda count: [{"name": f"a{n}", "mountPath": f"/{n}"} for n in range(count)],
    ),
    "tolerations": on("tolerations", lambda count: [{"key": f"a{n}"} for n in range(count)]),
    "topologySpreadConstraints": on("topologySpreadConstraints", spread),
    "the same constraint": on("topologySpreadConstraints", lambda count: spread(1) * count),
    "schedulingGates": on("schedulingGates", names),
    "selectors": selector,
    "nodeSelector": on("nodeSelector", lambda count: {f"a{n}": "b" for n in range(count)}),
    "sysctls": on("securityContext", lambda count: {"sysctls": names(count, value="1")}),
    "projected files": projected,
    "hostAliases": on("hostAliases", lambda count: [{"ip": "10.0.0.1"}] * count),
}


def seconds(spec: dict[str, Any]) -> float:
    """Return the least processor time of a few judgements."""
    best = float("inf")
    for _ in range(5):
        started = thread_time()
        with suppress(EnoughError):
            validate_pod_spec(spec, ROOT, Report())
        best = min(best, thread_time() - started)
    return best


@pytest.mark.parametrize("name", LISTS)
def test_time_grows_with_the_number_of_items_and_not_with_its_square(name: str) -> None:
    make = LISTS[name]
    few, many = make(FEW), make(MANY)
    assert seconds(many) < QUADRATIC * max(seconds(few), 1e-5)
