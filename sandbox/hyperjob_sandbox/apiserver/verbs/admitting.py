"""Admission: the namespace must exist and live; then the webhooks are asked."""

from hyperjob_core.api import field
from hyperjob_core.api.field import FieldError
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.admission.hooks import compile_hooks
from hyperjob_sandbox.apiserver.admission.review import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)
from hyperjob_sandbox.apiserver.cel import CelError
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource
from hyperjob_sandbox.apiserver.transport.call import Call

_GROUP = "admissionregistration.k8s.io"
MUTATING: GroupResource = (_GROUP, "mutatingwebhookconfigurations")
VALIDATING: GroupResource = (_GROUP, "validatingwebhookconfigurations")
_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


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
        error.status["details"]["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise error


def problems(configuration: Object, resource: ResourceInfo) -> list[FieldError]:
    """Return why webhooks cannot be called: a selector or an expression that does not compile."""
    if resource.storage in (MUTATING, VALIDATING):
        try:
            compile_hooks([configuration])
        except (CelError, ValueError) as error:
            return [field.invalid(field.ROOT.child("webhooks"), field.OMIT, str(error))]
    return []


def follow(core: Core) -> None:
    """Keep the admission chain up to date with the stored configurations."""

    def listener(resource: GroupResource, change: Change) -> None:
        del change
        if resource in (MUTATING, VALIDATING):
            found = [stored.obj for stored in core.store.collection(resource).select()]
            core.admission.reload(**{"mutating" if resource == MUTATING else "validating": found})

    core.store.subscribe(listener)


def request_of(
    call: Call,
    operation: Operation,
    obj: Object | None,
    old: Object | None,
    *,
    options: Object | None = None,
) -> AdmissionRequest:
    """Return what the webhooks are asked; `options` are the request's own unless they are given."""
    resource, info = call.resource, call.info
    gvk = GroupVersionKind(resource.group, resource.version, resource.kind)
    if info.subresource == "scale" and resource.scale is not None:
        gvk = GroupVersionKind("autoscaling", "v1", "Scale")
        obj = obj and resource.scale.object(obj)
        old = old and resource.scale.object(old)
    metadata = (obj or old or {}).get("metadata") or {}
    options = options or _options(call)
    user = call.user
    return AdmissionRequest(
        operation=operation,
        gvr=GroupVersionResource(resource.group, resource.version, resource.plural),
        gvk=gvk,
        subresource=info.subresource,
        namespace=info.namespace,
        name=str(metadata.get("name") or info.name),
        object=obj,
        old_object=old,
        options=options,
        user={"username": user.name, "uid": user.uid, "groups": list(user.groups)},
        dry_run=bool(options.get("dryRun")),
        default=resource.complete,
        warnings=call.warnings,
    )


def _options(call: Call) -> Object:
    """Give the request's own options, as its query says them."""
    query = call.info.query
    kind = _OPTIONS.get(call.info.verb, "UpdateOptions")
    options: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if query.get("dryRun"):
        options["dryRun"] = [query["dryRun"]]
    if "force" in query:
        options["force"] = call.info.flag("force")
    for name in ("fieldManager", "fieldValidation"):
        if query.get(name):
            options[name] = query[name]
    return options
