"""Kinds that only answer a question: who am I, may I, whose token is this; and new tokens."""

from datetime import UTC, datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.transport.authn import User
from hyperjob_sandbox.apiserver.transport.authorization import Action
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob_sandbox.apiserver.transport.decode import read_object, require_type

_ATTRIBUTES: Final = ("group", "resource", "subresource", "namespace", "name")
_HOUR: Final = 3600
_SHORTEST: Final = 600


def review(core: Core, call: Call) -> Reply:
    """Answer a review; nothing is stored."""
    obj = read_object(call.body, call.content_type, call.resource)
    require_type(obj, call.resource, call.body)
    kind, spec = call.resource.kind, obj.get("spec") or {}
    match kind:
        case "SelfSubjectAccessReview":
            status = _access(core, call.user, spec)
        case "SubjectAccessReview":
            user = User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
            status = _access(core, user, spec)
        case "SelfSubjectReview":
            status = {"userInfo": _user_info(call.user)}
        case "TokenReview":
            known = core.tokens.user(str(spec.get("token") or ""))
            status = {"authenticated": known is not None}
            status["user"] = _user_info(known) if known is not None else {}
        case _:
            raise errors.method_not_allowed()
    meta = {"creationTimestamp": None, **(obj.get("metadata") or {})}
    answer = {"kind": kind, "apiVersion": call.resource.api_version, "metadata": meta}
    return json_reply({**answer, "spec": spec, "status": status}, code=201)


def token(core: Core, call: Call) -> Reply:
    """Answer a TokenRequest with a token of the service account."""
    asked = read_object(call.body, call.content_type, call.resource)
    spec = asked.get("spec") or {}
    seconds = int(spec.get("expirationSeconds") or _HOUR)
    if seconds < _SHORTEST:
        why = (
            "spec.expirationSeconds: Invalid value: may not specify a duration less than 10 minutes"
        )
        raise errors.bad_request(why)
    issued = core.tokens.issue((call.info.namespace, call.info.name), seconds=seconds)
    if issued is None:
        raise call.not_found()
    expires = datetime.now(UTC) + timedelta(seconds=seconds)
    body = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": call.info.name, "namespace": call.info.namespace},
        "spec": {
            "audiences": list(spec.get("audiences") or ()),
            "expirationSeconds": seconds,
            "boundObjectRef": None,
        },
        "status": {"token": issued, "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")},
    }
    return json_reply(body, code=201)


def _access(core: Core, user: User, spec: Object) -> Object:
    given, other = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
    names = {name: str(given.get(name) or "") for name in _ATTRIBUTES}
    verb = given.get("verb") or other.get("verb") or ""
    return {"allowed": core.allows(user, Action(verb, path=other.get("path") or "", **names))}


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    return {**info, "uid": user.uid} if user.uid else info
