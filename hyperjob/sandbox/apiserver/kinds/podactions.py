"""What pods can be asked beyond reading and writing: bind, evict, print a log."""

from hyperjob.api.meta import Object
from hyperjob.sandbox.apiserver import errors
from hyperjob.sandbox.apiserver.state.core import Core
from hyperjob.sandbox.apiserver.state.store import Stored
from hyperjob.sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob.sandbox.apiserver.transport.decode import read_object
from hyperjob.sandbox.apiserver.verbs.deleting import DeleteOptions, delete_stored

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(core: Core, call: Call) -> Reply:
    """Put a pod on a node, once."""
    live = _pod(core, call)
    body, _ = read_object(call.body, call.content_type, call.resource)
    node = (body.get("target") or {}).get("name")
    if not node:
        raise errors.bad_request("target.name: Required value")
    spec = live.obj.get("spec") or {}
    if spec.get("nodeName"):
        raise call.conflict(f"pod {call.info.name} is already assigned to node {spec['nodeName']}")
    meta = dict(live.obj["metadata"])
    changed: Object = {**live.obj, "metadata": meta, "spec": {**spec, "nodeName": node}}
    if not call.dry_run:
        core.store.update(call.resource.storage, changed, expected=live)
    return json_reply(_SUCCESS, code=201)


def evict(core: Core, call: Call) -> Reply:
    """Delete a pod as an eviction does."""
    live = _pod(core, call)
    delete_stored(core, call.resource, live, DeleteOptions(dry_run=call.dry_run))
    return json_reply(_SUCCESS, code=201)


def log(core: Core, call: Call) -> Reply:
    """Print what is known of a pod: no container runs here."""
    live = _pod(core, call)
    status = live.obj.get("status") or {}
    text = f"pod {call.info.name} is simulated; phase {status.get('phase', 'Unknown')}\n"
    return Reply(200, text.encode(), "text/plain")


def _pod(core: Core, call: Call) -> Stored:
    live = core.find(call.resource, call.info.namespace, call.info.name)
    if live is None:
        raise call.not_found()
    return live
