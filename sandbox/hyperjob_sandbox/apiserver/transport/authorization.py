"""Who may do what: the question, and the answer that everybody known may do everything.

The one place where requests are authorized: the dispatcher asks here before a handler runs, access
reviews ask the same authorizer. The authorizer of Roles is in `rbac`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.state.selectors import SelectorError, parse_fields
from hyperjob_sandbox.apiserver.transport.authn import User, acting_as, service_account
from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo

UNAUTHENTICATED = "system:unauthenticated"
_OPEN_PATHS = frozenset({"healthz", "livez", "readyz", "version"})
_COLLECTION_VERBS = frozenset({"list", "watch", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Action:
    """What a user wants to do; `path` is given for what is no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


Audit = Callable[[User, Action, bool], None]
"""Hears who wants to do what, and whether he may."""


class Authorizer(Protocol):
    """Decides."""

    def allows(self, user: User, action: Action) -> bool:
        """Decide whether a user may do something."""
        ...


class KnownUsers:
    """Lets everybody whom the server knows do everything."""

    def allows(self, user: User, action: Action) -> bool:
        """Decide whether a user may do something."""
        if action.path and action.path.strip("/").split("/")[0] in _OPEN_PATHS:
            return True
        return UNAUTHENTICATED not in user.groups


def action_of(info: RequestInfo) -> Action:
    """Say what a request wants to do."""
    if not info.resource:
        return Action(info.method.lower(), path=info.path)
    name = info.name
    if not name and info.verb in _COLLECTION_VERBS:
        name = _selected_name(info.query.get("fieldSelector", ""))
    return Action(info.verb, info.group, info.resource, info.subresource, info.namespace, name)


def require(authorizer: Authorizer, user: User, action: Action) -> None:
    """Raise 403 for what a user may not do."""
    if not authorizer.allows(user, action):
        raise _refusal(user, action)


def impersonate(authorizer: Authorizer, user: User, name: str, groups: Sequence[str]) -> User:
    """Give the user that another one acts as; raise 403 when he may not."""
    account = service_account(name)
    if account is not None:
        require(
            authorizer,
            user,
            Action("impersonate", "", "serviceaccounts", namespace=account[0], name=account[1]),
        )
    else:
        require(authorizer, user, Action("impersonate", "", "users", name=name))
    for group in groups:
        require(authorizer, user, Action("impersonate", "", "groups", name=group))
    return acting_as(name, groups)


def _selected_name(text: str) -> str:
    """Give the one name that a field selector selects."""
    try:
        terms = parse_fields(text).requirements
    except SelectorError:
        return ""  # refused later, with its reason
    named = (t.values[0] for t in terms if (t.key, t.operator) == ("metadata.name", "in"))
    return next(named, "")


def _refusal(user: User, action: Action) -> errors.ApiError:
    if action.path:
        why = f'User "{user.name}" cannot {action.verb} path "{action.path}"'
        return errors.ApiError(errors.failure(403, "Forbidden", f"forbidden: {why}", details=True))
    resource = action.resource + (f"/{action.subresource}" if action.subresource else "")
    where = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {action.verb} resource "{resource}" in API group'
        f' "{action.group}" {where}'
    )
    return errors.forbidden(action.group, action.resource, action.name, why)
