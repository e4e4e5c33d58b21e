"""The Work that carries a template to one cluster, and what it says of the object there.

Pure: template, binding and cluster in, Work out; and the conditions and statuses a Work holds. It
must never hold a member's credentials or decide whether to dispatch.
"""

from copy import deepcopy
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.karmada import interpreter, names

API_VERSION: Final = "work.karmada.io/v1alpha1"

DISPATCHING: Final = (
    "True",
    "Dispatching",
    "Work is being dispatched to member clusters.",
)
SUSPENDED: Final = ("False", "SuspendDispatching", "Work dispatching is in a suspended state.")
APPLIED: Final = ("True", "AppliedSuccessful", "Manifest has been successfully applied")
_POPULATED: Final = (
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)


def prune(obj: Object) -> Object:
    """Return a copy without what an API server fills in, a status, or a Job's time to live."""
    kept: Object = {key: deepcopy(value) for key, value in obj.items() if key != "status"}
    for field in _POPULATED:
        kept["metadata"].pop(field, None)
    if kept.get("kind") == "Job" and isinstance(kept.get("spec"), dict):
        kept["spec"].pop("ttlSecondsAfterFinished", None)
    return kept


def build_work(
    template: Object,
    *,
    cluster: str,
    work_id: str,
    binding: Object | None = None,
    suspend: bool = False,
) -> Object:
    """Build the Work for one cluster; without a binding (namespaces) the template owns it."""
    meta: Object = template["metadata"]
    name = names.work_name(template["kind"], meta["name"], meta.get("namespace", ""))
    space = names.execution_space(cluster)
    labels: dict[str, str] = {names.WORK_ID: work_id}
    annotations: dict[str, str] = {}
    if binding is not None:
        binding_labels, annotations = _binding_marks(binding)
        labels.update(binding_labels)
        annotations[names.CONFLICT_RESOLUTION] = _conflict_resolution(template, binding)
    work: Object = {
        "apiVersion": API_VERSION,
        "kind": "Work",
        "metadata": {
            "name": name,
            "namespace": space,
            "labels": labels,
            "finalizers": [names.WORK_FINALIZER],
        },
        "spec": {
            "preserveResourcesOnDeletion": bool(
                binding and binding["spec"].get("preserveResourcesOnDeletion")
            ),
            "suspendDispatching": suspend,
            "workload": {"manifests": [_manifest(template, labels, annotations, name, space)]},
        },
    }
    if annotations:
        work["metadata"]["annotations"] = annotations
    if binding is None:
        work["metadata"]["ownerReferences"] = [_owner(template)]
    return work


def sync_work(live: Object, desired: Object) -> Object:
    """Return the live Work with labels and annotations merged and the spec replaced."""
    work = deepcopy(live)
    for field in ("labels", "annotations"):
        merged = {**(work["metadata"].get(field) or {}), **(desired["metadata"].get(field) or {})}
        if merged:
            work["metadata"][field] = merged
    work["spec"] = deepcopy(desired["spec"])
    return work


def work_id(work: Object | None) -> str | None:
    """Return the permanent id of a Work, None when there is no Work."""
    if work is None:
        return None
    value: str | None = (work["metadata"].get("labels") or {}).get(names.WORK_ID)
    return value


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


def apply_failed(errors: list[str], *, succeeded: int, total: int) -> tuple[str, str, str]:
    """Return status, reason and message of an Applied condition that failed."""
    text = errors[0] if len(errors) == 1 else "[" + ", ".join(errors) + "]"
    return "False", "AppliedFailed", f"Failed to apply all manifests ({succeeded}/{total}): {text}"


def set_condition(
    conditions: list[Object], kind: str, state: tuple[str, str, str], *, now: str
) -> list[Object]:
    """Return conditions with one set; its transition time moves only when its status flips."""
    status, reason, message = state
    entry: Object = {
        "lastTransitionTime": now,
        "message": message,
        "reason": reason,
        "status": status,
        "type": kind,
    }
    result = list(conditions)
    for index, old in enumerate(result):
        if old["type"] == kind:
            if old["status"] == status:
                entry["lastTransitionTime"] = old["lastTransitionTime"]
            result[index] = {**old, **entry}
            return result
    result.append(entry)
    return result


def find_condition(obj: Object, kind: str) -> Object | None:
    """Return a condition of an object's status, None when it has none of that type."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            return dict(condition)
    return None


def _manifest(
    template: Object,
    labels: dict[str, str],
    annotations: dict[str, str],
    name: str,
    space: str,
) -> Object:
    manifest = prune(template)
    meta: Object = manifest["metadata"]
    meta["labels"] = {
        **(meta.get("labels") or {}),
        **labels,
        names.MANAGED: "true",
    }
    marks = {
        **(meta.get("annotations") or {}),
        **annotations,
        names.TEMPLATE_UID: template["metadata"]["uid"],
        names.WORK_NAME: name,
        names.WORK_NAMESPACE: space,
    }
    generation = template["metadata"].get("generation")
    if generation and annotations:
        marks[names.TEMPLATE_GENERATION] = str(generation)
    marks[names.MANAGED_LABELS] = ",".join(sorted(meta["labels"]))
    marks[names.MANAGED_ANNOTATIONS] = ",".join(sorted({*marks, names.MANAGED_ANNOTATIONS}))
    meta["annotations"] = marks
    return manifest


def _binding_marks(binding: Object) -> tuple[dict[str, str], dict[str, str]]:
    meta: Object = binding["metadata"]
    if meta.get("namespace"):
        label = names.BINDING_ID
        annotations = {
            names.BINDING_NAMESPACE: meta["namespace"],
            names.BINDING_NAME: meta["name"],
        }
    else:
        label = names.CLUSTER_BINDING_ID
        annotations = {names.CLUSTER_BINDING_NAME: meta["name"]}
    return {label: (meta.get("labels") or {}).get(label, "")}, annotations


def _conflict_resolution(template: Object, binding: Object) -> str:
    own = (template["metadata"].get("annotations") or {}).get(names.CONFLICT_RESOLUTION)
    if own in {"overwrite", "abort"}:
        return str(own)
    return "overwrite" if binding["spec"].get("conflictResolution") == "Overwrite" else "abort"


def _owner(template: Object) -> Object:
    return {
        "apiVersion": template["apiVersion"],
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": template["kind"],
        "name": template["metadata"]["name"],
        "uid": template["metadata"]["uid"],
    }
