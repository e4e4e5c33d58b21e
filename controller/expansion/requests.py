"""What the pods of a task request, worked out once for each pod spec that the caches hold.

The caches share equal parts of objects, and replace them without ever changing them.
"""

from typing import Final

from controller.model.memo import Memo
from controller.model.resources import Resources, pod_request
from controller.model.wire import mapping
from hyperjob.api.meta import Object

_REQUESTS: Final[Memo[Object, Resources]] = Memo()


def request_of(task: Object) -> Resources:
    """Return what one pod of a task requests, which callers must not change."""
    spec = mapping(mapping(task.get("template")).get("spec"))
    return _REQUESTS.of(id(spec), spec, pod_request)
