"""Checks of the API server: Karmada's APIs, release and feature gates. Pure."""

from collections.abc import Mapping
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.api.wire import at
from hyperjob_core.kube.resources import PROPAGATION_POLICIES, RESOURCE_BINDINGS, VCJOBS, Resource
from hyperjob_install.definitions import schema_of
from hyperjob_install.interpreters import VCJOB_NAME, operations
from hyperjob_install.preflight.finding import CheckResult, failed, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, named, need
from hyperjob_install.preflight.volcano import has_volcano_global

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
_TASK_NAME_BYTES: Final = 32


def api_server(observed: ObservedPlane) -> CheckResult:
    """Return a finding with the API server's address and version."""
    return ok(f"Kubernetes {observed.version} answers at {observed.host}")


def karmada(observed: ObservedPlane) -> CheckResult:
    """Check that the API server is Karmada's, of a supported release."""
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
    return ok(text)


def oldest_release(observed: ObservedPlane) -> tuple[int, int] | None:
    """Return the oldest release that serves the found fields; None before 1.13."""
    for release, resource, path in _MARKS:
        definition = named(observed.definitions, resource.group_resource)
        if definition is not None and _knows(schema_of(definition, resource.version), path):
            return release
    return None


def lease_namespace(observed: ObservedPlane) -> CheckResult:
    """Check that the namespace of the controller's Lease exists; Karmada never propagates it."""
    name = LEASE_NAMESPACE
    if not need(observed.namespaces):
        return failed(
            f"namespace {name}, for the controller's Lease, does not exist",
            remedy=f"kubectl create namespace {name}",
        )
    return ok(f"namespace {name}, for the controller's Lease, exists")


def multiple_pod_templates(observed: ObservedPlane) -> CheckResult:
    """Return a finding on the feature gate MultiplePodTemplatesScheduling, by its effect."""
    state = pod_templates_gate(observed)
    if state is None:
        return ok("gate MultiplePodTemplatesScheduling: unknown until Karmada has bound a vcjob")
    if not state:
        return ok("gate MultiplePodTemplatesScheduling is off")
    live = named(observed.interpreters, VCJOB_NAME)
    if live is not None and "componentResource" in operations(live):
        return ok(
            "gate MultiplePodTemplatesScheduling is on: HyperJob's interpreter gives each vcjob one"
            " component"
        )
    # Karmada's own interpreter makes one component of each task, named after it.
    problem = (
        "Volcano Global counts no resources for vcjobs: its quotas have no effect"
        if has_volcano_global(observed)
        else f"Karmada cannot bind a vcjob with a task name over {_TASK_NAME_BYTES} bytes"
    )
    return failed(
        f"gate MultiplePodTemplatesScheduling is on, customization {VCJOB_NAME} has no"
        f" componentResource, and {problem}",
        remedy=observed.install(),
    )


def pod_templates_gate(observed: ObservedPlane) -> bool | None:
    """Return whether the gate is on; None while no vcjob has a ResourceBinding."""
    specs = [binding.get("spec") or {} for binding in need(observed.bindings)]
    ours = [spec for spec in specs if _is_of_vcjob(spec)]
    if any(spec.get("components") for spec in ours):
        return True
    return False if any(spec.get("replicas") for spec in ours) else None


def _is_of_vcjob(spec: Object) -> bool:
    resource = spec.get("resource") or {}
    return (resource.get("apiVersion"), resource.get("kind")) == (VCJOBS.api_version, VCJOBS.kind)


def _knows(schema: Mapping[str, object], path: tuple[str, ...]) -> bool:
    found: object = schema
    for name in path:
        found = at(found, "items") if name == _ITEM else at(found, "properties", name)
    return found is not None
