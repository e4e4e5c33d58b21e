"""Kinds that only answer a question: who am I, may I, which rules hold for me.

Everything is allowed to everybody whom the server knows; the identity is kept, so that a stricter
authorizer needs only another `allowed`.
"""

from datetime import UTC, datetime, timedelta

from hyperjob.api.meta import Object
from hyperjob.sandbox.apiserver import errors
from hyperjob.sandbox.apiserver.authn import User
from hyperjob.sandbox.apiserver.call import Call, Reply, json_reply
from hyperjob.sandbox.apiserver.decode import read_object, require_type

_ACCESS = frozenset({"SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"})


def allowed(user: User, attributes: Object) -> bool:
    """Decide whether a user may do something."""
    del attributes
    return "system:unauthenticated" not in user.groups


def review(call: Call) -> Reply:
    """Answer a review; nothing is stored."""
    obj, _ = read_object(call.body, call.content_type, call.resource)
    require_type(obj, call.resource, call.body)
    kind = call.resource.kind
    spec = obj.get("spec") or {}
    if kind in _ACCESS:
        status = _access(call.user, kind, spec)
    elif kind == "SelfSubjectRulesReview":
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        status = {
            "resourceRules": [everything],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
    elif kind == "SelfSubjectReview":
        status = {"userInfo": _user_info(call.user)}
    elif kind == "TokenReview":
        status = {"authenticated": False, "user": {}}
    else:
        raise errors.method_not_allowed(call.info.method)
    meta = {"creationTimestamp": None, **(obj.get("metadata") or {})}
    answer = {"kind": kind, "apiVersion": call.resource.api_version, "metadata": meta}
    return json_reply({**answer, "spec": spec, "status": status}, code=201)


def token(call: Call) -> Reply:
    """Answer a TokenRequest with a token that names the service account and nothing more."""
    expires = datetime.now(UTC) + timedelta(hours=1)
    name = f"system:serviceaccount:{call.info.namespace}:{call.info.name}"
    status = {"token": name, "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
    body = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": call.info.name, "namespace": call.info.namespace},
        "spec": {"audiences": [], "expirationSeconds": 3600, "boundObjectRef": None},
        "status": status,
    }
    return json_reply(body, code=201)


def _access(user: User, kind: str, spec: Object) -> Object:
    if kind != "SelfSubjectAccessReview":
        user = User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
    attributes = spec.get("resourceAttributes") or spec.get("nonResourceAttributes") or {}
    return {"allowed": True} if allowed(user, attributes) else {"allowed": False}


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    return {**info, "uid": user.uid} if user.uid else info
