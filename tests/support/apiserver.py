"""The API server in memory for unit tests, which records write requests and injects errors."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, from_status
from hyperjob_core.kube.memory import Call, MemoryServer
from hyperjob_core.kube.resources import EVENTS, Resource
from hyperjob_core.kube.transport import Response

Fails = Callable[[str, Resource, str], KubeError | None]
VERBS = {"POST": "create", "PATCH": "patch", "PUT": "replace", "DELETE": "delete"}


def refusal(code: int, reason: str, message: str = "no") -> KubeError:
    return from_status({"code": code, "reason": reason, "message": message}, "fake")


class ApiServer(MemoryServer):
    """`calls` are the write requests, `events` the Events; `fails` may return an error.

    `prunes` are fields that the server drops from a written status, as with an older CRD.
    """

    def __init__(self) -> None:
        super().__init__(now=lambda: datetime.now(UTC))
        self.calls: list[tuple[str, str, str]] = []
        self.fails: Fails = lambda _verb, _resource, _name: None
        self.prunes: tuple[str, ...] = ()
        self.events: list[Any] = []
        self.kube = Kube(self)
        self.listen(self._heard)

    def _heard(self, kind: str, _old: object, new: object) -> None:
        if kind == EVENTS.kind:
            self.events.append(new)

    def serve(self, monkeypatch: pytest.MonkeyPatch, connects: type = Kube) -> None:
        """Let the method `connect` of a class give the client of this API server."""

        @asynccontextmanager
        async def connect(*_given: Any, **_more: Any) -> AsyncIterator[Kube]:
            yield self.kube

        monkeypatch.setattr(connects, "connect", connect)

    async def request(self, *request: Any, **more: Any) -> Response:
        await asyncio.sleep(0)
        return await super().request(*request, **more)

    def answer(self, call: Call) -> Any:
        name = f"{call.name}/{call.subresource}" if call.subresource else call.name
        if call.method == "POST":
            name = call.content().get("metadata", {}).get("name", "")
        verb = VERBS.get(call.method) or ("get" if name else "list")
        if call.method in VERBS:
            self.calls.append((verb, call.resource.plural, name))
        error = self.fails(verb, call.resource, name)
        if error is not None:
            raise error
        return super().answer(self._pruned(call) if self.prunes else call)

    def _pruned(self, call: Call) -> Call:
        content = call.content()
        if call.subresource != "status":
            return call
        kept = {key: each for key, each in content["status"].items() if key not in self.prunes}
        return replace(call, body=orjson.dumps({**content, "status": kept}))
