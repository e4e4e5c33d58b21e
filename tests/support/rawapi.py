"""A plain HTTPS client of an API server, for tests of single requests and answers."""

import base64
import contextlib
import io
import ssl
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

from hyperjob_sandbox.apiserver.server import ApiServer

GADGETS = "/apis/test.example.dev/v1/namespaces/default/gadgets"
GADGET_CRD: dict[str, Any] = yaml.safe_load(
    """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.test.example.dev}
spec:
  group: test.example.dev
  scope: Namespaced
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget, shortNames: [gd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1, default: 3}
              title: {type: string}
          status:
            type: object
            properties:
              ready: {type: integer}
"""
)


def gadget(name: str, *, spec: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """Return a Gadget."""
    return {
        "apiVersion": "test.example.dev/v1",
        "kind": "Gadget",
        "metadata": {"name": name, **meta},
        "spec": spec or {},
    }


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    code: int
    body: Any
    headers: Any

    @property
    def version(self) -> str:
        """Return the resourceVersion of an object or list."""
        return str(self.body["metadata"]["resourceVersion"])


class RawApi:
    """Sends requests, by default with a client certificate."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request; a body of bytes is sent unchanged."""
        encoded = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        data = None if encoded is None else io.BytesIO(encoded)
        sent = {"Content-Type": media, **(headers or {})}
        async with self.session.request(method, self.url + path, data=data, headers=sent) as found:
            content = await found.read()
            try:
                decoded = orjson.loads(content)
            except ValueError:
                decoded = content.decode()
            return Answer(found.status, decoded, found.headers)

    async def get(self, path: str, **more: Any) -> Answer:
        """GET."""
        return await self.call("GET", path, **more)

    async def post(self, path: str, body: Any, **more: Any) -> Answer:
        """POST."""
        return await self.call("POST", path, body, **more)

    async def put(self, path: str, body: Any, **more: Any) -> Answer:
        """PUT."""
        return await self.call("PUT", path, body, **more)

    async def merge(self, path: str, body: Any, **more: Any) -> Answer:
        """PATCH with a merge patch."""
        return await self.call("PATCH", path, body, media="application/merge-patch+json", **more)

    async def delete(self, path: str, body: Any = None, **more: Any) -> Answer:
        """DELETE."""
        return await self.call("DELETE", path, body, **more)

    @contextlib.asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator["Events"]:
        """Open a watch; the path includes the query."""
        joint = "&" if "?" in path else "?"
        async with self.session.get(f"{self.url}{path}{joint}watch=true", headers=headers) as found:
            assert found.status == 200, await found.text()
            yield Events(found)


class Events:
    """The events of a watch, in order."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> dict[str, Any]:
        """Return the next event; fail when the stream ends."""
        line = await self._response.content.readline()
        assert line, "the watch ended"
        return dict(orjson.loads(line))

    async def rest(self) -> list[dict[str, Any]]:
        """Return all events until the stream ends."""
        return [orjson.loads(line) async for line in self._response.content]

    async def names(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        found = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in found]


def client_context(kubeconfig: Path) -> ssl.SSLContext:
    """Return a TLS context from a kubeconfig with inline certificates."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        for part in ("client-certificate-data", "client-key-data"):
            file.write(base64.b64decode(user[part]) + b"\n")
        file.flush()
        context.load_cert_chain(file.name)
    return context


@contextlib.asynccontextmanager
async def connected(server: ApiServer, directory: Path) -> AsyncIterator[RawApi]:
    """Connect as an administrator."""
    context = client_context(server.kubeconfig(directory / "kubeconfig"))
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield RawApi(session, server.url)
