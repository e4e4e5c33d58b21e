"""PATCH bodies: which type, what it changes, and server-side apply."""

from collections.abc import Callable

from hyperjob_core.api import field
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership.apply import Writer, apply
from hyperjob_sandbox.apiserver.patches.patch import json_patch, merge_patch, strategic_merge_patch
from hyperjob_sandbox.apiserver.transport.call import Call
from hyperjob_sandbox.apiserver.transport.decode import load, media_type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_PATCHES: dict[str, Callable[[Object, Json], Json]] = {
    JSON_PATCH: json_patch,
    MERGE_PATCH: merge_patch,
    STRATEGIC_MERGE: strategic_merge_patch,
}


Patch = Callable[[Object | None], Object]
"""Makes the patched object, a new value, of the live one; an apply needs no live one."""


def applies(call: Call) -> bool:
    """Tell whether a request is server-side apply."""
    return media_type(call.content_type) == APPLY


def read(call: Call) -> Patch:
    """Decode the body of a PATCH; refuse a type that the resource does not take (415)."""
    accepted = [JSON_PATCH, MERGE_PATCH, APPLY]
    if not call.resource.custom:
        accepted.insert(2, STRATEGIC_MERGE)
    media = media_type(call.content_type)
    if media not in accepted:
        raise errors.unsupported_media_type(accepted)
    body = load(call.body, yaml_allowed=media == APPLY, kind=call.resource.kind)
    if media == APPLY:
        return _apply(call, body)
    if "force" in call.info.query:
        problem = field.forbidden(
            field.ROOT.child("force"), "may not be specified for non-apply patch"
        )
        raise errors.invalid_option("PatchOptions", problem)

    def patched(live: Object | None) -> Object:
        found = _PATCHES[media](live or {}, body)
        if not isinstance(found, dict):
            raise errors.rejected_patch()
        return found

    return patched


def _apply(call: Call, body: Json) -> Patch:
    if not call.info.query.get("fieldManager"):
        problem = field.required(field.ROOT.child("fieldManager"), "is required for apply patch")
        raise errors.invalid_option("PatchOptions", problem)
    if not isinstance(body, dict):
        raise errors.bad_request(f"error decoding YAML: {body!r} is no object")
    version, kind = body.get("apiVersion", ""), body.get("kind", "")
    if (version, kind) != (call.resource.api_version, call.resource.kind):
        raise errors.bad_request(f"invalid object type: {version}, Kind={kind}")
    return lambda live: apply(live, body, Writer.of(call))
