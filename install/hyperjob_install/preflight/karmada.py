"""Check of the API server: Karmada's APIs and release. Pure."""

from collections.abc import Mapping
from typing import Final

from hyperjob_core.api.wire import at
from hyperjob_core.kube.resources import PROPAGATION_POLICIES, RESOURCE_BINDINGS, Resource
from hyperjob_install.definitions import schema_of
from hyperjob_install.preflight.finding import CheckResult, failed, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, named

GROUPS: Final = ("cluster.karmada.io", "config.karmada.io", "policy.karmada.io", "work.karmada.io")

_ITEM: Final = "[]"
# Karmada's API server has no version of Karmada; these fields of its CRDs show it, newest first.
_MARKS: Final[tuple[tuple[tuple[int, int], Resource, tuple[str, ...]], ...]] = (
    ((1, 19), RESOURCE_BINDINGS, ("spec", "clusters", _ITEM, "components")),
    (
        (1, 18),
        PROPAGATION_POLICIES,
        ("spec", "placement", "clusterAffinities", _ITEM, "overflowAffinities"),
    ),
    ((1, 17), PROPAGATION_POLICIES, ("spec", "placement", "workloadAffinity")),
    ((1, 15), RESOURCE_BINDINGS, ("spec", "components")),
    ((1, 13), RESOURCE_BINDINGS, ("spec", "suspension", "scheduling")),
)
# Karmada 1.13 can suspend scheduling; Karmada 1.16 collects the whole status of vcjobs.
_WHOLE_STATUS: Final = (1, 17)


def karmada(observed: ObservedPlane) -> CheckResult:
    """Check that the API server is Karmada's, of a supported release; name both."""
    missing = [group for group in GROUPS if group not in observed.groups]
    if missing:
        return failed(
            f"this is not a Karmada API server: it does not serve {', '.join(missing)}",
            remedy="give the kubeconfig of the Karmada API server with --kubeconfig",
        )
    release = oldest_release(observed)
    if release is None:
        return failed(
            "Karmada is older than 1.13 and cannot suspend the scheduling of an object",
            remedy="upgrade Karmada to 1.16 or newer",
        )
    text = f"Karmada is {release[0]}.{release[1]} or newer"
    if release < _WHOLE_STATUS:
        return warning(
            f"{text}; before 1.16 Karmada does not collect the status of vcjobs by itself",
            remedy="check that Karmada is 1.16 or newer, or upgrade it",
        )
    return ok(f"{text}; Kubernetes {observed.version} answers at {observed.host}")


def oldest_release(observed: ObservedPlane) -> tuple[int, int] | None:
    """Return the oldest release that serves the found fields; None before 1.13."""
    for release, resource, path in _MARKS:
        definition = named(observed.definitions, resource.group_resource)
        if definition is not None and _knows(schema_of(definition, resource.version), path):
            return release
    return None


def _knows(schema: Mapping[str, object], path: tuple[str, ...]) -> bool:
    found: object = schema
    for name in path:
        found = at(found, "items") if name == _ITEM else at(found, "properties", name)
    return found is not None
