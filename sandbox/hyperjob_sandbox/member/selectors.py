"""Whether labels match a selector, and whether a pod or a placement tolerates taints.

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
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
