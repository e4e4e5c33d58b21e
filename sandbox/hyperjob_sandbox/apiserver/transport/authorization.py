"""Who may do what: the question, and the answer that every known user may do everything.

The authorizer that reads Roles is in `rbac`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.transport.authn import ANONYMOUS, User
from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo

_OPEN_PATHS = frozenset({"healthz", "livez", "readyz", "version"})
_NAME = re.compile(r"(?:^|,)metadata\.name==?([^,=]+)")
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
"""Is called with every request: the user, the action, and whether it is allowed."""

Authorizer = Callable[[User, Action], bool]
"""Decides whether a user may do something."""


def allow_known_users(user: User, action: Action) -> bool:
    """Allow everything to authenticated users, and the health paths to all."""
    return user != ANONYMOUS or action.path.strip("/").split("/")[0] in _OPEN_PATHS


def action_of(info: RequestInfo) -> Action:
    """Say what a request wants to do."""
    if not info.resource:
        return Action(info.method.lower(), path=info.path)
    name = info.name
    if not name and info.verb in _COLLECTION_VERBS:
        selected = _NAME.search(info.query.get("fieldSelector", ""))
        name = selected[1] if selected else ""
    return Action(info.verb, info.group, info.resource, info.subresource, info.namespace, name)


def refusal(user: User, action: Action) -> errors.ApiError:
    """Say that a user may not do something (403)."""
    if action.path:
        why = f'User "{user.name}" cannot {action.verb} path "{action.path}"'
        return errors.failed(403, "Forbidden", f"forbidden: {why}", kind="")
    resource = action.resource + (f"/{action.subresource}" if action.subresource else "")
    where = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {action.verb} resource "{resource}" in API group'
        f' "{action.group}" {where}'
    )
    return errors.forbidden(action.group, action.resource, action.name, why)
