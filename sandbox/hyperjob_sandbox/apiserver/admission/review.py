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

Operation = Literal["CREATE", "UPDATE", "DELETE"]


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

    `default` fills in the defaults of the object's type after each change; `warnings` collects
    what webhooks say.
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
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """A webhook's checked answer; the patch is decoded."""

    allowed: bool
    status: Object
    patch: list[Json]
    warnings: tuple[str, ...]


def attributes(request: AdmissionRequest, *, uid: str) -> Object:
    """Return the request of a review without its objects."""
    kind, resource = request.gvk._asdict(), request.gvr._asdict()
    below = request.subresource
    return {
        "uid": uid,
        "kind": kind,
        "resource": resource,
        **({"subResource": below} if below else {}),
        "requestKind": kind,
        "requestResource": resource,
        **({"requestSubResource": below} if below else {}),
        **({"name": request.name} if request.name else {}),
        **({"namespace": request.namespace} if request.namespace else {}),
        "operation": request.operation,
        "userInfo": {key: value for key, value in request.user.items() if value},
    }


def review(request: AdmissionRequest, current: Object | None) -> tuple[str, bytes]:
    """Return a fresh uid and the review's body, with the object as it is by now."""
    uid = str(uuid.uuid4())
    sent: Object = {
        **attributes(request, uid=uid),
        "object": current,
        "oldObject": request.old_object,
        "dryRun": request.dry_run,
        "options": request.options,
    }
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": sent}
    return uid, orjson.dumps(body) + b"\n"


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
    if response.get("patch") and not mutating:
        raise InvalidResponse("validating webhook may not return response.patch")
    return AdmissionResponse(
        allowed=response.get("allowed") is True,
        status=dict(response.get("status") or {}),
        patch=_patch(response),
        warnings=tuple(response.get("warnings") or ()),
    )


def _patch(response: Object) -> list[Json]:
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not patch:
        return []
    if patch_type is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    if patch_type != "JSONPatch":
        raise InvalidResponse(f"unsupported patch type {go_quote(str(patch_type))}")
    try:
        operations: list[Json] = orjson.loads(base64.b64decode(patch, validate=True))
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidResponse(f"received undecodable patch: {error}") from error
    return operations
