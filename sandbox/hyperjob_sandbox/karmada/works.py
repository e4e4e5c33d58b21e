"""The Work that carries a template to one cluster, and what it says of the object there."""

from copy import deepcopy
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import BINDING_NAME, BINDING_NAMESPACE, work_name, works_namespace
from hyperjob_sandbox.karmada import interpreter, names
from hyperjob_sandbox.objects import State, annotations_of, labels_of, merge_marks, owner_reference

DISPATCHING: Final = ("True", "Dispatching", "Work is being dispatched to member clusters.")
SUSPENDED: Final = ("False", "SuspendDispatching", "Work dispatching is in a suspended state.")
APPLIED: Final = ("True", "AppliedSuccessful", "Manifest has been successfully applied")
_KEPT: Final = frozenset({"name", "namespace", "labels", "annotations"})
"""The metadata that nothing but the author of an object writes."""


def prune(obj: Object) -> Object:
    """Return a copy without what an API server fills in, and without a status."""
    meta = {key: value for key, value in obj["metadata"].items() if key in _KEPT}
    kept = {key: value for key, value in obj.items() if key != "status"}
    kept = deepcopy({**kept, "metadata": meta})
    if kept.get("kind") == "Job" and isinstance(kept.get("spec"), dict):
        kept["spec"].pop("ttlSecondsAfterFinished", None)
    return kept


def build_work(
    template: Object,
    *,
    cluster: str,
    work_id: str,
    binding: Object | None = None,
) -> Object:
    """Build the Work for one cluster; without a binding (namespaces) the template owns it."""
    suspension: Object = ((binding or {}).get("spec") or {}).get("suspension") or {}
    metadata: Object = {
        **address(template, cluster),
        "labels": {names.WORK_ID: work_id},
        "finalizers": [names.WORK_FINALIZER],
    }
    if binding is None:
        metadata["ownerReferences"] = [owner_reference(template)]
    else:
        merge_marks(metadata, _marks_of(binding))
        resolution = _conflict_resolution(template, binding)
        metadata["annotations"][names.CONFLICT_RESOLUTION] = resolution
    return {
        "apiVersion": "work.karmada.io/v1alpha1",
        "kind": "Work",
        "metadata": metadata,
        "spec": {
            "preserveResourcesOnDeletion": False,
            "suspendDispatching": bool(suspension.get("dispatching")),
            "workload": {"manifests": [_manifest(template, metadata)]},
        },
    }


def address(template: Object, cluster: str) -> Object:
    """Return name and namespace of the Work that carries a template to a cluster."""
    meta: Object = template["metadata"]
    return {
        "name": work_name(meta["name"], meta.get("namespace", ""), kind=template["kind"]),
        "namespace": works_namespace(cluster),
    }


def sync_work(live: Object, desired: Object) -> Object:
    """Return the live Work with labels and annotations merged and the spec replaced."""
    work = {**live, "metadata": dict(live["metadata"]), "spec": desired["spec"]}
    merge_marks(work["metadata"], desired["metadata"])
    return work


def manifest_status(obj: Object, *, ordinal: int) -> Object:
    """Return the entry of `status.manifestStatuses` for a member object."""
    group, _, version = obj["apiVersion"].rpartition("/")
    entry: Object = {
        "health": interpreter.health(obj),
        "identifier": {
            "group": group,
            "kind": obj["kind"],
            "name": obj["metadata"]["name"],
            "namespace": obj["metadata"].get("namespace", ""),
            "ordinal": ordinal,
            "resource": "",
            "version": version,
        },
    }
    status = interpreter.reflect_status(obj)
    if status is not None:
        entry["status"] = status
    return entry


def apply_failed(error: str) -> State:
    """Return status, reason and message of the Applied condition of a manifest that failed."""
    return "False", "AppliedFailed", f"Failed to apply all manifests (0/1): {error}"


def _manifest(template: Object, work: Object) -> Object:
    manifest = prune(template)
    labels = {**labels_of(manifest), **work["labels"], names.MANAGED: "true"}
    marks = {
        **annotations_of(manifest),
        **(work.get("annotations") or {}),
        names.TEMPLATE_UID: template["metadata"]["uid"],
        names.WORK_NAME: work["name"],
        names.WORK_NAMESPACE: work["namespace"],
    }
    generation = template["metadata"].get("generation")
    if generation and "annotations" in work:
        marks[names.TEMPLATE_GENERATION] = str(generation)
    marks[names.MANAGED_LABELS] = ",".join(sorted(labels))
    marks[names.MANAGED_ANNOTATIONS] = ",".join(sorted({*marks, names.MANAGED_ANNOTATIONS}))
    manifest["metadata"] |= {"labels": labels, "annotations": marks}
    return manifest


def _marks_of(binding: Object) -> Object:
    """Return the labels and annotations that say which binding a Work was made for."""
    name, namespace = binding["metadata"]["name"], binding["metadata"].get("namespace")
    annotations = {names.CLUSTER_BINDING_NAME: name}
    if namespace:
        annotations = {BINDING_NAME: name, BINDING_NAMESPACE: namespace}
    label = names.BINDING_ID if namespace else names.CLUSTER_BINDING_ID
    return {"labels": {label: labels_of(binding).get(label, "")}, "annotations": annotations}


def _conflict_resolution(template: Object, binding: Object) -> str:
    own = annotations_of(template).get(names.CONFLICT_RESOLUTION)
    if own in {"overwrite", "abort"}:
        return own
    return "overwrite" if binding["spec"].get("conflictResolution") == "Overwrite" else "abort"
