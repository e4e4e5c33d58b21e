"""Admission: the namespace must exist and live; then the webhooks are asked."""

from collections.abc import Callable
from dataclasses import replace

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.admission.chain import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource
from hyperjob_sandbox.apiserver.transport.call import Call

MUTATING: GroupResource = ("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING: GroupResource = ("admissionregistration.k8s.io", "validatingwebhookconfigurations")


def check_namespace(core: Core, call: Call, obj: Object) -> None:
    """Refuse a new object in a namespace that does not exist or is going away."""
    resource = call.resource
    if not resource.namespaced:
        return
    name = call.info.namespace
    namespace = core.namespace(name)
    if namespace is None:
        raise errors.not_found("", "namespaces", name)
    if (namespace.get("status") or {}).get("phase") == "Terminating":
        why = f"unable to create new content in namespace {name} because it is being terminated"
        error = errors.forbidden(
            resource.group, resource.plural, obj["metadata"].get("name") or "", why
        )
        error.status.setdefault("details", {})["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise error


async def mutate(
    core: Core, call: Call, operation: Operation, obj: Object, old: Object | None
) -> Object:
    """Ask the mutating webhooks; return the object as they leave it."""
    if not core.mutates or call.info.subresource == "scale":
        return obj
    return await core.admission.mutate(_request(core, call, operation, obj, old))


async def validate(
    core: Core, call: Call, operation: Operation, obj: Object | None, old: Object | None
) -> None:
    """Ask the validating webhooks; raise ApiError where one refuses."""
    if core.validates:
        await core.admission.validate(_request(core, call, operation, obj, old))


async def admit_deletion(
    core: Core, call: Call, old: Object, options: Object, *, dry_run: bool
) -> None:
    """Ask all webhooks about a deletion; its options say whether it is a dry run."""
    if not core.mutates and not core.validates:
        return
    request = _request(core, call, "DELETE", None, old, options=options)
    request = replace(request, dry_run=dry_run)
    await core.admission.mutate(request)
    await core.admission.validate(request)


def follow(core: Core) -> None:
    """Keep the admission chain up to date with the stored configurations."""

    def listener(resource: GroupResource, change: Change) -> None:
        del change
        if resource == MUTATING:
            found = _configurations(core, MUTATING)
            core.mutates = bool(found)
            core.admission.reload(mutating=found)
        elif resource == VALIDATING:
            found = _configurations(core, VALIDATING)
            core.validates = bool(found)
            core.admission.reload(validating=found)

    core.store.subscribe(listener)


def _configurations(core: Core, resource: GroupResource) -> list[Object]:
    return [stored.obj for stored in core.store.collection(resource).select()]


def _request(
    core: Core,
    call: Call,
    operation: Operation,
    obj: Object | None,
    old: Object | None,
    *,
    options: Object | None = None,
) -> AdmissionRequest:
    resource, info = call.resource, call.info
    gvk = GroupVersionKind(resource.group, resource.version, resource.kind)
    if info.subresource == "scale" and resource.scale is not None:
        gvk = GroupVersionKind("autoscaling", "v1", "Scale")
        obj = obj and resource.scale.object(obj)
        old = old and resource.scale.object(old)
    named = obj or old or {}
    return AdmissionRequest(
        operation=operation,
        gvr=GroupVersionResource(resource.group, resource.version, resource.plural),
        gvk=gvk,
        subresource=info.subresource,
        namespace=info.namespace,
        name=str((named.get("metadata") or {}).get("name") or info.name),
        object=obj,
        old_object=old,
        options=options or _options(call),
        user={
            "username": call.user.name,
            "uid": call.user.uid,
            "groups": list(call.user.groups),
        },
        dry_run=call.dry_run,
        default=_default(resource),
        equivalents=tuple(
            (
                GroupVersionResource(other.group, other.version, other.plural),
                GroupVersionKind(other.group, other.version, other.kind),
            )
            for other in core.registry.siblings(resource)
        ),
        warnings=call.warnings,
    )


def _options(call: Call) -> Object:
    """Give the request's own options, as its query says them."""
    kinds = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
    kind = kinds.get(call.info.verb, "UpdateOptions")
    options: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    query = call.info.query
    if query.get("dryRun"):
        options["dryRun"] = [query["dryRun"]]
    if "force" in query:
        options["force"] = call.info.flag("force")
    for name in ("fieldManager", "fieldValidation"):
        if query.get(name):
            options[name] = query[name]
    return options


def _default(resource: ResourceInfo) -> Callable[[Object], None] | None:
    """Give what fills in defaults again after a webhook changed the object."""
    schema = resource.schema
    if schema is None:
        return resource.default

    def default(obj: Object) -> None:
        schema.prepare(obj)

    return default
