"""One API request and its answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.transport.authn import User
from hyperjob_sandbox.apiserver.transport.encode import dump
from hyperjob_sandbox.apiserver.transport.requestinfo import Form, RequestInfo, negotiate

_MANAGER_LIMIT = 128


@dataclass(slots=True)
class Call:
    """A request for a known resource; warnings collect what the answer's headers will say."""

    info: RequestInfo
    resource: ResourceInfo
    user: User
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def form(self) -> Form:
        """Give the form of answer that the client asked for."""
        return negotiate(self.accept)

    @property
    def namespace(self) -> str | None:
        """Give the one namespace that is meant; None for all, and for what has none."""
        return self.info.namespace or None if self.resource.namespaced else None

    @property
    def field_manager(self) -> str:
        """Name the writer for managedFields: as given, else the client program."""
        given = self.info.query.get("fieldManager", "")
        if given:
            return given
        name = self.user_agent.partition("/")[0]
        return "".join(c for c in name if c.isprintable())[:_MANAGER_LIMIT] or "unknown"

    def not_found(self) -> errors.ApiError:
        """Say that the named object does not exist."""
        return errors.not_found(self.resource.group, self.resource.plural, self.info.name)

    def conflict(self, why: str = "") -> errors.ApiError:
        """Say that the named object is not what the client assumed."""
        return errors.conflict(self.resource.group, self.resource.plural, self.info.name, why)


@dataclass(slots=True)
class Reply:
    """A whole answer."""

    code: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    retry_after: int = 0


@dataclass(slots=True)
class Stream:
    """An answer that goes on: each chunk is one or more lines of a watch."""

    chunks: AsyncIterator[bytes]
    content_type: str = "application/json"


@dataclass(slots=True, kw_only=True)
class Session(Reply):
    """An answer by WebSocket, on which `talk` carries both sides; others get it as a Reply."""

    talk: Callable[[web.WebSocketResponse], Awaitable[None]]


Connector = Callable[[Call], Awaitable[Reply | Stream]]
"""Answers a subresource that another API server would, such as a proxy."""


def json_reply(value: Json, *, code: int = 200) -> Reply:
    """Answer with a JSON value as it is."""
    return Reply(code, dump(value))


def status_reply(status: Object) -> Reply:
    """Answer with a Status."""
    seconds = (status.get("details") or {}).get("retryAfterSeconds", 0)
    return Reply(int(status.get("code", 200)), dump(status), retry_after=seconds)
