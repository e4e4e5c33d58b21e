"""Measure the embedded API server, as a ratio to a bare aiohttp handler in the same run.

usage: python benchmarks/bench_apiserver.py [--creates 4000] [--watchers 50]

Server and clients are separate processes: the measured CPU time is the server's own.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from hyperjob_sandbox.apiserver.server import ApiServer

CRD: dict[str, Any] = yaml.safe_load(
    """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.bench.example.dev}
spec:
  group: bench.example.dev
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [parts]
            properties:
              size: {type: integer, minimum: 1, maximum: 10, default: 3}
              mode: {type: string, enum: [static, auto], default: static}
              parts:
                type: array
                maxItems: 8
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string, maxLength: 20}
                    count: {type: integer, default: 1}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
)
PATH = "/apis/bench.example.dev/v1/namespaces/default/gadgets"
CONNECTIONS = 8


def gadget(name: str) -> bytes:
    """Build a small object."""
    spec = {"parts": [{"name": "a"}, {"name": "b", "count": 2}]}
    return json.dumps(
        {
            "apiVersion": "bench.example.dev/v1",
            "kind": "Gadget",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "bench"}},
            "spec": spec,
        },
        separators=(",", ":"),
    ).encode()


def serve(pipe: Connection, directory: str) -> None:
    """Run the API server and, beside it, a bare handler with the same TLS."""

    async def main() -> None:
        async with ApiServer(crds=[CRD]) as server:
            kubeconfig = server.kubeconfig(Path(directory) / "kubeconfig")

            async def bare(request: web.BaseRequest) -> web.StreamResponse:
                body = await request.read()
                return web.Response(body=body, content_type="application/json")

            context = server._authority.server_context()  # noqa: SLF001
            listener = await asyncio.get_running_loop().create_server(
                web.Server(bare, access_log=None), "127.0.0.1", 0, ssl=context
            )
            port = listener.sockets[0].getsockname()[1]
            pipe.send((server.url, f"https://127.0.0.1:{port}", str(kubeconfig)))
            loop = asyncio.get_running_loop()
            while True:
                if await loop.run_in_executor(None, pipe.recv) == "stop":
                    break
                usage = resource.getrusage(resource.RUSAGE_SELF)
                pipe.send(usage.ru_utime + usage.ru_stime)
            listener.close()

    asyncio.run(main())


def client_context(kubeconfig: str) -> ssl.SSLContext:
    """Build a client TLS context from a kubeconfig with inline certificates."""
    import base64

    config = yaml.safe_load(Path(kubeconfig).read_text())
    ca = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=ca)
    user = config["users"][0]["user"]
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        for part in ("client-certificate-data", "client-key-data"):
            file.write(base64.b64decode(user[part]) + b"\n")
        file.flush()
        context.load_cert_chain(file.name)
    return context


async def measured(
    pipe: Connection, count: int, call: Callable[[int], Awaitable[None]]
) -> tuple[float, float]:
    """Send `count` requests over several connections; return requests/s and server CPU ms each."""
    pending = iter(range(count))

    async def worker() -> None:
        for number in pending:
            await call(number)

    pipe.send("cpu")
    before = pipe.recv()
    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
    elapsed = time.perf_counter() - started
    pipe.send("cpu")
    return count / elapsed, (pipe.recv() - before) / count * 1000


async def run(options: argparse.Namespace, pipe: Connection) -> None:
    """Print one line for each measurement."""
    url, bare, kubeconfig = pipe.recv()
    connector = aiohttp.TCPConnector(ssl=client_context(kubeconfig), limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def echo(number: int) -> None:
            async with session.post(f"{bare}/", data=gadget(f"g{number}")) as response:
                await response.read()

        async def create(number: int) -> None:
            headers = {"Content-Type": "application/json"}
            body = gadget(f"g{number:06d}")
            async with session.post(f"{url}{PATH}", data=body, headers=headers) as response:
                assert response.status == 201, await response.text()
                await response.read()

        async def patch(number: int) -> None:
            headers = {"Content-Type": "application/merge-patch+json"}
            # A new value each time: the API server does not store a patch without a change.
            body = b'{"status":{"ready":%d}}' % time.perf_counter_ns()
            target = f"{url}{PATH}/g{number:06d}/status"
            async with session.patch(target, data=body, headers=headers) as response:
                assert response.status == 200, await response.text()
                await response.read()

        async def get(number: int) -> None:
            async with session.get(f"{url}{PATH}/g{number:06d}") as response:
                await response.read()

        rate, cost = await measured(pipe, options.creates, echo)
        base = cost
        print(f"bare handler      {rate:8.0f}/s  {cost:6.3f} ms CPU  1.00x")
        for name, call in (("create", create), ("get", get), ("patch status", patch)):
            rate, cost = await measured(pipe, options.creates, call)
            print(f"{name:17} {rate:8.0f}/s  {cost:6.3f} ms CPU  {cost / base:.2f}x")
        await watch_fan_out(session, url, options, pipe, base, patch)


async def watch_fan_out(
    session: aiohttp.ClientSession,
    url: str,
    options: argparse.Namespace,
    pipe: Connection,
    base: float,
    patch: Callable[[int], Awaitable[None]],
) -> None:
    """Measure the cost of writes with many watchers."""
    writes = min(options.creates, 500)
    async with session.get(f"{url}{PATH}?limit=1") as response:
        version = (await response.json())["metadata"]["resourceVersion"]

    async def reader() -> None:
        target = f"{url}{PATH}?watch=1&resourceVersion={version}"
        async with session.get(target) as response:
            for _ in range(writes):
                assert await response.content.readline()

    readers = [asyncio.create_task(reader()) for _ in range(options.watchers)]

    rate, cost = await measured(pipe, writes, patch)
    await asyncio.gather(*readers)
    events = rate * options.watchers
    print(
        f"{options.watchers} watchers       {rate:8.0f}/s  {cost:6.3f} ms CPU  {cost / base:.2f}x"
        f"  ({events:.0f} events/s delivered)"
    )


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--creates", type=int, default=4000)
    parser.add_argument("--watchers", type=int, default=50)
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as directory:
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=serve, args=(theirs, directory))
        process.start()
        try:
            asyncio.run(run(options, ours))
        finally:
            ours.send("stop")
            process.join(10)
            if process.is_alive():
                process.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
