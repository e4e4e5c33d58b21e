"""The web page over objects in memory, as a process: any number of HyperJobs, and any text in them.

`python -m tests.support.uiplane FILE [--login]` reads JSON lines: first the objects in FILE, later
from its standard input: `{"put": OBJECT}` or `{"remove": "hyperjobs/NAMESPACE/NAME"}`. It prints
the address of the page, and a line `done` after each change. With `--login` visitors log in, and
`good` is the token of a user.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from hyperjob.kube.resources import CLUSTERS, HYPERJOBS, QUEUES
from hyperjob.ui.access.cluster import ClusterAccess
from hyperjob.ui.access.local import LocalAccess
from hyperjob.ui.context import Context
from hyperjob.ui.running import running
from hyperjob.ui.serve import serving
from tests.support.fakekube import FakeKube
from tests.support.uipast import remember

KINDS = {"HyperJob": HYPERJOBS, "Cluster": CLUSTERS, "Queue": QUEUES}


class PlaneKube(FakeKube):
    """Allows everything."""

    host = "karmada.example:5443"
    namespace = "default"

    async def create(self, resource, obj, **more):
        if resource.kind == "TokenReview":
            known = obj["spec"]["token"] == "good"
            user = {"username": "ann@example.org"} if known else {}
            return {"status": {"authenticated": known, "user": user}}
        if resource.kind.endswith("Review"):
            return {"status": {"allowed": True}}
        return await super().create(resource, obj, **more)


def change(kube, line):
    """Carry out one line."""
    asked = json.loads(line)
    if "put" in asked:
        kube.put(KINDS[asked["put"]["kind"]], asked["put"])
    else:
        plural, _, key = asked["remove"].partition("/")
        kube.remove(next(kind for kind in KINDS.values() if kind.plural == plural), key)


async def lines():
    """Give the lines of standard input."""
    reader = asyncio.StreamReader(limit=2**24)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    try:
        while line := await reader.readline():
            yield line
    finally:
        transport.close()


def _access(kube, known, *, login):
    if not login:
        return LocalAccess(kube)
    hosts = ("127.0.0.1", "localhost")
    return ClusterAccess(
        kube, acting=lambda _: kube, hosts=hosts, namespaces=lambda: known.namespaces
    )


async def serve(file, *, login):
    """Serve until standard input ends."""
    kube = PlaneKube()
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        change(kube, line)
    async with AsyncExitStack() as stack:
        known = await stack.enter_async_context(
            running(kube, lease_namespace="karmada-system", examine=False)
        )
        remember(known.history)
        access = await stack.enter_async_context(_access(kube, known, login=login))
        context = Context(
            world=known.world, history=known.history, attention=known.attention, access=access
        )
        port = await stack.enter_async_context(serving(context, "127.0.0.1", 0))
        await known.world.synced()
        print(access.listens_on("127.0.0.1", port), flush=True)
        async for line in lines():
            change(kube, line)
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], login="--login" in sys.argv))
