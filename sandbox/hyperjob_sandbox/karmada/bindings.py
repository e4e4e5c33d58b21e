"""What a binding looks like, and what a detector's sync overwrites in a live one.

Pure: template and policy in, ResourceBinding (or ClusterResourceBinding) out. It must never touch
`spec.clusters`, the scheduler's field, nor labels and annotations of other components.
"""

from copy import deepcopy
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.policies import claim

API_VERSION: Final = "work.karmada.io/v1alpha2"

_OVERWRITTEN: Final = (
    "resource",
    "replicaRequirements",
    "replicas",
    "components",
    "propagateDeps",
    "schedulerName",
    "placement",
    "failover",
    "conflictResolution",
    "preserveResourcesOnDeletion",
    "schedulePriority",
    "workloadAffinityGroups",
)


class OwnerMismatchError(Exception):
    """The binding of this name belongs to another object; wait for its removal and try again."""

    def __init__(self) -> None:
        super().__init__(
            "failed to update binding due to different owner reference UID, will try again later "
            "after binding is garbage collected, see "
            "https://github.com/karmada-io/karmada/issues/2090"
        )


def build_binding(template: Object, policy: Object, *, interpretation: Object) -> Object:
    """Build the binding a policy wants for a template.

    `interpretation` holds what the resource interpreter says of the template: `replicas`,
    `replicaRequirements` or `components`, each optional.
    """
    meta: Object = template["metadata"]
    namespace: str = meta.get("namespace", "")
    spec: Object = policy["spec"]
    resource: Object = {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "name": meta["name"],
        "resourceVersion": meta["resourceVersion"],
        "uid": meta["uid"],
    }
    metadata: Object = {
        "name": names.binding_name(template["kind"], meta["name"]),
        "finalizers": [names.BINDING_FINALIZER if namespace else names.CLUSTER_BINDING_FINALIZER],
        "ownerReferences": [
            {
                "apiVersion": template["apiVersion"],
                "blockOwnerDeletion": True,
                "controller": True,
                "kind": template["kind"],
                "name": meta["name"],
                "uid": meta["uid"],
            }
        ],
    }
    if namespace:
        resource["namespace"] = metadata["namespace"] = namespace
    wanted: Object = {"placement": deepcopy(spec.get("placement") or {}), "resource": resource}
    for field in (
        "conflictResolution",
        "failover",
        "preserveResourcesOnDeletion",
        "propagateDeps",
        "schedulerName",
    ):
        if spec.get(field) not in (None, "", False):
            wanted[field] = deepcopy(spec[field])
    wanted.update(deepcopy(interpretation))
    suspension = merge_suspension(None, spec.get("suspension"))
    if suspension is not None:
        wanted["suspension"] = suspension
    binding: Object = {
        "apiVersion": API_VERSION,
        "kind": "ResourceBinding" if namespace else "ClusterResourceBinding",
        "metadata": metadata,
        "spec": wanted,
    }
    return claim(binding, policy)


def new_binding(desired: Object, *, permanent_id: str) -> Object:
    """Return the desired binding ready to be created, with the id Karmada's webhook gives it."""
    binding = deepcopy(desired)
    cluster_scoped = not binding["metadata"].get("namespace")
    key = names.CLUSTER_BINDING_ID if cluster_scoped else names.BINDING_ID
    binding["metadata"].setdefault("labels", {})[key] = permanent_id
    return binding


def sync_binding(live: Object, desired: Object) -> Object:
    """Return the live binding with every field overwritten that a detector's sync overwrites.

    Raises OwnerMismatchError when the live one belongs to another object.
    """
    owner = _controller_uid(live)
    if owner is not None and owner != _controller_uid(desired):
        raise OwnerMismatchError
    binding = deepcopy(live)
    meta, wanted = binding["metadata"], desired["metadata"]
    for field in ("labels", "annotations"):
        merged = {**(meta.get(field) or {}), **(wanted.get(field) or {})}
        if merged:
            meta[field] = merged
    finalizers = meta.setdefault("finalizers", [])
    finalizers.extend(each for each in wanted["finalizers"] if each not in finalizers)
    meta["ownerReferences"] = deepcopy(wanted["ownerReferences"])
    spec: Object = binding["spec"]
    for field in _OVERWRITTEN:
        if field in desired["spec"]:
            spec[field] = deepcopy(desired["spec"][field])
        else:
            spec.pop(field, None)
    suspension = merge_suspension(spec.get("suspension"), desired["spec"].get("suspension"))
    if suspension is None:
        spec.pop("suspension", None)
    else:
        spec["suspension"] = suspension
    if names.POLICY_ID in (wanted.get("labels") or {}):
        meta["labels"].pop(names.CLUSTER_POLICY_ID, None)
        meta["annotations"].pop(names.CLUSTER_POLICY_NAME, None)
    return binding


def merge_suspension(live: Object | None, policy: Object | None) -> Object | None:
    """Merge a policy's suspension into a binding's: it gives dispatching, scheduling stays."""
    merged: Object = {}
    if live is not None and live.get("scheduling") is not None:
        merged["scheduling"] = live["scheduling"]
    if policy is None:
        return merged or None
    for field in ("dispatching", "dispatchingOnClusters"):
        if policy.get(field) is not None:
            merged[field] = deepcopy(policy[field])
    return merged


def is_suspended(suspension: Object | None, cluster: str) -> bool:
    """Tell whether dispatching to a cluster is suspended."""
    if not suspension:
        return False
    if suspension.get("dispatching"):
        return True
    listed = (suspension.get("dispatchingOnClusters") or {}).get("clusterNames") or ()
    return cluster in listed


def target_clusters(binding: Object) -> tuple[str, ...]:
    """Return the names of the clusters the scheduler chose, and of those that need it there."""
    spec: Object = binding["spec"]
    lists = [spec.get("clusters"), *(each.get("clusters") for each in spec.get("requiredBy") or ())]
    return tuple(dict.fromkeys(cluster["name"] for each in lists for cluster in each or ()))


def _controller_uid(obj: Object) -> str | None:
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference["uid"])
    return None
