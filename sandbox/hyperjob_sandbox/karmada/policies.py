"""Which policy propagates a template, and what claiming it writes.

Pure rules over PropagationPolicy and ClusterPropagationPolicy objects: matching, precedence,
preemption, claims and the defaults Karmada's own webhook adds. It must never decide placement.
"""

from collections.abc import Iterable
from copy import deepcopy
from enum import IntEnum

from hyperjob.api.meta import Object
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.member.selectors import matches_labels

_PP_LABELS = (names.POLICY_ID,)
_PP_ANNOTATIONS = (names.POLICY_NAMESPACE, names.POLICY_NAME)
_CPP_LABELS = (names.CLUSTER_POLICY_ID,)
_CPP_ANNOTATIONS = (names.CLUSTER_POLICY_NAME,)


class Precision(IntEnum):
    """How closely a resource selector names a template; the closer one wins."""

    NONE = 0
    ALL = 1
    LABELS = 2
    NAME = 3


def is_cluster_policy(policy: Object) -> bool:
    """Tell a ClusterPropagationPolicy from a PropagationPolicy."""
    return not policy["metadata"].get("namespace")


def policy_id(policy: Object) -> str:
    """Return the permanent id of a policy, "" while it has none."""
    key = names.CLUSTER_POLICY_ID if is_cluster_policy(policy) else names.POLICY_ID
    return str((policy["metadata"].get("labels") or {}).get(key, ""))


def default_policy(policy: Object, *, permanent_id: str) -> Object:
    """Return the policy with the defaults, the permanent id and the finalizer Karmada gives it."""
    policy = deepcopy(policy)
    meta: Object = policy["metadata"]
    cluster_scoped = is_cluster_policy(policy)
    id_label = names.CLUSTER_POLICY_ID if cluster_scoped else names.POLICY_ID
    meta.setdefault("labels", {}).setdefault(id_label, permanent_id)
    finalizer = names.CLUSTER_POLICY_FINALIZER if cluster_scoped else names.POLICY_FINALIZER
    if finalizer not in meta.setdefault("finalizers", []) and not meta.get("deletionTimestamp"):
        meta["finalizers"].append(finalizer)
    spec: Object = policy.setdefault("spec", {})
    if not cluster_scoped:
        for selector in spec.get("resourceSelectors") or ():
            selector.setdefault("namespace", meta["namespace"])
    placement: Object = spec.setdefault("placement", {})
    for constraint in placement.get("spreadConstraints") or ():
        if not constraint.get("spreadByLabel"):
            constraint.setdefault("spreadByField", "cluster")
        constraint["minGroups"] = constraint.get("minGroups") or 1
    replicas = placement.get("replicaScheduling")
    if replicas is not None and replicas.get("replicaSchedulingType") == "Divided":
        replicas.setdefault("replicaDivisionPreference", "Weighted")
    for field, value in (
        ("conflictResolution", "Abort"),
        ("preemption", "Never"),
        ("priority", 0),
        ("schedulerName", names.DEFAULT_SCHEDULER),
    ):
        spec.setdefault(field, value)
    return policy


def precision(policy: Object, template: Object) -> Precision:
    """Return how closely the best selector of a policy names a template."""
    selectors = policy["spec"].get("resourceSelectors") or ()
    return max((_selector_precision(each, template) for each in selectors), default=Precision.NONE)


def best_policy(policies: Iterable[Object], template: Object) -> Object | None:
    """Return the policy that wins a template: priority, then precision, then the lower name."""
    best: tuple[int, int] | None = None
    winner: Object | None = None
    for policy in policies:
        if policy["metadata"].get("deletionTimestamp"):
            continue
        closeness = precision(policy, template)
        if closeness is Precision.NONE:
            continue
        rank = (priority(policy), int(closeness))
        if (
            best is None
            or winner is None
            or rank > best
            or (rank == best and policy["metadata"]["name"] < winner["metadata"]["name"])
        ):
            best, winner = rank, policy
    return winner


def priority(policy: Object) -> int:
    """Return the explicit priority of a policy."""
    return int(policy["spec"].get("priority") or 0)


def preempts(policy: Object, bound: Object | None) -> bool:
    """Tell whether a policy takes a template away from the policy it is bound to.

    A namespaced policy always takes it from a cluster policy, otherwise the explicit priority must
    be higher; `bound` None means the bound policy is gone.
    """
    if policy["spec"].get("preemption") != "Always" or policy["metadata"].get("deletionTimestamp"):
        return False
    if bound is None:
        return True
    if is_cluster_policy(bound) and not is_cluster_policy(policy):
        return True
    if is_cluster_policy(policy) and not is_cluster_policy(bound):
        return False
    return priority(policy) > priority(bound)


def claim(obj: Object, policy: Object) -> Object:
    """Return the template or binding with the marks of the policy and of no other."""
    obj = unclaim(obj)
    meta: Object = obj["metadata"]
    labels, annotations = meta.setdefault("labels", {}), meta.setdefault("annotations", {})
    if is_cluster_policy(policy):
        labels[names.CLUSTER_POLICY_ID] = policy_id(policy)
        annotations[names.CLUSTER_POLICY_NAME] = policy["metadata"]["name"]
    else:
        labels[names.POLICY_ID] = policy_id(policy)
        annotations[names.POLICY_NAMESPACE] = policy["metadata"]["namespace"]
        annotations[names.POLICY_NAME] = policy["metadata"]["name"]
    return obj


def unclaim(obj: Object) -> Object:
    """Return the template or binding without the marks of any policy."""
    obj = {**obj, "metadata": dict(obj["metadata"])}
    for field, keys in (
        ("labels", _PP_LABELS + _CPP_LABELS),
        ("annotations", _PP_ANNOTATIONS + _CPP_ANNOTATIONS),
    ):
        kept = {
            key: value
            for key, value in (obj["metadata"].get(field) or {}).items()
            if key not in keys
        }
        if kept:
            obj["metadata"][field] = kept
        else:
            obj["metadata"].pop(field, None)
    return obj


def claimed_by(obj: Object) -> tuple[str, str, str] | None:
    """Return namespace ("" for cluster policies), name and permanent id of the claiming policy."""
    labels = obj["metadata"].get("labels") or {}
    annotations = obj["metadata"].get("annotations") or {}
    space, name = annotations.get(names.POLICY_NAMESPACE), annotations.get(names.POLICY_NAME)
    if space and name and labels.get(names.POLICY_ID):
        return space, name, labels[names.POLICY_ID]
    name = annotations.get(names.CLUSTER_POLICY_NAME)
    if name and labels.get(names.CLUSTER_POLICY_ID):
        return "", name, labels[names.CLUSTER_POLICY_ID]
    return None


def _selector_precision(selector: Object, template: Object) -> Precision:
    meta: Object = template["metadata"]
    if selector.get("apiVersion") != template.get("apiVersion"):
        return Precision.NONE
    if selector.get("kind") != template.get("kind"):
        return Precision.NONE
    if selector.get("namespace") and selector["namespace"] != meta.get("namespace", ""):
        return Precision.NONE
    if selector.get("name"):
        return Precision.NAME if selector["name"] == meta["name"] else Precision.NONE
    if selector.get("labelSelector") is None:
        return Precision.ALL
    if matches_labels(selector["labelSelector"], meta.get("labels") or {}):
        return Precision.LABELS
    return Precision.NONE
