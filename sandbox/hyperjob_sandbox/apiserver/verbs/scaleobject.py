"""The Scale of an object: its replica counts as a small object of its own. Pure."""

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.state.resources import ScalePaths
from hyperjob_sandbox.apiserver.transport.encode import ordered_meta

_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_object(obj: Object, paths: ScalePaths) -> Object:
    """Build the Scale of an object."""
    meta = obj["metadata"]
    status: Object = {"replicas": _read(obj, paths.status) or 0}
    selector = _read(obj, paths.selector) if paths.selector else None
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": ordered_meta({key: meta[key] for key in _META if key in meta}),
        "spec": {"replicas": _read(obj, paths.spec) or 0},
        "status": status,
    }


def _read(obj: Object, path: str) -> Object | int | str | None:
    found: Object | int | str | None = obj
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
