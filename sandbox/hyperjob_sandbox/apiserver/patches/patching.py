"""PATCH bodies: which type, what it changes, and server-side apply."""

from collections.abc import Callable
from dataclasses import dataclass

from hyperjob.api import field
from hyperjob.api.meta import Object
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


@dataclass(slots=True)
class Patch:
    """A decoded patch."""

    media: str
    body: Json

    @property
    def applies(self) -> bool:
        """Tell whether this is server-side apply."""
        return self.media == APPLY

    def first(self, call: Call) -> Object:
        """Give the object that an apply creates."""
        return apply(None, self._configuration(call), Writer.of(call))

    def apply(self, live: Object, call: Call) -> Object:
        """Give the live object with the patch applied, as a new value."""
        if self.applies:
            return apply(live, self._configuration(call), Writer.of(call))
        patched = _PATCHES[self.media](live, self.body)
        if not isinstance(patched, dict):
            raise errors.rejected_patch()
        return patched

    def _configuration(self, call: Call) -> Object:
        body = self.body
        if not isinstance(body, dict):
            raise errors.bad_request(f"error decoding YAML: {body!r} is no object")
        resource = call.resource
        given = (body.get("apiVersion"), body.get("kind"))
        if given != (resource.api_version, resource.kind):
            raise errors.bad_request(
                f"invalid object type: {body.get('apiVersion', '')}, Kind={body.get('kind', '')}"
            )
        return body


def read(call: Call) -> Patch:
    """Decode the body of a PATCH; refuse a type that the resource does not take (415)."""
    accepted = [JSON_PATCH, MERGE_PATCH, APPLY]
    if not call.resource.custom:
        accepted.insert(2, STRATEGIC_MERGE)
    media = media_type(call.content_type)
    if media not in accepted:
        raise errors.unsupported_media_type(accepted)
    if media == APPLY and not call.info.query.get("fieldManager"):
        raise errors.invalid_option(
            "PatchOptions",
            field.required(field.Path("fieldManager"), "is required for apply patch"),
        )
    if media != APPLY and "force" in call.info.query:
        raise errors.invalid_option(
            "PatchOptions",
            field.forbidden(field.Path("force"), "may not be specified for non-apply patch"),
        )
    return Patch(media, load(call.body, yaml_allowed=media == APPLY, kind=call.resource.kind))
