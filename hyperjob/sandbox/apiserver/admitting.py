"""Admission: the namespace must exist and live; then the webhooks are asked."""

from typing import Literal

from hyperjob.api.meta import Object
from hyperjob.sandbox.apiserver import errors
from hyperjob.sandbox.apiserver.call import Call
from hyperjob.sandbox.apiserver.core import Core

Operation = Literal["CREATE", "UPDATE", "DELETE"]


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


async def admit(
    core: Core,
    call: Call,
    operation: Operation,
    obj: Object | None,
    old: Object | None,
    *,
    validating: bool = False,
) -> Object:
    """Ask the webhooks; return the object as they leave it."""
    del core, call, operation, old, validating
    return obj if obj is not None else {}
