"""Who may do what. Everybody whom the server knows may do everything.

The one place to decide it: the dispatcher asks here before a handler runs, access reviews ask here
too. An authorizer that reads roles would replace `allowed` and nothing else.
"""

from dataclasses import dataclass

from hyperjob.sandbox.apiserver import errors
from hyperjob.sandbox.apiserver.transport.authn import User
from hyperjob.sandbox.apiserver.transport.requestinfo import RequestInfo

UNAUTHENTICATED = "system:unauthenticated"
_OPEN_PATHS = frozenset({"healthz", "livez", "readyz", "version"})


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


def allowed(user: User, action: Action) -> bool:
    """Decide whether a user may do something."""
    if action.path and action.path.strip("/").split("/")[0] in _OPEN_PATHS:
        return True
    return UNAUTHENTICATED not in user.groups


def authorize(user: User, info: RequestInfo) -> None:
    """Raise 403 for a request that its user may not make."""
    if info.resource:
        action = Action(
            info.verb, info.group, info.resource, info.subresource, info.namespace, info.name
        )
    else:
        action = Action(info.method.lower(), path=info.path)
    if not allowed(user, action):
        raise _refusal(user, action)


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
