"""The scale subresource: a small object over two paths of the real one."""

from hyperjob_core.api import field
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.patches import patching
from hyperjob_sandbox.apiserver.patches.patch import merge_patch
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob_sandbox.apiserver.transport.decode import read_object
from hyperjob_sandbox.apiserver.verbs.writing import change

SCALE = ResourceInfo("autoscaling", "v1", "scales", "scale", "Scale")


async def scale(core: Core, call: Call) -> Reply:
    """Read or write the replica count of an object."""
    paths, live = call.resource.scale, core.live(call)
    assert paths is not None  # the subresource is served only where the paths are known
    if call.info.verb == "get":
        return json_reply(paths.object(live.obj))

    def scaled(current: Stored) -> Object:
        if call.info.verb == "update":
            wanted = read_object(call.body, call.content_type, SCALE)
        else:
            wanted = patching.read(call)(paths.object(current.obj))
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            why = "must be greater than or equal to 0"
            problem = field.invalid(field.SPEC.child("replicas"), replicas, why)
            status = field.invalid_status("autoscaling", "Scale", call.info.name, [problem])
            raise errors.ApiError(status)
        body: Json = replicas
        for part in reversed(paths.spec.split(".")):
            body = {part: body}
        if version := (wanted.get("metadata") or {}).get("resourceVersion"):
            body["metadata"] = {"resourceVersion": version}
        changed: Object = merge_patch(current.obj, body)
        return changed

    return json_reply(paths.object((await change(core, call, scaled)).obj))
