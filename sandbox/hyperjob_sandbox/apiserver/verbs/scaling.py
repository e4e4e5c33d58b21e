"""The scale subresource: a small object over two paths of the real one."""

from hyperjob.api import field
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.patches import patching
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob_sandbox.apiserver.transport.decode import read_object
from hyperjob_sandbox.apiserver.transport.encode import to_version
from hyperjob_sandbox.apiserver.verbs.writing import change, prepare

SCALE = ResourceInfo("autoscaling", "v1", "scales", "scale", "Scale")


async def scale(core: Core, call: Call) -> Reply:
    """Read or write the replica count of an object."""
    resource = call.resource
    paths = resource.scale
    assert paths is not None  # the subresource is served only where the paths are known
    live = core.find(resource, call.info.namespace, call.info.name)
    if live is None:
        raise call.not_found()
    if call.info.verb == "get":
        return json_reply(paths.object(live.obj))

    async def scaled(current: Stored) -> Object:
        base = to_version(current.obj, resource)
        wanted = _wanted(call, paths.object(current.obj))
        obj = _with_replicas(base, paths.spec, wanted.get("spec", {}).get("replicas", 0))
        version = (wanted.get("metadata") or {}).get("resourceVersion")
        if version:
            obj["metadata"]["resourceVersion"] = version
        prepare(obj, resource)
        return obj

    stored = await change(core, call, scaled)
    return json_reply(paths.object(stored.obj))


def _wanted(call: Call, current: Object) -> Object:
    if call.info.verb == "update":
        return read_object(call.body, call.content_type, SCALE)
    patch = patching.read(call)
    return patch.apply(current, call)


def _with_replicas(obj: Object, path: str, replicas: object) -> Object:
    if not isinstance(replicas, int) or replicas < 0:
        why = "must be greater than or equal to 0"
        problem = field.invalid(field.Path("spec.replicas"), replicas, why)
        name = str(obj["metadata"]["name"])
        raise errors.ApiError(field.invalid_status("autoscaling", "Scale", name, [problem]))
    *parents, last = path.split(".")
    result = {**obj, "metadata": dict(obj["metadata"])}
    at = result
    for part in parents:
        at[part] = dict(at.get(part) or {})
        at = at[part]
    at[last] = replicas
    return result
