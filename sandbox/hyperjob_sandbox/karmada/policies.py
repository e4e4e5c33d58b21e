"""Which policy propagates a template, and what claiming it writes."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.objects import annotations_of, is_going, labels_of, matches_labels

_MARKS: Final = {
    "labels": (names.POLICY_ID, names.CLUSTER_POLICY_ID),
    "annotations": (names.POLICY_NAMESPACE, names.POLICY_NAME, names.CLUSTER_POLICY_NAME),
}
_DEFAULTS: Final = {
    "conflictResolution": "Abort",
    "preemption": "Never",
    "priority": 0,
    "schedulerName": names.DEFAULT_SCHEDULER,
}


def is_cluster_policy(policy: Object) -> bool:
    """Tell a ClusterPropagationPolicy from a PropagationPolicy."""
    return not policy["metadata"].get("namespace")


def policy_id(policy: Object) -> str:
    """Return the permanent id of a policy, "" while it has none."""
    return labels_of(policy).get(_id_label(policy), "")


def default_policy(policy: Object, *, permanent_id: str) -> Object:
    """Return the policy with the defaults, the permanent id and the finalizer Karmada gives it."""
    policy = deepcopy(policy)
    meta: Object = policy["metadata"]
    meta.setdefault("labels", {}).setdefault(_id_label(policy), permanent_id)
    finalizers = meta.setdefault("finalizers", [])
    finalizer = (
        names.CLUSTER_POLICY_FINALIZER if is_cluster_policy(policy) else names.POLICY_FINALIZER
    )
    if finalizer not in finalizers and not is_going(policy):
        finalizers.append(finalizer)
    spec: Object = policy.setdefault("spec", {})
    if not is_cluster_policy(policy):
        for selector in spec.get("resourceSelectors") or ():
            selector.setdefault("namespace", meta["namespace"])
    spec.setdefault("placement", {})
    policy["spec"] = {**_DEFAULTS, **spec}
    return policy


def precision(policy: Object, template: Object) -> int:
    """Return how closely the best selector of a policy names a template.

    0 is not at all, 1 by its kind, 2 by its labels, 3 by its name.
    """
    selectors = policy["spec"].get("resourceSelectors") or ()
    return max((_selector_precision(each, template) for each in selectors), default=0)


def selects(policy: Object, template: Object) -> bool:
    """Tell whether a policy names a template, in one way or another, within its namespace.

    None does in a namespace that Karmada skips.
    """
    scope, namespace = (each["metadata"].get("namespace", "") for each in (policy, template))
    inside = scope in ("", namespace) and not names.is_skipped_namespace(namespace)
    return inside and precision(policy, template) > 0


def best_policy(policies: Iterable[Object], template: Object) -> Object | None:
    """Return the policy that wins a template: priority, then precision, then the lower name."""
    fitting = (each for each in policies if not is_going(each) and selects(each, template))
    return min(
        fitting,
        key=lambda each: (-priority(each), -precision(each, template), each["metadata"]["name"]),
        default=None,
    )


def priority(policy: Object) -> int:
    """Return the explicit priority of a policy."""
    return int(policy["spec"].get("priority") or 0)


def preempts(policy: Object, bound: Object) -> bool:
    """Tell whether a policy takes a template away from the policy it is bound to."""
    if policy["spec"].get("preemption") != "Always":
        return False
    if is_cluster_policy(bound) != is_cluster_policy(policy):
        return is_cluster_policy(bound)
    return priority(policy) > priority(bound)


def claim(obj: Object, policy: Object) -> Object:
    """Return the template or binding with the marks of the policy and of no other."""
    obj = unclaim(obj)
    meta, owner = obj["metadata"], policy["metadata"]
    meta.setdefault("labels", {})[_id_label(policy)] = policy_id(policy)
    annotations = meta.setdefault("annotations", {})
    if is_cluster_policy(policy):
        annotations[names.CLUSTER_POLICY_NAME] = owner["name"]
    else:
        annotations[names.POLICY_NAMESPACE] = owner["namespace"]
        annotations[names.POLICY_NAME] = owner["name"]
    return obj


def unclaim(obj: Object) -> Object:
    """Return the template or binding without the marks of any policy."""
    meta = dict(obj["metadata"])
    for field, marks in _MARKS.items():
        present = meta.pop(field, None) or {}
        kept = {key: value for key, value in present.items() if key not in marks}
        if kept:
            meta[field] = kept
    return {**obj, "metadata": meta}


def claimed_by(obj: Object) -> str | None:
    """Return the key of the policy that claims an object, None without one."""
    labels, annotations = labels_of(obj), annotations_of(obj)
    space, name = annotations.get(names.POLICY_NAMESPACE), annotations.get(names.POLICY_NAME)
    if space and name and labels.get(names.POLICY_ID):
        return f"{space}/{name}"
    name = annotations.get(names.CLUSTER_POLICY_NAME)
    return name if name and labels.get(names.CLUSTER_POLICY_ID) else None


def _id_label(policy: Object) -> str:
    return names.CLUSTER_POLICY_ID if is_cluster_policy(policy) else names.POLICY_ID


def _selector_precision(selector: Object, template: Object) -> int:
    meta: Object = template["metadata"]
    if any(selector.get(field) != template.get(field) for field in ("apiVersion", "kind")):
        return 0
    if selector.get("namespace") and selector["namespace"] != meta.get("namespace", ""):
        return 0
    if selector.get("name"):
        return 3 if selector["name"] == meta["name"] else 0
    if selector.get("labelSelector") is None:
        return 1
    return 2 if matches_labels(selector["labelSelector"], labels_of(template)) else 0
