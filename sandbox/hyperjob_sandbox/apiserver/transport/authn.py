"""Who is calling: a client certificate's subject, or a bearer token.

Tokens are those given at the start, and those of service accounts, which end with the account.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from hyperjob_sandbox.apiserver.state.store import GroupResource, Key, Store

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


SERVICE_ACCOUNTS: Final[GroupResource] = ("", "serviceaccounts")
_LIMIT: Final = 4096


@dataclass(frozen=True, slots=True)
class _Issued:
    account: Key
    uid: str
    expires: float


class Tokens:
    """Knows whose a token is."""

    def __init__(self, store: Store, given: Mapping[str, User]) -> None:
        self._store = store
        self._given = dict(given)
        self._issued: dict[str, _Issued] = {}

    def issue(self, account: Key, *, seconds: float) -> str | None:
        """Make a token of a service account; None when there is no such account."""
        stored = self._store.collection(SERVICE_ACCOUNTS).get(account)
        if stored is None:
            return None
        while len(self._issued) >= _LIMIT:  # the oldest go: no test renews 4096 tokens
            del self._issued[next(iter(self._issued))]
        token = secrets.token_urlsafe(32)
        self._issued[token] = _Issued(account, stored.uid, time.time() + seconds)
        return token

    def user(self, token: str) -> User | None:
        """Name the token's user; None when it is unknown, has expired, or its account is gone."""
        issued = self._issued.get(token)
        if issued is None:
            return self._given.get(token)
        stored = self._store.collection(SERVICE_ACCOUNTS).get(issued.account)
        if stored is None or stored.uid != issued.uid or time.time() >= issued.expires:
            del self._issued[token]
            return None
        return service_account_user(*issued.account, issued.uid)
