"""A user may not hand on rights that it does not have, unless he may `escalate` or `bind`."""

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.rbac.authorizer import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
    Rbac,
)
from hyperjob_sandbox.apiserver.rbac.rules import Rule, describe, not_covered, quoted
from hyperjob_sandbox.apiserver.transport.authorization import Action
from hyperjob_sandbox.apiserver.transport.call import Call


def check(rbac: Rbac, call: Call, new: Object, old: Object | None) -> None:
    """Raise 403 for a role or binding that gives more than its writer has."""
    storage = call.resource.storage
    if storage in (ROLES, CLUSTER_ROLES):
        _check_role(rbac, call, new, old)
    elif storage in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
        _check_binding(rbac, call, new, old)


def _check_role(rbac: Rbac, call: Call, new: Object, old: Object | None) -> None:
    same = old is not None and all(
        (new.get(key) or None) == (old.get(key) or None) for key in ("rules", "aggregationRule")
    )
    if same or rbac.allows(call.user, _action(call, "escalate", new)):
        return
    if new.get("aggregationRule") is not None:
        everything = Rule(verbs=("*",), groups=("*",), resources=("*",))
        _confirm(rbac, call, [everything], new)
    _confirm(rbac, call, [Rule.read(rule) for rule in new.get("rules") or ()], new)


def _check_binding(rbac: Rbac, call: Call, new: Object, old: Object | None) -> None:
    role = new.get("roleRef") or {}
    same = old is not None and all(new.get(key) == old.get(key) for key in ("roleRef", "subjects"))
    namespace = str(new["metadata"].get("namespace") or "")
    plural = "clusterroles" if role.get("kind") == "ClusterRole" else "roles"
    bind = Action("bind", GROUP, plural, namespace=namespace, name=str(role.get("name") or ""))
    if same or rbac.allows(call.user, bind):
        return
    rules = rbac.rules_behind(role, namespace)
    if rules is None:
        raise errors.not_found(GROUP, plural, bind.name)
    _confirm(rbac, call, rules, new)


def _confirm(rbac: Rbac, call: Call, rules: list[Rule], new: Object) -> None:
    user = call.user
    owned = rbac.rules_of(user, str(new["metadata"].get("namespace") or ""))
    if missing := not_covered(rules, owned):
        why = (
            f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC'
            " permissions not currently held:\n" + "\n".join(describe(missing))
        )
        name = str(new["metadata"].get("name") or "")
        raise errors.forbidden(call.resource.group, call.resource.plural, name, why)


def _action(call: Call, verb: str, obj: Object) -> Action:
    metadata = obj["metadata"]
    return Action(
        verb,
        call.resource.group,
        call.resource.plural,
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata.get("name") or ""),
    )
