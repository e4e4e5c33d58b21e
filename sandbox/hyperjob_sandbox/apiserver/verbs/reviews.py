"""Kinds that only answer a question: who am I, may I, which rules hold for me; and tokens.

They store nothing; who may do what is the authorizer's to say.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.rbac import EVERYTHING
from hyperjob_sandbox.apiserver.transport.authn import User
from hyperjob_sandbox.apiserver.transport.authorization import Action
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob_sandbox.apiserver.transport.decode import read_object, require_type

_ATTRIBUTES: Final = ("group", "resource", "subresource", "namespace", "name")
_ACCESS: Final = frozenset(
    {"SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"}
)
_HOUR: Final = 3600
_SHORTEST: Final = 600


def review(core: Core, call: Call) -> Reply:
    """Answer a review; nothing is stored."""
    obj, _ = read_object(call.body, call.content_type, call.resource)
    require_type(obj, call.resource, call.body)
    kind = call.resource.kind
    spec = obj.get("spec") or {}
    if kind in _ACCESS:
        status = _access(core, call.user, kind, spec)
    elif kind == "SelfSubjectRulesReview":
        status = _rules(core, call.user, str(spec.get("namespace") or ""))
    elif kind == "SelfSubjectReview":
        status = {"userInfo": _user_info(call.user)}
    elif kind == "TokenReview":
        user = core.tokens.user(str(spec.get("token") or ""))
        status = {"authenticated": user is not None, "user": _user_info(user) if user else {}}
    else:
        raise errors.method_not_allowed()
    meta = {"creationTimestamp": None, **(obj.get("metadata") or {})}
    answer = {"kind": kind, "apiVersion": call.resource.api_version, "metadata": meta}
    return json_reply({**answer, "spec": spec, "status": status}, code=201)


def token(core: Core, call: Call) -> Reply:
    """Answer a TokenRequest with a token of the service account."""
    asked, _ = read_object(call.body, call.content_type, call.resource)
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


def _access(core: Core, user: User, kind: str, spec: Object) -> Object:
    if kind != "SelfSubjectAccessReview":
        user = User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
    given = spec.get("resourceAttributes") or {}
    path = (spec.get("nonResourceAttributes") or {}).get("path") or ""
    verb = given.get("verb") or (spec.get("nonResourceAttributes") or {}).get("verb") or ""
    names = {name: str(given.get(name) or "") for name in _ATTRIBUTES}
    return {"allowed": core.authorizer.allows(user, Action(verb, path=path, **names))}


def _rules(core: Core, user: User, namespace: str) -> Object:
    rules = EVERYTHING if core.rbac is None else core.rbac.rules_of(user, namespace)
    return {
        "resourceRules": [
            {
                "verbs": list(rule.verbs),
                "apiGroups": list(rule.groups),
                "resources": list(rule.resources),
                **({"resourceNames": list(rule.names)} if rule.names else {}),
            }
            for rule in rules
            if rule.resources
        ],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)}
            for rule in rules
            if rule.urls
        ],
        "incomplete": False,
    }


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    return {**info, "uid": user.uid} if user.uid else info
