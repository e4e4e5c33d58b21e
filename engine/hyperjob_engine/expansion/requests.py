"""The request of a task's pod, computed once for each pod spec in the informer caches.

The caches share equal parts of objects, and replace objects without changing them.
"""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.resources import Resources, pod_request

_REQUESTS: Final[Memo[Object, Resources]] = Memo()


def request_of(task: Object) -> Resources:
    """Return the request of one pod of a task, in nano-units; callers must not change it."""
    spec = mapping(mapping(task.get("template")).get("spec"))
    return _REQUESTS.of(id(spec), spec, pod_request)
