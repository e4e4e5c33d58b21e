"""Defaults of built-in kinds, where something here reads them back.

`kinds.yaml` has those that are always the same; those that follow from the object are here.
"""

import base64
from collections.abc import Callable

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue


def fill(obj: Object, defaults: Object) -> None:
    """Fill in the defaults of an object's kind; the object is a fresh one and is changed."""
    _fill(obj, defaults)
    computed = _COMPUTED.get(obj.get("kind", ""))
    if computed is not None:
        computed(obj)


def _fill(obj: Object, defaults: Object) -> None:
    for key, default in defaults.items():
        name, found = key.rstrip("?!"), obj.get(key.rstrip("?!"))
        if isinstance(default, dict) and not key.endswith("!"):
            if found is None and not key.endswith("?"):
                found = obj[name] = {}
            if isinstance(found, dict):
                _fill(found, default)
        elif isinstance(default, list) and isinstance(default[0], dict):
            for item in found or ():
                _fill(item, default[0])
        elif found is None:
            obj[name] = jsonvalue.copy(default)


def _namespace(obj: Object) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    labels.setdefault("kubernetes.io/metadata.name", obj["metadata"].get("name", ""))


def _secret(obj: Object) -> None:
    plain = obj.pop("stringData", None)
    if plain:
        data = obj.setdefault("data", {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()


def _definition(obj: Object) -> None:
    names = obj["spec"].setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", names["kind"] + "List")


def _pod(obj: Object) -> None:
    if obj["spec"].get("schedulingGates"):
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        obj["status"].setdefault("conditions", [gated])


_COMPUTED: dict[str, Callable[[Object], None]] = {
    "Namespace": _namespace,
    "Pod": _pod,
    "Secret": _secret,
    "CustomResourceDefinition": _definition,
}
