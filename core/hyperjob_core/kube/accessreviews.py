"""Ask the API server for the user of a token, and for the user's rights.

The module creates TokenReviews and SubjectAccessReviews and caches the answers for at most half a
minute: a revoked right or token is valid here for at most that time. Without an answer a visitor
has no rights.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Self, TypeVar

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, string, strings
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import (
    SELF_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_REVIEWS,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    Resource,
)
from hyperjob_core.tasks import cancel

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_AT_A_TIME: Final = 16


class Cached(Generic[K, V]):
    """Answers by key, each at most `seconds` old and at most `size` of them.

    Concurrent callers for a key share one request, which continues when one of them is cancelled.
    The cache stores no errors, and evicts the least recently used answer.
    """

    def __init__(
        self,
        ask: Callable[[K], Awaitable[V]],
        *,
        seconds: float,
        size: int,
        clock: Callable[[], float],
    ) -> None:
        self._ask = ask
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._known: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asked: dict[K, asyncio.Task[V]] = {}
        self._turn = asyncio.Semaphore(_AT_A_TIME)

    def __len__(self) -> int:
        return len(self._known)

    async def get(self, key: K) -> V:
        """Return the answer, from the cache while it is fresh; raises the errors of the request."""
        found = self._known.get(key)
        if found is not None and self._clock() - found[0] < self._seconds:
            self._known.move_to_end(key)
            return found[1]
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._fetch(key))
            task.add_done_callback(lambda done: self._answered(key, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel the requests in progress."""
        await cancel(self._asked.values())

    async def _fetch(self, key: K) -> V:
        """Make the request of a key when it is its turn, and store the answer."""
        async with self._turn:
            asked = self._clock()  # an answer is as old as its request
            value = await self._ask(key)
        self._known[key] = (asked, value)
        self._known.move_to_end(key)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return value

    def _answered(self, key: K, task: "asyncio.Task[V]") -> None:
        """Forget a request that has ended; its error is no unhandled one."""
        self._asked.pop(key, None)
        if not task.cancelled():
            task.exception()  # the waiting callers get the error, and there may be no caller left


SECONDS: Final = 30.0
"""Maximum age of the cached answer to a review."""
TOKENS: Final = 1_000
ANSWERS: Final = 50_000


@dataclass(frozen=True, slots=True)
class User:
    """A user of the API server; `extra` is sorted."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """The attributes of an access review; without `user` for the caller.

    It is about a resource, or about a `path` that is none (nonResourceURL).
    """

    user: User | None
    verb: str
    resource: Resource | None = None
    namespace: str = ""
    name: str = ""
    path: str = ""


class AccessReviews:
    """Creates reviews with an account that has the right to; use with `async with`."""

    def __init__(self, kube: Kube, *, clock: Callable[[], float] | None = None) -> None:
        self._kube = kube
        clock = clock or asyncio.get_running_loop().time
        self._users: Cached[str, User | None] = Cached(
            self._who, seconds=SECONDS, size=TOKENS, clock=clock
        )
        self._answers: Cached[AccessQuestion, bool] = Cached(
            partial(allows, kube), seconds=SECONDS, size=ANSWERS, clock=clock
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._users.close()
        await self._answers.close()

    async def user(self, token: str) -> User | None:
        """Return the user of a bearer token; None when the API server does not accept it.

        Raises KubeError when the API server does not answer.
        """
        return await self._users.get(token)

    async def allows(self, question: AccessQuestion) -> bool:
        """Return whether the API server allows it; raises KubeError without an answer."""
        return await self._answers.get(question)

    async def _who(self, token: str) -> User | None:
        """Return the user of a token, by one review; None if the API server does not accept it."""
        body: Object = {"spec": {"token": token}}
        status = mapping((await self._kube.create(TOKEN_REVIEWS, body)).get("status"))
        if status.get("authenticated") is not True:
            return None
        return _user(mapping(status.get("user")))


async def allows(kube: Kube, question: AccessQuestion) -> bool:
    """Return whether the API server allows it, by one review; raises KubeError."""
    own = question.user is None
    kind = SELF_SUBJECT_ACCESS_REVIEWS if own else SUBJECT_ACCESS_REVIEWS
    answer = await kube.create(kind, {"spec": _review_spec(question)})
    status = mapping(answer.get("status"))
    return status.get("allowed") is True and status.get("denied") is not True


async def own_user(kube: Kube) -> User | None:
    """Return the user of this client; None if the API server names none. Raises KubeError."""
    answer = await kube.create(SELF_SUBJECT_REVIEWS, {})
    return _user(mapping(mapping(answer.get("status")).get("userInfo")))


def _user(found: Object) -> User | None:
    """Return the user of a UserInfo; None if it has no name."""
    name = string(found.get("username"))
    if not name:
        return None
    extra = mapping(found.get("extra"))
    return User(
        name=name,
        uid=string(found.get("uid")),
        groups=strings(found.get("groups")),
        extra=tuple(sorted((key, strings(value)) for key, value in extra.items())),
    )


def _review_spec(question: AccessQuestion) -> Object:
    """Return the spec of an access review, without empty attributes."""
    spec: Object = {}
    if question.user is not None:
        spec["user"] = question.user.name
        spec["groups"] = list(question.user.groups)
        spec["uid"] = question.user.uid
        spec["extra"] = {key: list(values) for key, values in question.user.extra}
    resource = question.resource
    if resource is None:
        return {**spec, "nonResourceAttributes": {"verb": question.verb, "path": question.path}}
    plural, _, subresource = resource.plural.partition("/")
    attributes = {
        "verb": question.verb,
        "group": resource.group,
        "version": resource.version,
        "resource": plural,
        "subresource": subresource,
        "namespace": question.namespace,
        "name": question.name,
    }
    return {**spec, "resourceAttributes": {k: v for k, v in attributes.items() if v}}


def bearer(headers: Mapping[str, str]) -> str:
    """Return the bearer token of the Authorization header; empty without one."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
