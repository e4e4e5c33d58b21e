"""Checks of the members by their Cluster objects. Pure."""

from typing import Final

from hyperjob_core.api import conditions
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import HYPERNODES, VCJOBS, Resource
from hyperjob_core.text import listed
from hyperjob_install.preflight.finding import CheckResult, failed, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, need

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
    down = [cluster for cluster in clusters if not _is_ready(cluster)]
    if not down:
        return ok(f"{_count(clusters)} ready: {_names(clusters)}")
    message = f"{len(down)} of {_count(clusters)} not ready: {_names(down)}"
    remedy = " ".join(["kubectl describe cluster", *map(_name, down[:_SHOWN])])
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
        remedy=f"install Volcano there, then see `kubectl get cluster {_name(lacking[0])} -o"
        " yaml`: apiEnablements",
    )


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


def _name(cluster: Object) -> str:
    return str(cluster["metadata"]["name"])


def _names(clusters: list[Object]) -> str:
    return listed(sorted(map(_name, clusters)), shown=_SHOWN)


def _count(clusters: list[Object]) -> str:
    return f"{len(clusters)} member{'s' if len(clusters) != 1 else ''}"
