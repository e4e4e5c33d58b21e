"""What the pods of a task request, worked out once for each pod spec that the caches hold.

A pod spec is known again by its identity: the caches share equal parts of objects, and replace them
without ever changing them.
"""

from typing import Final

from controller.model.resources import Resources, pod_request
from controller.model.wire import mapping
from hyperjob.api.meta import Object

_MOST: Final = 1024

# Each entry keeps its pod spec alive, so no other one can have its id meanwhile.
_KNOWN: Final[dict[int, tuple[Object, Resources]]] = {}


def request_of(task: Object) -> Resources:
    """Return what one pod of a task requests, which callers must not change."""
    spec = mapping(mapping(task.get("template")).get("spec"))
    known = _KNOWN.get(id(spec))
    if known is None or known[0] is not spec:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        known = _KNOWN[id(spec)] = spec, pod_request(spec)
    return known[1]
