"""Checks of the API server itself: is it Karmada's, how new, and with which gates. Pure."""

from collections.abc import Mapping
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.install.definitions import schema_of
from hyperjob.install.preflight.finding import CheckResult, failed, ok, warning
from hyperjob.install.preflight.observed import Observed, named, need
from hyperjob.install.preflight.volcano import has_volcano_global
from hyperjob.install.rbac import SKIP_PROPAGATION
from hyperjob.kube.resources import PROPAGATION_POLICIES, RESOURCE_BINDINGS, VCJOBS, Resource

GROUPS: Final = ("cluster.karmada.io", "config.karmada.io", "policy.karmada.io", "work.karmada.io")

# Karmada's API has no version; the fields of its definitions give it away, newest first.
_MARKS: Final[tuple[tuple[tuple[int, int], Resource, tuple[str, ...]], ...]] = (
    ((1, 17), PROPAGATION_POLICIES, ("spec", "placement", "workloadAffinity")),
    ((1, 15), RESOURCE_BINDINGS, ("spec", "components")),
    ((1, 13), RESOURCE_BINDINGS, ("spec", "suspension", "scheduling")),
)
# Scheduling can be suspended from 1.13 on; the whole status of vcjobs is brought back from 1.16 on.
_WHOLE_STATUS: Final = (1, 17)
_TASK_NAME_BYTES: Final = 32


def api_server(observed: Observed) -> CheckResult:
    """Say which server answered."""
    return ok(f"Kubernetes {observed.version} answers at {observed.host}")


def karmada(observed: Observed) -> CheckResult:
    """Check that it is Karmada's API server, new enough."""
    missing = [group for group in GROUPS if group not in observed.groups]
    if missing:
        return failed(
            f"this is not the Karmada API server: it does not serve {', '.join(missing)}",
            remedy="give the kubeconfig of the Karmada API server with --kubeconfig",
        )
    release = oldest_release(observed)
    if release is None:
        return failed(
            "Karmada is older than 1.13, where the scheduling of one object cannot be suspended",
            remedy="upgrade Karmada to 1.16 or newer",
        )
    text = f"Karmada is {release[0]}.{release[1]} or newer"
    if release < _WHOLE_STATUS:
        return warning(
            f"{text}; before 1.16 it does not bring the status of vcjobs back by itself",
            remedy="make sure that it is 1.16 or newer, or upgrade Karmada",
        )
    return ok(text)


def oldest_release(observed: Observed) -> tuple[int, int] | None:
    """Return the oldest release that it can be, None for one before 1.13."""
    for release, resource, path in _MARKS:
        definition = named(observed.definitions, resource.group_resource)
        if definition is not None and _knows(schema_of(definition, resource.version), path):
            return release
    return None


def lease_namespace(observed: Observed) -> CheckResult:
    """Check that the controller has a namespace for its Lease, and that no member gets a copy."""
    name = observed.lease_namespace
    found = need(observed.namespaces)
    if not found:
        return failed(
            f"namespace {name}, for the controller's Lease, does not exist",
            remedy=f"kubectl create namespace {name}",
        )
    labels = found[0]["metadata"].get("labels") or {}
    if not name.startswith(("karmada-", "kube-")) and labels.get(SKIP_PROPAGATION) != "true":
        return warning(
            f"namespace {name} is copied to every member",
            remedy=f"kubectl label namespace {name} {SKIP_PROPAGATION}=true",
        )
    return ok(f"namespace {name} holds the controller's Lease")


def multiple_pod_templates(observed: Observed) -> CheckResult:
    """Return whether the gate MultiplePodTemplatesScheduling is on, seen by its effect."""
    state = pod_templates_gate(observed)
    if state is None:
        return ok("gate MultiplePodTemplatesScheduling: no vcjob is bound yet that would show it")
    if not state:
        return ok("gate MultiplePodTemplatesScheduling is off")
    if has_volcano_global(observed):
        return failed(
            "gate MultiplePodTemplatesScheduling is on, and Volcano Global counts every vcjob as"
            " nothing: its quotas do not hold",
            remedy="set --feature-gates=MultiplePodTemplatesScheduling=false on"
            " karmada-controller-manager and karmada-scheduler, or do without its quotas with"
            " --queue-admission none",
        )
    return warning(
        "gate MultiplePodTemplatesScheduling is on: Karmada binds no vcjob with a task name over"
        f" {_TASK_NAME_BYTES} bytes",
        remedy="keep task names short, or set --feature-gates=MultiplePodTemplatesScheduling=false"
        " on karmada-controller-manager and karmada-scheduler",
    )


def pod_templates_gate(observed: Observed) -> bool | None:
    """Return whether the gate is on; None when no vcjob's binding is there to show it."""
    specs = [binding.get("spec") or {} for binding in need(observed.bindings)]
    ours = [spec for spec in specs if _is_of_vcjob(spec)]
    if any(spec.get("components") for spec in ours):
        return True
    return False if any(spec.get("replicas") for spec in ours) else None


def _is_of_vcjob(spec: Object) -> bool:
    resource = spec.get("resource") or {}
    return (resource.get("apiVersion"), resource.get("kind")) == (VCJOBS.api_version, VCJOBS.kind)


def _knows(schema: Mapping[str, object], path: tuple[str, ...]) -> bool:
    for name in path:
        properties = schema.get("properties")
        child = properties.get(name) if isinstance(properties, Mapping) else None
        if not isinstance(child, Mapping):
            return False
        schema = child
    return True
