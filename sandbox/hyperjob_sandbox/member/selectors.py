"""Whether objects match label selectors, node selector terms and cluster affinities.

Pure predicates over plain dicts; they never raise on a malformed selector; a malformed term
matches nothing.
"""

from collections.abc import Mapping, Sequence

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.state.selectors import SelectorError, label_selector


def matches_labels(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Tell whether labels satisfy a LabelSelector; an absent or empty one matches everything."""
    try:
        found = label_selector(selector or {})
    except SelectorError:
        return False
    return found is not None and found.matches(labels)


def matches_expressions(expressions: Sequence[Object], labels: Mapping[str, str]) -> bool:
    """Tell whether labels satisfy every `{key, operator, values}` requirement."""
    return matches_labels({"matchExpressions": list(expressions)}, labels)


def matches_fields(expressions: Sequence[Object], cluster: Object) -> bool:
    """Tell whether a Cluster's provider, region and zones satisfy a field selector."""
    spec: Object = cluster.get("spec") or {}
    zones = list(spec.get("zones") or ([spec["zone"]] if spec.get("zone") else []))
    for expression in expressions:
        field, values = expression.get("key"), expression.get("values") or []
        negated = expression.get("operator") == "NotIn"
        if field == "zone":
            # In asks that every zone of the cluster is listed, NotIn that none is.
            fits = (
                not any(zone in values for zone in zones)
                if negated
                else bool(zones) and all(zone in values for zone in zones)
            )
        else:
            fits = (spec.get(str(field), "") in values) != negated
        if not fits:
            return False
    return True


def matches_affinity(affinity: Object | None, cluster: Object) -> bool:
    """Tell whether a Cluster satisfies a ClusterAffinity (or one term of clusterAffinities)."""
    if not affinity:
        return True
    name: str = cluster["metadata"]["name"]
    if name in (affinity.get("exclude") or ()):
        return False
    if not matches_labels(affinity.get("labelSelector"), cluster["metadata"].get("labels") or {}):
        return False
    fields = (affinity.get("fieldSelector") or {}).get("matchExpressions") or ()
    if not matches_fields(fields, cluster):
        return False
    listed = affinity.get("clusterNames") or ()
    return not listed or name in listed


def untolerated_taint(
    taints: Sequence[Object], tolerations: Sequence[Object], *, effects: frozenset[str]
) -> Object | None:
    """Return the first taint with one of the effects that nothing tolerates, or None."""
    for taint in taints:
        if taint.get("effect") not in effects:
            continue
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value", "") == taint.get("value", ""))
