"""What a binding looks like, and what a detector's sync overwrites in a live one."""

from copy import deepcopy
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_sandbox.controller import RetryError
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.policies import claim
from hyperjob_sandbox.objects import controller_uid, merge_marks, owner_reference

_OF_POLICY: Final = ("conflictResolution", "propagateDeps", "schedulerName")
_OVERWRITTEN: Final = (
    "resource",
    "placement",
    "replicas",
    "replicaRequirements",
    "components",
    *_OF_POLICY,
)


def carrier(template: Object, *, spec: Object) -> Object:
    """Build the binding of a template, owned by it, with more fields in its spec."""
    meta: Object = template["metadata"]
    namespaced = bool(meta.get("namespace"))
    kept = ("name", "namespace", "resourceVersion", "uid")
    reference = {field: template[field] for field in ("apiVersion", "kind")}
    reference |= {field: meta[field] for field in kept if field in meta}
    metadata: Object = {
        "name": binding_name(meta["name"], kind=template["kind"]),
        "finalizers": [names.BINDING_FINALIZER if namespaced else names.CLUSTER_BINDING_FINALIZER],
        "ownerReferences": [owner_reference(template)],
    }
    if namespaced:
        metadata["namespace"] = meta["namespace"]
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding" if namespaced else "ClusterResourceBinding",
        "metadata": metadata,
        "spec": {"resource": reference, **spec},
    }


def build_binding(template: Object, policy: Object, *, interpretation: Object) -> Object:
    """Build the binding a policy wants; `interpretation` may have replicas or components."""
    given: Object = policy["spec"]
    spec = {"placement": given.get("placement") or {}}
    spec |= {field: given[field] for field in _OF_POLICY if given.get(field)}
    spec |= interpretation
    suspension = merge_suspension(None, given.get("suspension"))
    if suspension is not None:
        spec["suspension"] = suspension
    return claim(carrier(template, spec=deepcopy(spec)), policy)


def new_binding(desired: Object, *, permanent_id: str) -> Object:
    """Return the desired binding ready to be created, with the id Karmada's webhook gives it."""
    binding = deepcopy(desired)
    namespaced = binding["metadata"].get("namespace")
    key = names.BINDING_ID if namespaced else names.CLUSTER_BINDING_ID
    binding["metadata"].setdefault("labels", {})[key] = permanent_id
    return binding


def sync_binding(live: Object, desired: Object) -> Object:
    """Return the live binding with every field overwritten that a detector's sync overwrites.

    Raises RetryError while the live one belongs to another object.
    """
    if controller_uid(live) not in (None, controller_uid(desired)):
        raise RetryError(
            "failed to update binding due to different owner reference UID, will try again later "
            "after binding is garbage collected, see "
            "https://github.com/karmada-io/karmada/issues/2090"
        )
    binding, desired = deepcopy(live), deepcopy(desired)
    meta, wanted = binding["metadata"], desired["metadata"]
    merge_marks(meta, wanted)
    finalizers = meta.setdefault("finalizers", [])
    finalizers.extend(each for each in wanted["finalizers"] if each not in finalizers)
    meta["ownerReferences"] = wanted["ownerReferences"]
    suspension = merge_suspension(live["spec"].get("suspension"), desired["spec"].get("suspension"))
    found = {**desired["spec"], "suspension": suspension}
    for field in (*_OVERWRITTEN, "suspension"):
        binding["spec"].pop(field, None)
        if found.get(field) is not None:
            binding["spec"][field] = found[field]
    if names.POLICY_ID in (wanted.get("labels") or {}):
        meta["labels"].pop(names.CLUSTER_POLICY_ID, None)
        meta["annotations"].pop(names.CLUSTER_POLICY_NAME, None)
    return binding


def merge_suspension(live: Object | None, policy: Object | None) -> Object | None:
    """Merge a policy's suspension into a binding's: it gives dispatching, scheduling stays."""
    owners = {"scheduling": live or {}, "dispatching": policy or {}}
    merged = {field: owner.get(field) for field, owner in owners.items()}
    return {field: value for field, value in merged.items() if value is not None} or None


def target_clusters(binding: Object) -> tuple[str, ...]:
    """Return the names of the clusters the scheduler chose, and of those that need it there."""
    spec: Object = binding["spec"]
    lists = [spec.get("clusters"), *(each.get("clusters") for each in spec.get("requiredBy") or ())]
    return tuple(dict.fromkeys(cluster["name"] for each in lists for cluster in each or ()))
