"""How the Works of a binding become its `aggregatedStatus` and its FullyApplied condition.

Pure. It must never remember: a Work whose apply failed shows no status any more, although the
object may still run in the member.
"""

from collections.abc import Iterable
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.bindings import target_clusters
from hyperjob_sandbox.karmada.works import find_condition, set_condition

_APPLIED: Final = ("True", "FullyAppliedSuccess", "All works have been successfully applied")
_NOT_APPLIED: Final = (
    "False",
    "FullyAppliedFailed",
    "Failed to apply all works, see status.aggregatedStatus for details",
)


def aggregated_status(works: Iterable[Object]) -> list[Object]:
    """Return one item per cluster of the Works that are not being deleted, sorted by cluster."""
    items = [_item(work) for work in works if not work["metadata"].get("deletionTimestamp")]
    return sorted(items, key=lambda item: str(item["clusterName"]))


def binding_status(binding: Object, works: Iterable[Object], *, now: str) -> Object:
    """Return the binding's status with the items and the FullyApplied condition of its Works."""
    status: Object = dict(binding.get("status") or {})
    items = aggregated_status(works)
    if items:
        status["aggregatedStatus"] = items
    else:
        status.pop("aggregatedStatus", None)
    targets = set(target_clusters(binding))
    for required in binding["spec"].get("requiredBy") or ():
        targets.update(cluster["name"] for cluster in required.get("clusters") or ())
    complete = (
        bool(targets)
        and len(items) == len(targets)
        and all(item.get("applied") and item["clusterName"] in targets for item in items)
    )
    status["conditions"] = set_condition(
        status.get("conditions") or [],
        "FullyApplied",
        _APPLIED if complete else _NOT_APPLIED,
        now=now,
    )
    return status


def _item(work: Object) -> Object:
    cluster = names.cluster_of(work["metadata"]["namespace"]) or ""
    applied = find_condition(work, "Applied")
    if applied is None or applied["status"] != "True":
        item: Object = {"clusterName": cluster, "health": "Unknown"}
        if applied is not None:
            item["appliedMessage"] = applied["message"]
        return item
    item = {"applied": True, "clusterName": cluster, "health": "Unknown"}
    for entry in (work.get("status") or {}).get("manifestStatuses") or ():
        if entry["identifier"]["ordinal"] == 0:
            item["health"] = entry["health"]
            if "status" in entry:
                item["status"] = entry["status"]
            break
    return item
