"""Commands in this process, on an API server in memory with members behind its cluster proxy."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from hyperjob.cli import main
from hyperjob.cli.kubectl.connection import Access
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import Call
from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS
from hyperjob_core.kube.transport import Response
from tests.support.apiserver import ApiServer, refusal

Object = dict[str, Any]
_CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters/"


class Fleet(ApiServer):
    """A Karmada API server; `members` are those of its clusters, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, ApiServer] = {}
        self.kube = Kube(self, namespace="ml")

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if path.startswith(_CLUSTERS) and "/proxy/" in path:
            name, _, rest = path.removeprefix(_CLUSTERS).partition("/proxy/")
            if name not in self.members:
                raise refusal(503, "ServiceUnavailable", f"cluster {name} is unreachable")
            return await self.members[name].request(method, f"/{rest}", **more)
        return await super().request(method, path, **more)

    def answer(self, call: Call) -> Any:
        if call.method == "POST" and call.namespace:  # an object gets the namespace of its path
            made = call.content()
            made["metadata"].setdefault("namespace", call.namespace)
            call = replace(call, body=orjson.dumps(made))
        return super().answer(call)

    def hyperjob(self, obj: Object, name: str = "llm") -> None:
        """Store a HyperJob under another name."""
        metadata = {**obj["metadata"], "name": name, "uid": f"uid-{name}"}
        self.put(HYPERJOBS, {**obj, "metadata": metadata})

    def stored(self, name: str = "llm") -> Object:
        found = self.get(HYPERJOBS, f"ml/{name}")
        assert found is not None
        return found

    def vcjob(self, name: str, **labels: str) -> None:
        metadata = {"name": name, "namespace": "ml", "labels": labels}
        self.put(VCJOBS, {"metadata": metadata, "spec": {}})


Run = Callable[..., Result]


def runner(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command on this API server."""

    @asynccontextmanager
    async def connect(_access: Access) -> AsyncIterator[Kube]:
        yield fleet.kube

    monkeypatch.setattr(Access, "connect", connect)

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, list(words), env={"COLUMNS": "300"})

    return run
