"""POST, PUT and PATCH: from a body to a stored object, in kube-apiserver's order of steps.

decode → unknown fields → defaults → managedFields → mutating webhooks → server's own fields →
validation → validating webhooks → store. A patch that loses a race is applied again.
"""

from collections.abc import Callable
from dataclasses import replace

from hyperjob_core.api import field
from hyperjob_core.api.field import FieldError, invalid_status
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core, key_of
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.kinds.metadata import validate_meta, validate_meta_update
from hyperjob_sandbox.apiserver.kinds.strategy import before_create, before_update, normalise_meta
from hyperjob_sandbox.apiserver.ownership.apply import Writer, keep_times, track
from hyperjob_sandbox.apiserver.patches import patching
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Stale, Stored
from hyperjob_sandbox.apiserver.transport.authorization import action_of
from hyperjob_sandbox.apiserver.transport.call import Call, Reply
from hyperjob_sandbox.apiserver.transport.decode import read_object, require_type, strict_error
from hyperjob_sandbox.apiserver.transport.encode import to_storage, to_version
from hyperjob_sandbox.apiserver.verbs import admitting
from hyperjob_sandbox.apiserver.verbs.admitting import check_namespace, request_of
from hyperjob_sandbox.apiserver.verbs.deleting import finish_if_free
from hyperjob_sandbox.apiserver.verbs.podadmission import admit_pod
from hyperjob_sandbox.apiserver.verbs.reading import object_reply

_PATCH_ATTEMPTS = 5
Change = Callable[[Stored], Object]


async def create(core: Core, call: Call) -> Reply:
    """Store a new object from a POST body."""
    obj = read_object(call.body, call.content_type, call.resource)
    normalise(obj, call)
    return object_reply(await store_new(core, call, obj), call, code=201)


async def store_new(core: Core, call: Call, obj: Object, *, applied: bool = False) -> Stored:
    """Take a decoded object through admission and validation into the store."""
    resource = call.resource
    check_namespace(core, call, obj)
    if not resource.namespaced:
        obj["metadata"].pop("namespace", None)
    if not applied:
        obj = track(None, obj, Writer.of(call))
    obj = await core.admission.mutate(request_of(call, "CREATE", obj, None))
    before_create(obj, resource)
    check(obj, None, resource, validate_meta(obj["metadata"], resource))
    definitions.complete(obj, resource)
    if obj["metadata"].get("resourceVersion"):
        raise errors.failed(500, "", "resourceVersion should not be set on objects to be created")
    await core.admission.validate(request_of(call, "CREATE", obj, None))
    key = key_of(resource, obj)
    obj = to_storage(obj, resource)
    if core.collection(resource).get(key) is not None:
        raise errors.already_exists(resource.group, resource.plural, key[1])
    admit_pod(core, call, obj)
    if call.info.dry_run:
        return Stored(key, obj, core.store.revision)
    return core.store.create(resource.storage, key, obj)


async def update(core: Core, call: Call) -> Reply:
    """Replace an object with a PUT body."""
    resource = call.resource
    obj = read_object(call.body, call.content_type, resource)
    normalise(obj, call)
    live = core.live(call)
    if resource.custom and not obj["metadata"].get("resourceVersion"):
        path, why = field.METADATA.child("resourceVersion"), "must be specified for an update"
        failed = [field.invalid(path, 0, why)]
        raise errors.ApiError(
            invalid_status(resource.group, resource.plural, call.info.name, failed)
        )

    def replaced(current: Stored) -> Object:
        return {**obj, "metadata": dict(obj["metadata"])} if current is not live else obj

    return object_reply(await change(core, call, replaced), call)


async def patch(core: Core, call: Call) -> Reply:
    """Change an object with a PATCH body, or create it by server-side apply."""
    wanted, applied = patching.read(call), patching.applies(call)
    live = core.find(call.resource, call.info.namespace, call.info.name)
    if live is None and applied and not call.info.subresource:
        core.require(call.user, replace(action_of(call.info), verb="create"))
        obj = wanted(None)
        normalise(obj, call)
        return object_reply(await store_new(core, call, obj, applied=True), call, code=201)

    def patched(current: Stored) -> Object:
        obj = wanted(to_version(current.obj, call.resource))
        normalise(obj, call)
        return obj

    return object_reply(await change(core, call, patched, applied=applied), call)


async def change(core: Core, call: Call, edit: Change, *, applied: bool = False) -> Stored:
    """Apply an edit to the live object, again when another writer came first."""
    for _ in range(_PATCH_ATTEMPTS):
        live = core.live(call)
        call.warnings.clear()
        new = edit(live)
        _check_preconditions(call, new, live)
        try:
            return await _store_change(core, call, new, live, applied=applied)
        except Stale:
            continue
    raise call.conflict()


async def _store_change(
    core: Core,
    call: Call,
    new: Object,
    live: Stored,
    *,
    applied: bool,
) -> Stored:
    resource, subresource = call.resource, call.info.subresource
    old = to_version(live.obj, resource)
    if not applied:
        new = track(old, new, Writer.of(call))
    if subresource != "scale":
        new = await core.admission.mutate(request_of(call, "UPDATE", new, old))
    before_update(new, old, resource, subresource)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    failed = validate_meta_update(new["metadata"], old["metadata"], resource)
    # Metadata is checked once by the generic registry and once by a custom kind's strategy.
    again = failed if resource.custom else []
    check(new, old, resource, [*failed, *again], subresource)
    definitions.complete(new, resource)
    await core.admission.validate(request_of(call, "UPDATE", new, old))
    if core.find(resource, *live.key) is not live:
        raise Stale
    new = keep_times(old, new)
    if new == old:
        return live
    new = to_storage(new, resource)
    if call.info.dry_run:
        return Stored(live.key, new, live.revision)
    ended = finish_if_free(core, resource, new, live)
    return ended or core.store.update(resource.storage, new, expected=live)


def _check_preconditions(call: Call, new: Object, live: Stored) -> None:
    meta = new["metadata"]
    version, uid = meta.get("resourceVersion"), meta.get("uid")
    if version and version != live.obj["metadata"]["resourceVersion"]:
        raise call.conflict()
    # A patch of the UID is the change of an immutable field, and the status has no metadata.
    if uid and uid != live.uid and call.info.verb == "update":
        raise call.conflict(
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {live.uid}"
        )


def normalise(obj: Object, call: Call) -> None:
    """Make an object of a body ready for the store, or refuse it (400).

    It must be of the kind, and at the place, that the request's path says; fields that the kind
    does not know are refused, warned of or ignored, as fieldValidation says.
    """
    require_type(obj, call.resource, call.body)
    _place(obj, call)
    schema, kind = call.resource.schema, call.resource.kind
    problems = schema.prepare(obj) if schema is not None and obj.get("kind") == kind else []
    mode = call.info.query.get("fieldValidation") or "Warn"
    if problems and mode == "Strict":
        raise strict_error(call.resource, problems)
    call.warnings.extend(problems if mode == "Warn" else ())


def _place(obj: Object, call: Call) -> None:
    meta, name = normalise_meta(obj), call.info.name
    namespace = call.info.namespace if call.resource.namespaced else ""
    if meta.get("namespace", namespace) != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if namespace:
        meta["namespace"] = namespace
    if name and meta.get("name") != name:
        raise errors.bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
            if meta.get("name")
            else "the name of the object must be provided"
        )


def check(
    obj: Object,
    old: Object | None,
    resource: ResourceInfo,
    failed: list[FieldError],
    subresource: str = "",
) -> None:
    """Raise one 422 for the errors of the metadata and what else is wrong with an object."""
    kind = str(obj.get("kind") or resource.kind)
    if resource.schema is None:
        failed += definitions.validate(obj, resource, subresource)
        failed += admitting.problems(obj, resource)
    else:
        status_only = subresource == "status" and old is not None
        if kind != resource.kind:
            failed = [
                field.invalid(field.ROOT.child("kind"), kind, f"must be {resource.kind}"),
                *failed,
            ]
        elif resource.scale is not None:
            failed += resource.scale.problems(obj, status_only=status_only)
        failed = resource.schema.validate(
            obj, old, before=failed, values=kind == resource.kind, status_only=status_only
        )
    if failed:
        name = str(obj["metadata"].get("name") or "")
        raise errors.ApiError(invalid_status(resource.group, kind, name, failed))
