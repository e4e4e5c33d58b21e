"""Kinds that only answer a question: who am I, may I, which rules hold for me.

They store nothing; who may do what is decided in `authorization.py`.
"""

from datetime import UTC, datetime, timedelta

from hyperjob.api.meta import Object
from hyperjob.sandbox.apiserver import errors
from hyperjob.sandbox.apiserver.transport.authn import User
from hyperjob.sandbox.apiserver.transport.authorization import Action, allowed
from hyperjob.sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob.sandbox.apiserver.transport.decode import read_object, require_type

_ATTRIBUTES = ("group", "resource", "subresource", "namespace", "name")
_ACCESS = frozenset({"SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"})


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
    given = spec.get("resourceAttributes") or {}
    path = (spec.get("nonResourceAttributes") or {}).get("path") or ""
    verb = given.get("verb") or (spec.get("nonResourceAttributes") or {}).get("verb") or ""
    names = {name: str(given.get(name) or "") for name in _ATTRIBUTES}
    return {"allowed": allowed(user, Action(verb, path=path, **names))}


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    return {**info, "uid": user.uid} if user.uid else info
