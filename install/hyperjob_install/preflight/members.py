"""Checks of the members by their Clusters, and by what they let the controller read. Pure."""

from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import is_true
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import CLUSTERS, HYPERNODES, VCJOBS, Resource, key_of
from hyperjob_core.text import listed
from hyperjob_install.preflight.finding import CheckResult, failed, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, need
from hyperjob_install.rbac import MEMBER_ROLE, MEMBERS

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


def ready(observed: ObservedPlane) -> CheckResult:
    """Check that members have joined, and that they are Ready."""
    clusters = need(observed.clusters)
    if not clusters:
        return failed("no cluster has joined", remedy="karmadactl join CLUSTER")
    down = [cluster for cluster in clusters if not is_true(cluster, "Ready")]
    if not down:
        return ok(f"{_count(clusters)} ready: {_names(clusters)}")
    message = f"{len(down)} of {_count(clusters)} not ready: {_names(down)}"
    remedy = " ".join(["kubectl describe cluster", *map(key_of, down[:_SHOWN])])
    return (failed if len(down) == len(clusters) else warning)(message, remedy=remedy)


def vcjob_api(observed: ObservedPlane) -> CheckResult:
    """Check that the members run Volcano, by the APIs in their status; name its releases."""
    clusters = need(observed.clusters)
    lacking = [cluster for cluster in clusters if not _serves(cluster, VCJOBS)]
    if not clusters:
        return ok("there is no member to check")
    if not lacking:
        return ok(f"all serve vcjobs: {_volcanos(clusters)}")
    verdict = failed if len(lacking) == len(clusters) else warning
    return verdict(
        f"{len(lacking)} of {_count(clusters)} do not serve vcjobs and get no sub-jobs:"
        f" {_names(lacking)}",
        remedy=f"install Volcano there, then see `kubectl get cluster"
        f" {' '.join(map(key_of, lacking[:_SHOWN]))} -o yaml`: apiEnablements",
    )


def reader(observed: ObservedPlane) -> CheckResult:
    """Check that the members let the account of the controller read there, by their own answer."""
    step, found = observed.settings.members, observed.members
    errors = {name: each for name, each in found.items() if isinstance(each, KubeError)}
    refusing = {
        name: each
        for name, each in found.items()
        if not isinstance(each, KubeError) and each.refused
    }
    if step is MemberAccess.OFF:
        return ok("the controller reads no members")
    if refusing:
        name, first = next(iter(sorted(refusing.items())))
        return warning(
            f"{len(refusing)} of {len(found)} members refuse what user {first.user} reads there,"
            f" and count by the sums of their Clusters: {listed(sorted(refusing), shown=_SHOWN)};"
            f" {name} refuses {listed(first.refused, shown=_SHOWN)}",
            remedy=f"kubectl get clusterpropagationpolicy {MEMBERS} -o yaml: Karmada copies"
            f" ClusterRole {MEMBER_ROLE} and its binding to {name} by it",
        )
    if errors:
        name, error = next(iter(sorted(errors.items())))
        return warning(
            f"{len(errors)} of {len(found)} members cannot be asked through Karmada's proxy:"
            f" {listed(sorted(errors), shown=_SHOWN)}; {name}: {error.message}",
            remedy=f"kubectl get --raw {CLUSTERS.path(None, name, 'proxy')}/version",
        )
    return ok(f"the controller may read all that are ready: {len(found)}")


def _volcanos(clusters: list[Object]) -> str:
    """Return the oldest release of Volcano that each member can have, by the kinds it serves."""
    found: dict[str, list[Object]] = {}
    for cluster in clusters:
        served = (release for release, kind in _VOLCANO if _serves(cluster, kind))
        release = next(served, "")
        text = f"Volcano {release} or newer" if release else "Volcano without HyperNodes"
        found.setdefault(text, []).append(cluster)
    return "; ".join(f"{text} in {_names(members)}" for text, members in sorted(found.items()))


def _serves(cluster: Object, resource: Resource) -> bool:
    return any(
        api.get("groupVersion") == resource.api_version
        and any(each.get("kind") == resource.kind for each in api.get("resources") or [])
        for api in (cluster.get("status") or {}).get("apiEnablements") or []
    )


def _names(clusters: list[Object]) -> str:
    return listed(sorted(map(key_of, clusters)), shown=_SHOWN)


def _count(clusters: list[Object]) -> str:
    return f"{len(clusters)} member{'s' if len(clusters) != 1 else ''}"
