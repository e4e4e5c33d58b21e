"""DELETE: preconditions, finalizers, grace, and deletion of collections."""

from datetime import UTC, datetime, timedelta

from hyperjob_core.api.field import ROOT, not_supported
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import GroupResource, Stale, Stored
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob_sandbox.apiserver.transport.decode import read_object
from hyperjob_sandbox.apiserver.transport.encode import to_version
from hyperjob_sandbox.apiserver.verbs import admitting
from hyperjob_sandbox.apiserver.verbs.reading import list_body, object_reply, selected

NAMESPACES: GroupResource = ("", "namespaces")
_ATTEMPTS = 10
_PROTECTED = frozenset({"default", "kube-public", "kube-system"})
_POD_GRACE_SECONDS = 30
_OPTIONS = ResourceInfo("", "v1", "", "", "DeleteOptions")
_NAMES = frozenset({"propagationPolicy", "gracePeriodSeconds", "dryRun"})


def read_options(call: Call) -> Object:
    """Read the DeleteOptions from the body; only where there is none the query counts.

    Dependents go in the background. Any other propagationPolicy is refused (422).
    """
    if call.body:
        given = read_object(call.body, call.content_type, _OPTIONS)
    else:
        given = {key: value for key, value in call.info.query.items() if value and key in _NAMES}
    options: Object = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **given}
    propagation = str(options.get("propagationPolicy") or "Background")
    if propagation != "Background":
        problem = not_supported(ROOT.child("propagationPolicy"), propagation, ("Background",))
        raise errors.invalid_option("DeleteOptions", problem)
    return {**options, "dryRun": ["All"]} if options.get("dryRun") else options


async def delete(core: Core, call: Call) -> Reply:
    """Delete one object, or begin to."""
    options = read_options(call)
    resource = call.resource
    for _ in range(_ATTEMPTS):
        live = core.live(call)
        _check_preconditions(call, options, live)
        if resource.storage == NAMESPACES and live.key[1] in _PROTECTED:
            why = "this namespace may not be deleted"
            raise errors.forbidden("", "namespaces", live.key[1], why)
        await _admit(core, call, live, options)
        try:
            left = delete_stored(core, resource, live, options)
        except Stale:
            continue
        if left is not None:
            return object_reply(left, call)
        status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        details = {"name": live.key[1], "group": resource.group, "kind": resource.plural}
        details |= {"uid": live.uid}
        found = {key: value for key, value in details.items() if value}
        return json_reply({**status, "details": found})
    raise call.conflict()


async def delete_collection(core: Core, call: Call) -> Reply:
    """Delete everything that a list with the same selectors would show."""
    options = read_options(call)
    resource = call.resource
    found = selected(core, call)
    for stored in found:
        await _admit(core, call, stored, options)
        live = core.collection(resource).get(stored.key)
        if live is not None:
            delete_stored(core, resource, live, options)
    return Reply(200, list_body(found, resource, {"resourceVersion": str(core.store.revision)}))


async def _admit(core: Core, call: Call, live: Stored, options: Object) -> None:
    """Ask all webhooks about a deletion; its options say whether it is a dry run."""
    old = to_version(live.obj, call.resource)
    request = admitting.request_of(call, "DELETE", None, old, options=options)
    await core.admission.mutate(request)
    await core.admission.validate(request)


def delete_stored(
    core: Core,
    resource: ResourceInfo,
    live: Stored,
    options: Object | None = None,
) -> Stored | None:
    """Remove an object, or mark it as being deleted and return what stays."""
    options = options or {}
    meta, grace = live.obj["metadata"], _grace(resource, live.obj, options)
    if not meta.get("finalizers") and not grace and not _is_full(resource, live.obj):
        if not options.get("dryRun"):
            last = {**live.obj, "metadata": dict(meta)}
            core.store.delete(resource.storage, last, expected=live)
        return None
    if meta.get("deletionTimestamp") and grace >= int(meta.get("deletionGracePeriodSeconds") or 0):
        return live
    changed = _marked(live.obj, grace)
    if resource.storage == NAMESPACES:
        changed["status"] = {**(live.obj.get("status") or {}), "phase": "Terminating"}
    if options.get("dryRun"):
        return Stored(live.key, changed, live.revision)
    return core.store.update(resource.storage, changed, expected=live)


def finish_if_free(core: Core, resource: ResourceInfo, new: Object, live: Stored) -> Stored | None:
    """Remove an object that is being deleted once nothing holds it; None when something does."""
    meta = new["metadata"]
    grace = int(meta.get("deletionGracePeriodSeconds") or 0)
    held = meta.get("finalizers") or grace > 0 or _is_full(resource, new)
    if not meta.get("deletionTimestamp") or held:
        return None
    return core.store.delete(resource.storage, new, expected=live)


def _is_full(resource: ResourceInfo, obj: Object) -> bool:
    """Tell whether a namespace waits for its controller to empty it."""
    return resource.storage == NAMESPACES and bool(obj["spec"].get("finalizers"))


def _grace(resource: ResourceInfo, obj: Object, options: Object) -> int:
    """Give the seconds that an object may go on; only scheduled, unfinished pods get any."""
    if resource.storage != ("", "pods"):
        return 0
    spec = obj.get("spec") or {}
    phase = (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    given = options.get("gracePeriodSeconds")
    usual = spec.get("terminationGracePeriodSeconds", _POD_GRACE_SECONDS)
    return max(int(usual if given is None else given), 0)


def _marked(obj: Object, grace: int) -> Object:
    meta = dict(obj["metadata"])
    if not meta.get("deletionTimestamp") and meta.get("generation"):
        meta["generation"] = int(meta["generation"]) + 1
    if not meta.get("deletionTimestamp") or grace:
        ends = datetime.now(UTC) + timedelta(seconds=grace)
        meta["deletionTimestamp"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    meta["deletionGracePeriodSeconds"] = grace
    return {**obj, "metadata": meta}


def _check_preconditions(call: Call, options: Object, live: Stored) -> None:
    resource, conditions = call.resource, options.get("preconditions") or {}
    version = live.obj["metadata"]["resourceVersion"]
    for name, key, found, done in (
        ("UID", "uid", live.uid, "deleted and then recreated"),
        ("ResourceVersion", "resourceVersion", version, "modified"),
    ):
        wanted = conditions.get(key)
        if wanted and wanted != found:
            why = (
                f"the {name} in the precondition ({wanted}) does not match the {name} in record"
                f" ({found}). The object might have been {done}"
            )
            kind = resource.kind if resource.custom else resource.plural
            raise errors.conflict(resource.group, kind, live.key[1], why)
