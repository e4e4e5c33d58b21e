"""AdmissionReview v1: what a webhook is asked, and what its answer may say.

Pure. A review has the very keys that kube-apiserver sends, absent ones included.
"""

import base64
import binascii
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import orjson

from hyperjob.api.field import go_quote
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class GroupVersionKind(NamedTuple):
    """The type of an object."""

    group: str
    version: str
    kind: str


class GroupVersionResource(NamedTuple):
    """A resource of the API."""

    group: str
    version: str
    resource: str


class InvalidResponse(ValueError):  # noqa: N818 - it names what was received
    """An answer that no webhook may give; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """A write on its way into the store, as admission sees it.

    `default` fills in the defaults of the object's type after each change; `equivalents` are the
    versions under which the same object is served, too; `warnings` collects what webhooks say.
    """

    operation: Operation
    gvr: GroupVersionResource
    gvk: GroupVersionKind
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    object: Object | None = None
    old_object: Object | None = None
    options: Object | None = None
    user: Object = field(default_factory=dict)
    dry_run: bool = False
    default: Callable[[Object], None] | None = None
    equivalents: tuple[tuple[GroupVersionResource, GroupVersionKind], ...] = ()
    warnings: list[str] = field(default_factory=list)


class Target(NamedTuple):
    """The version under which a webhook wants to see the object."""

    gvr: GroupVersionResource
    gvk: GroupVersionKind


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """A webhook's checked answer; the patch is decoded."""

    allowed: bool
    status: Object
    patch: list[Json]
    warnings: tuple[str, ...]


def attributes(request: AdmissionRequest, target: Target, *, uid: str) -> Object:
    """Return the request of a review, without its objects: what match conditions see, too."""
    sent: Object = {"uid": uid, "kind": target.gvk._asdict(), "resource": target.gvr._asdict()}
    if request.subresource:
        sent["subResource"] = request.subresource
    sent["requestKind"] = request.gvk._asdict()
    sent["requestResource"] = request.gvr._asdict()
    if request.subresource:
        sent["requestSubResource"] = request.subresource
    if request.name:
        sent["name"] = request.name
    if request.namespace:
        sent["namespace"] = request.namespace
    sent["operation"] = request.operation
    sent["userInfo"] = {key: value for key, value in request.user.items() if value}
    return sent


def review(request: AdmissionRequest, target: Target, current: Object | None) -> tuple[str, bytes]:
    """Return a fresh uid and the review's body, with the object as it is by now."""
    uid = str(uuid.uuid4())
    sent = attributes(request, target, uid=uid)
    sent["object"] = in_version(current, target.gvk)
    sent["oldObject"] = in_version(request.old_object, target.gvk)
    sent["dryRun"] = request.dry_run
    sent["options"] = request.options
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": sent}
    return uid, orjson.dumps(body) + b"\n"


def in_version(obj: Object | None, gvk: GroupVersionKind) -> Object | None:
    """Return an object under another of its versions; without conversion only the name differs."""
    if obj is None:
        return None
    api_version = f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version
    return obj if obj.get("apiVersion") == api_version else {**obj, "apiVersion": api_version}


def read_answer(body: Json, *, uid: str, mutating: bool) -> AdmissionResponse:
    """Check an answer; raise InvalidResponse."""
    if not isinstance(body, dict) or not isinstance(body.get("response"), dict):
        raise InvalidResponse("webhook response was absent")
    response = body["response"]
    found = response.get("uid") or ""
    if found != uid:
        raise InvalidResponse(f"expected response.uid={go_quote(uid)}, got {go_quote(found)}")
    version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if (version, kind) != ("admission.k8s.io/v1", "AdmissionReview"):
        raise InvalidResponse(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
            f"got {version or '/'}, Kind={kind}"
        )
    warnings = tuple(text for text in response.get("warnings") or () if isinstance(text, str))
    status = response.get("status")
    return AdmissionResponse(
        allowed=response.get("allowed") is True,
        status=dict(status) if isinstance(status, dict) else {},
        patch=_patch(response, mutating=mutating),
        warnings=warnings,
    )


def _patch(response: Object, *, mutating: bool) -> list[Json]:
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not mutating:
        if patch:
            raise InvalidResponse("validating webhook may not return response.patch")
        if patch_type is not None:
            raise InvalidResponse("validating webhook may not return response.patchType")
        return []
    if patch and patch_type is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise InvalidResponse("webhook returned response.patchType but not response.patch")
    if not patch:
        return []
    if patch_type == "":
        raise InvalidResponse('webhook returned invalid response.patchType of ""')
    if patch_type != "JSONPatch":
        raise UnusablePatch(f"unsupported patch type {go_quote(str(patch_type))}")
    try:
        operations = orjson.loads(base64.b64decode(patch, validate=True))
    except (binascii.Error, ValueError, TypeError) as error:
        raise UnusablePatch(f"received undecodable patch in webhook response: {error}") from error
    if not isinstance(operations, list):
        raise UnusablePatch(
            "received undecodable patch in webhook response: json: cannot unmarshal into Go value "
            "of type jsonpatch.Patch"
        )
    return operations


class UnusablePatch(InvalidResponse):
    """A patch in a sound answer that cannot be read."""
