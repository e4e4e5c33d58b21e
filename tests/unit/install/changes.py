"""Changes to the definitions of a healthy server."""

from collections.abc import Callable
from typing import Any

from hyperjob_install.preflight.observed import ObservedPlane
from tests.unit.install.observations import definitions, healthy


def without(kind: str) -> ObservedPlane:
    return healthy(definitions=[each for each in definitions() if kind_of(each) != kind])


def kind_of(each: Any) -> str:
    return str(each["spec"]["names"]["kind"])


def properties_of(found: list[Any], kind: str) -> Any:
    (one,) = (each for each in found if kind_of(each) == kind)
    return one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def changed(kind: str, change: Callable[[Any], None]) -> ObservedPlane:
    """Change one definition's schema."""
    found = definitions()
    change(properties_of(found, kind))
    return healthy(definitions=found)


def drop(*path: str) -> Callable[[Any], None]:
    def change(properties: Any) -> None:
        for name in path[:-1]:
            properties = properties[name]["properties"]
        del properties[path[-1]]

    return change


def add(properties: Any) -> None:
    properties["spec"]["properties"]["future"] = {"type": "string"}


def not_established() -> ObservedPlane:
    return healthy(definitions=[{**each, "status": {}} for each in definitions()])


MARKS = {
    "1.19": ("ResourceBinding", "spec", "clusters", "[]", "components"),
    "1.18": (
        "PropagationPolicy",
        "spec",
        "placement",
        "clusterAffinities",
        "[]",
        "overflowAffinities",
    ),
    "1.17": ("PropagationPolicy", "spec", "placement", "workloadAffinity"),
    "1.15": ("ResourceBinding", "spec", "components"),
    "1.13": ("ResourceBinding", "spec", "suspension"),
}


def karmada(release: str) -> ObservedPlane:
    """Remove the fields that came after a release, or all of them."""
    found = definitions()
    for mark, (kind, *path) in MARKS.items():
        if mark == release:
            break
        remove(properties_of(found, kind), *path)
    return healthy(definitions=found)


def remove(properties: Any, *path: str) -> None:
    if path[1:2] == ("[]",):
        items = properties.get(path[0], {}).get("items", {}).get("properties", {})
        remove(items, *path[2:])
    elif path[1:]:
        remove(properties.get(path[0], {}).get("properties", {}), *path[1:])
    else:
        properties.pop(path[0], None)
