"""Who is calling: a client certificate's subject, or a bearer token."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Subject = tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
ADMIN_GROUP = "system:masters"
_AUTHENTICATED = "system:authenticated"
_SERVICE_ACCOUNT = "system:serviceaccount:"


@lru_cache(maxsize=256)
def user_of_subject(subject: Subject) -> User:
    """Read a certificate's subject: CN is the user, each O a group."""
    names = {"commonName": [], "organizationName": []}  # type: dict[str, list[str]]
    for part in subject:
        for key, value in part:
            if key in names:
                names[key].append(value)
    name = names["commonName"][0] if names["commonName"] else ""
    return User(name, (*names["organizationName"], _AUTHENTICATED))


def service_account(name: str) -> tuple[str, str] | None:
    """Give namespace and name of the service account that a user's name means, if it does."""
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, colon, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return (namespace, account) if colon and namespace and account else None


def service_account_user(namespace: str, name: str, uid: str = "") -> User:
    """Give the user that a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED)
    return User(f"{_SERVICE_ACCOUNT}{namespace}:{name}", groups, uid)


def acting_as(name: str, groups: Sequence[str]) -> User:
    """Give the user of an impersonation."""
    account = service_account(name)
    if account is not None and not groups:
        return service_account_user(*account)
    known = () if name == ANONYMOUS.name else (_AUTHENTICATED,)
    return User(name, tuple(dict.fromkeys((*groups, *known))))


def identify(
    certificate: Mapping[str, Any] | None,
    authorization: str,
    user_of_token: Callable[[str], User | None],
) -> User | None:
    """Name the caller; None for an unknown token."""
    if authorization:
        scheme, _, token = authorization.partition(" ")
        return user_of_token(token.strip()) if scheme.lower() == "bearer" else None
    if certificate:
        return user_of_subject(certificate["subject"])
    return ANONYMOUS
