"""AdmissionReview v1: what a webhook is asked, and what its answer may say."""

import base64
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import orjson

from hyperjob_core.api.field import go_quote
from hyperjob_core.api.meta import Object
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


class WebhookError(Exception):
    """A webhook that gave no usable answer; the text says why in the API server's words."""


def invalid(why: str) -> WebhookError:
    """Return the error of an answer that no webhook may give."""
    return WebhookError(f"received invalid webhook response: {why}")


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


def review(request: AdmissionRequest) -> tuple[str, bytes]:
    """Return a fresh uid and the review's body."""
    uid = str(uuid.uuid4())
    sent: Object = {
        **attributes(request, uid=uid),
        "object": request.object,
        "oldObject": request.old_object,
        "dryRun": request.dry_run,
        "options": request.options,
    }
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": sent}
    return uid, orjson.dumps(body) + b"\n"


def read_answer(body: Json, *, uid: str, mutating: bool) -> AdmissionResponse:
    """Check an answer; raise WebhookError."""
    response = body.get("response") if isinstance(body, dict) else None
    if not isinstance(response, dict):
        raise invalid("webhook response was absent")
    found = response.get("uid") or ""
    if found != uid:
        raise invalid(f"expected response.uid={go_quote(uid)}, got {go_quote(found)}")
    version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if (version, kind) != ("admission.k8s.io/v1", "AdmissionReview"):
        raise invalid(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
            f"got {version or '/'}, Kind={kind}"
        )
    if response.get("patch") and not mutating:
        raise invalid("validating webhook may not return response.patch")
    return AdmissionResponse(
        allowed=response.get("allowed") is True,
        status=dict(response.get("status") or {}),
        patch=_patch(response) if response.get("patch") else [],
        warnings=tuple(response.get("warnings") or ()),
    )


def _patch(response: Object) -> list[Json]:
    if response.get("patchType") != "JSONPatch":
        raise invalid("response.patchType must be JSONPatch where there is a response.patch")
    try:
        operations: list[Json] = orjson.loads(base64.b64decode(response["patch"], validate=True))
    except (ValueError, TypeError) as error:
        raise invalid(f"received undecodable patch: {error}") from error
    return operations
