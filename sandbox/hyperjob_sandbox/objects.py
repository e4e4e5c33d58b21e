"""Small questions about any Kubernetes object, and the few parts that many builders share."""

from collections.abc import Mapping, Sequence

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import is_true, mapping, objects
from hyperjob_core.kube.resources import Resource
from hyperjob_sandbox.apiserver.selectors import SelectorError, label_selector

FIELD_MANAGER = "hyperjob-sandbox"
"""Owns what the sandbox installs."""
State = tuple[str, str, str]
"""Status, reason and message of a condition."""


def new_object(
    resource: Resource, name: str, *, labels: Object | None = None, **rest: object
) -> Object:
    """Return an object to create: its type and name, labels where given, and its other parts."""
    metadata: Object = {"name": name, **({"labels": labels} if labels else {})}
    kind = resource.head
    return {**kind, "metadata": metadata, **rest}


def labels_of(obj: Object) -> dict[str, str]:
    """Return the labels of an object."""
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    """Return the annotations of an object."""
    return obj["metadata"].get("annotations") or {}


def is_going(obj: Object) -> bool:
    """Tell whether an object is being deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def phase_of(obj: Object) -> str:
    """Return the phase of a pod or a PodGroup."""
    return str((obj.get("status") or {}).get("phase") or "Pending")


def is_open(queue: Object | None) -> bool:
    """Tell whether a Queue is there and open."""
    return ((queue or {}).get("status") or {}).get("state") == "Open"


def owner_reference(owner: Object) -> Object:
    """Return the reference that makes `owner` the controller of another object."""
    return {
        "apiVersion": owner["apiVersion"],
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }


def controller_uid(obj: Object) -> str | None:
    """Return the uid of the object that controls another one, None when there is none."""
    references: list[Object] = obj["metadata"].get("ownerReferences") or []
    return next((str(each["uid"]) for each in references if each.get("controller")), None)


def merge_marks(meta: Object, wanted: Object) -> None:
    """Add the labels and annotations of other metadata to metadata, in place."""
    for field in ("labels", "annotations"):
        merged = {**(meta.get(field) or {}), **(wanted.get(field) or {})}
        if merged:
            meta[field] = merged


def is_ready(obj: Object | None) -> bool:
    """Tell whether the Ready condition of a Cluster or a node is True."""
    return is_true(obj, "Ready")


def with_conditions(status: Object | None, *, now: str, **states: State) -> Object:
    """Return a status with conditions set; the time of each moves only when its status flips."""
    found = {str(each.get("type")): each for each in objects(mapping(status).get("conditions"))}
    for kind, (truth, reason, message) in states.items():
        old = found.get(kind, {})
        time = old.get("lastTransitionTime") if old.get("status") == truth else None
        new = {"type": kind, "status": truth, "reason": reason, "message": message}
        found[kind] = {**new, "lastTransitionTime": time or now}
    return {**(status or {}), "conditions": list(found.values())}


def matches_labels(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Tell whether labels satisfy a LabelSelector: an empty one takes all, a malformed one none."""
    try:
        return label_selector(selector or {}).matches(labels)
    except SelectorError:
        return False


def untolerated_taint(
    taints: Sequence[Object], tolerations: Sequence[Object], *, effects: frozenset[str]
) -> Object | None:
    """Return the first taint with one of the effects that nothing tolerates, or None."""
    for taint in taints:
        if taint.get("effect") in effects and not any(
            _tolerates(toleration, taint) for toleration in tolerations
        ):
            return taint
    return None


def _tolerates(toleration: Object, taint: Object) -> bool:
    if any(
        toleration.get(field) and toleration[field] != taint.get(field)
        for field in ("effect", "key")
    ):
        return False
    equal = bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
    return equal or toleration.get("operator") == "Exists"
