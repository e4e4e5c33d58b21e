"""Checks of the members by their Cluster objects. Pure."""

from dataclasses import replace
from typing import Final

from hyperjob_core.api import conditions
from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import Quantity
from hyperjob_core.api.wire import at
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERNODES, SERVICE_EXPORTS, VCJOBS, Resource
from hyperjob_core.text import listed
from hyperjob_install.objects import Component
from hyperjob_install.preflight.finding import CheckResult, failed, note, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, UnreadError, named, need
from hyperjob_install.rbac import MEMBERS, SKIP_PROPAGATION
from hyperjob_rules.validation.context import kept_classes

_SHOWN: Final = 5
# No API has the release of Volcano; these kinds came with a release, newest first.
_VOLCANO: Final = (
    (
        "1.14",
        Resource(
            "config.volcano.sh", "v1alpha1", "colocationconfigurations", "ColocationConfiguration"
        ),
    ),
    ("1.13", Resource("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob")),
    ("1.12", HYPERNODES),
)
_NO_MODELS: Final = '{"spec":{"resourceModels":null}}'


def ready(observed: ObservedPlane) -> CheckResult:
    """Check that members have joined, and that they are Ready."""
    clusters = need(observed.clusters)
    if not clusters:
        return failed("no cluster has joined", remedy="karmadactl join CLUSTER")
    down = [cluster for cluster in clusters if not _is_ready(cluster)]
    if not down:
        return ok(f"{_count(clusters)} ready: {_names(clusters)}")
    message = f"{len(down)} of {_count(clusters)} not ready: {_names(down)}"
    remedy = f"kubectl describe cluster {_name(down[0])}"
    return (failed if len(down) == len(clusters) else warning)(message, remedy=remedy)


def vcjob_api(observed: ObservedPlane) -> CheckResult:
    """Check that the members run Volcano, by the APIs in their status; name its releases."""
    return _all(
        observed,
        [cluster for cluster in need(observed.clusters) if not _serves(cluster, VCJOBS)],
        fine=f"all serve vcjobs: {_volcanos(need(observed.clusters))}",
        wrong="do not serve vcjobs and get no sub-jobs",
        remedy="install Volcano there, then see `kubectl get cluster {0} -o yaml`: apiEnablements",
    )


def resource_summary(observed: ObservedPlane) -> CheckResult:
    """Check that the members report their resources; the message lists the devices."""
    silent = [cluster for cluster in need(observed.clusters) if not _allocatable(cluster)]
    devices: dict[str, Quantity] = {}
    for cluster in need(observed.clusters):
        for name, amount in _devices(cluster).items():
            devices[name] = devices.get(name, Quantity()) + amount
    held = ", ".join(f"{amount} {name}" for name, amount in sorted(devices.items()))
    return _all(
        observed,
        silent,
        fine=f"all report their resources: {held or 'no devices'}",
        wrong="report no resources and get no sub-jobs",
        remedy="kubectl get cluster {0} -o jsonpath={{.status.conditions}}",
    )


def resource_models(observed: ObservedPlane) -> CheckResult:
    """Check for members whose resource models hide devices from Karmada's estimates."""
    hiding = {
        _name(cluster): hidden
        for cluster in need(observed.clusters)
        if (hidden := _hidden_devices(cluster))
    }
    if not hiding:
        return ok("no resource models hide devices")
    some = ", ".join(f"{name} ({', '.join(devices)})" for name, devices in hiding.items())
    first = next(iter(hiding))
    return note(
        f"resource models hide devices from Karmada's scheduler in {some}: Karmada does not"
        " schedule other workloads that request them; HyperJobs do not need its scheduler",
        remedy=f"kubectl patch cluster {first} --type=merge -p '{_NO_MODELS}'",
    )


def service_exports(observed: ObservedPlane) -> CheckResult:
    """Return a finding on ServiceExports, which only HyperJobs with plugin svc need."""
    way_out = (
        "; HyperJobs with plugin svc need the CRDs of Multi-Cluster Services there, or the"
        " argument --export=false"
    )
    if named(observed.definitions, SERVICE_EXPORTS.group_resource) is None:
        return ok("the Karmada API server does not serve ServiceExports" + way_out)
    clusters = need(observed.clusters)
    lacking = [cluster for cluster in clusters if not _serves(cluster, SERVICE_EXPORTS)]
    if not lacking:
        return ok("all members serve ServiceExports for plugin svc")
    return ok(
        f"{len(lacking)} of {_count(clusters)} do not serve ServiceExports:"
        f" {_names(lacking)}{way_out}"
    )


def priority_classes(observed: ObservedPlane) -> CheckResult:
    """Check that Karmada copies the PriorityClasses to the members, which refuse pods without."""
    known = need(observed.priority_classes)
    kept = sorted(kept_classes(known))
    if not kept:
        return ok(f"a policy of Karmada copies each PriorityClass of {len(known)} to the members")
    before = observed.settings
    skip = before.skip - {Component.PRIORITY_CLASSES}
    nothing = ("--skip", "none") if before.skip and not skip else ()
    return warning(
        f"no policy of Karmada copies PriorityClasses {listed(kept, shown=_SHOWN)}: a member that"
        " lacks one refuses the pods that name it",
        remedy=observed.install(*nothing, settings=replace(before, skip=skip)),
    )


def namespaces(observed: ObservedPlane) -> CheckResult:
    """Check that Karmada copies the namespaces of HyperJobs to the members."""
    stored = observed.stored
    if isinstance(stored, KubeError):
        raise UnreadError(str(stored))
    kept = {_name(each) for each in need(observed.kept_namespaces)}
    found = sorted(kept & set(stored.namespaces))
    if not found:
        return ok("Karmada copies the namespaces of all stored HyperJobs to the members")
    return warning(
        f"Karmada does not copy namespaces of HyperJobs to the members, by their label:"
        f" {listed(found, shown=_SHOWN)}; a member without the namespace gets no sub-job of it",
        remedy=f"kubectl label namespace {found[0]} {SKIP_PROPAGATION}-",
    )


def readable(observed: ObservedPlane) -> CheckResult:
    """Check that the account exists, and that Karmada's proxy can impersonate it in the members."""
    if named(observed.policies, MEMBERS) is None:
        return ok("the account that reads members does not exist: `install --members` creates it")
    closed = [
        cluster
        for cluster in need(observed.clusters)
        if not at(cluster, "spec", "impersonatorSecretRef")
    ]
    if closed:
        return warning(
            f"Karmada's proxy cannot read clusters without impersonatorSecretRef: {_names(closed)}",
            remedy="join them again with karmadactl, which creates the Secret",
        )
    return ok(f"{MEMBERS} may read every cluster, through Karmada's proxy")


def _all(
    observed: ObservedPlane, lacking: list[Object], *, fine: str, wrong: str, remedy: str
) -> CheckResult:
    """Return the result of a check of every member: failed if all are `lacking`, else a warning.

    `remedy` has the first of them in place of {0}.
    """
    clusters = need(observed.clusters)
    if not lacking:
        return ok(fine if clusters else "there is no member to check")
    message = f"{len(lacking)} of {_count(clusters)} {wrong}: {_names(lacking)}"
    verdict = failed if len(lacking) == len(clusters) else warning
    return verdict(message, remedy=remedy.format(_name(lacking[0])))


def _volcanos(clusters: list[Object]) -> str:
    """Return the oldest release of Volcano that each member can have, by the kinds it serves."""
    found: dict[str, list[Object]] = {}
    for cluster in clusters:
        served = (release for release, kind in _VOLCANO if _serves(cluster, kind))
        release = next(served, "")
        text = f"Volcano {release} or newer" if release else "Volcano without HyperNodes"
        found.setdefault(text, []).append(cluster)
    return "; ".join(f"{text} in {_names(members)}" for text, members in sorted(found.items()))


def _is_ready(cluster: Object) -> bool:
    return conditions.is_true(conditions.parse(cluster.get("status")), "Ready")


def _serves(cluster: Object, resource: Resource) -> bool:
    return any(
        api.get("groupVersion") == resource.api_version
        and any(each.get("kind") == resource.kind for each in api.get("resources") or [])
        for api in (cluster.get("status") or {}).get("apiEnablements") or []
    )


def _allocatable(cluster: Object) -> Object:
    summary = (cluster.get("status") or {}).get("resourceSummary") or {}
    return dict(summary.get("allocatable") or {})


def _devices(cluster: Object) -> dict[str, Quantity]:
    """Return the extended resources of a Cluster's status, by name."""
    parsed = {
        name: Quantity.parse(amount)
        for name, amount in _allocatable(cluster).items()
        if "/" in name
    }
    return {name: amount for name, amount in parsed.items() if amount > Quantity()}


def _hidden_devices(cluster: Object) -> list[str]:
    models = (cluster.get("spec") or {}).get("resourceModels") or []
    if not models:
        return []
    known = {each.get("name") for model in models for each in model.get("ranges") or []}
    return sorted(name for name in _devices(cluster) if name not in known)


def _name(cluster: Object) -> str:
    return str(cluster["metadata"]["name"])


def _names(clusters: list[Object]) -> str:
    return listed(sorted(map(_name, clusters)), shown=_SHOWN)


def _count(clusters: list[Object]) -> str:
    return f"{len(clusters)} member{'s' if len(clusters) != 1 else ''}"
