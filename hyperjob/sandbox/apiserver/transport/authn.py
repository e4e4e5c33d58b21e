"""Who is calling: a client certificate's subject, or a bearer token."""

from collections.abc import Mapping, Sequence
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


def impersonated(user: User, name: str, groups: Sequence[str]) -> User:
    """Give the user that an administrator acts as."""
    if not name or ADMIN_GROUP not in user.groups:
        return user
    known = () if name == ANONYMOUS.name else (_AUTHENTICATED,)
    return User(name, (*groups, *known))


def identify(
    certificate: Mapping[str, Any] | None,
    authorization: str,
    tokens: Mapping[str, User],
) -> User | None:
    """Name the caller; None for a token that nobody knows."""
    if authorization:
        scheme, _, token = authorization.partition(" ")
        return tokens.get(token.strip()) if scheme.lower() == "bearer" else None
    if certificate:
        return user_of_subject(certificate["subject"])
    return ANONYMOUS
