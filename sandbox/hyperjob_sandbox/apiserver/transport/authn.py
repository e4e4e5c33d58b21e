"""Who is calling: a client certificate's subject, or the token of a service account."""

import secrets
import time
from collections.abc import Mapping
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
SERVICE_ACCOUNTS: Final[GroupResource] = ("", "serviceaccounts")
_AUTHENTICATED = "system:authenticated"


@lru_cache(maxsize=256)
def user_of_subject(subject: Subject) -> User:
    """Read a certificate's subject: CN is the user, each O a group."""
    fields = [field for part in subject for field in part]
    name = next((value for key, value in fields if key == "commonName"), "")
    groups = (value for key, value in fields if key == "organizationName")
    return User(name, (*groups, _AUTHENTICATED))


def service_account_user(namespace: str, name: str, uid: str) -> User:
    """Give the user that a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid)


class Tokens:
    """The tokens of service accounts; a token ends with its account."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._issued: dict[str, tuple[Key, str, float]] = {}

    def issue(self, account: Key, *, seconds: float) -> str | None:
        """Make a token of a service account; None when there is no such account."""
        stored = self._store.collection(SERVICE_ACCOUNTS).get(account)
        if stored is None:
            return None
        token = secrets.token_urlsafe(32)
        self._issued[token] = account, stored.uid, time.time() + seconds
        return token

    def user(self, token: str) -> User | None:
        """Name the token's user; None when it is unknown, has expired, or its account is gone."""
        account, uid, expires = self._issued.get(token, (("", ""), "", 0.0))
        stored = self._store.collection(SERVICE_ACCOUNTS).get(account)
        if stored is None or stored.uid != uid or time.time() >= expires:
            self._issued.pop(token, None)
            return None
        return service_account_user(*account, uid)


def identify(
    certificate: Mapping[str, Any] | None, authorization: str, tokens: Tokens
) -> User | None:
    """Name the caller; None for an unknown token."""
    if authorization:
        scheme, _, token = authorization.partition(" ")
        return tokens.user(token.strip()) if scheme.lower() == "bearer" else None
    return user_of_subject(certificate["subject"]) if certificate else ANONYMOUS
