"""The web page as a process, over objects in memory with any number and any texts.

`python -m tests.support.uiplane FILE [--login]` reads JSON lines: first the objects in FILE, later
from its standard input: `{"put": OBJECT}`, `{"remove": "hyperjobs/NAMESPACE/NAME"}`, or
`{"log": LINE}` for a line in every log. It prints the address of the page, and a line `done` after
each change. With `--login` visitors log in, and
`good` is the token of a user.
"""

import asyncio
import json
import re
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hyperjob_core.kube.resources import CLUSTERS, CORE_EVENTS, HYPERJOBS, QUEUES, TOKEN_REVIEWS
from hyperjob_core.serving.listener import listening
from hyperjob_page.access.cluster import ClusterAccess
from hyperjob_page.access.local import LocalAccess
from hyperjob_page.pages.answers import Context
from hyperjob_page.serve import make_app
from hyperjob_page.world import LiveState
from tests.support.apiserver import ApiServer
from tests.support.uiscene import ago, training

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = {"HyperJob": HYPERJOBS, "Cluster": CLUSTERS, "Queue": QUEUES, "Event": CORE_EVENTS}


class Karmada(ApiServer):
    """An API server with one pod for each sub-job, which allows every access review."""

    host = "karmada.example:5443"

    def __init__(self):
        super().__init__()
        self.log = [b"step 1 of 100", b"step 2 of 100"]  # of every pod, behind its progress lines

    def answer(self, call):
        if call.subresource == "proxy":
            return {"items": [_pod(call.params["labelSelector"].partition("=")[2])]}
        if call.resource is TOKEN_REVIEWS:
            known = call.content()["spec"]["token"] == "good"
            user = {"username": "ann@example.org"} if known else {}
            return {"status": {"authenticated": known, "user": user}}
        if call.resource.kind.endswith("Review"):
            return {"status": {"allowed": True}}
        return super().answer(call)

    async def stream(self, path, *, params, **more):
        """Yield the events of a watch, or a log."""
        if "watch" in params:
            async for event in super().stream(path, params=params, **more):
                yield event
        lines = [*_progress(rank_of(path.removesuffix("/log"))), *self.log]
        for read, line in enumerate(lines):
            moment = f"{BEGIN + timedelta(seconds=read):%Y-%m-%dT%H:%M:%S}Z "
            yield (moment.encode() if params.get("timestamps") else b"") + line + b"\n"


def rank_of(pod):
    """Return the rank of the single pod of a sub-job, from its name."""
    found = re.search(r"-(\d+)-worker-0$", pod)
    return int(found[1]) if found else 0


def _progress(rank):
    """Return the progress lines of a pod."""
    found = []
    for step in range(0, 4300, 100):
        metrics = {name: float(text) for name, text in training(step, 600)["metrics"].items()}
        metrics["loss"] *= 1 + rank / 10
        found.append(json.dumps({"hyperjob": {"step": step, "metrics": metrics}}).encode())
    return found


def _pod(job):
    offset = {"name": "HYPERJOB_RANK_OFFSET", "value": str(rank_of(f"{job}-worker-0"))}
    running = {"running": {"startedAt": ago(60)}}
    return {
        "metadata": {
            "name": f"{job}-worker-0",
            "labels": {
                "volcano.sh/job-name": job,
                "volcano.sh/task-spec": "worker",
                "volcano.sh/task-index": "0",
            },
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "env": [offset]}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": running}],
        },
    }


def change(server, asked):
    """Store or delete an object."""
    if "put" in asked:
        server.put(KINDS[asked["put"]["kind"]], asked["put"])
    else:
        plural, _, key = asked["remove"].partition("/")
        server.remove(next(kind for kind in KINDS.values() if kind.plural == plural), key)


async def lines():
    """Yield the lines of standard input."""
    reader = asyncio.StreamReader(limit=2**24)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    try:
        while line := await reader.readline():
            yield line
    finally:
        transport.close()


def _access(kube, world, *, login):
    if not login:
        return LocalAccess(kube)
    hosts = ("127.0.0.1", "localhost")
    return ClusterAccess(
        kube,
        acting=lambda _: kube,
        key=bytes(32),
        hosts=hosts,
        namespaces=lambda: world.namespaces,
    )


async def serve(file, *, login):
    """Serve until standard input ends."""
    server = Karmada()
    first = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    for line in first:
        change(server, line)
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(LiveState(server.kube).running())
        access = await stack.enter_async_context(_access(server.kube, world, login=login))
        context = Context(world=world, access=access)
        _, port = await stack.enter_async_context(listening(make_app(context), "127.0.0.1", 0))
        await world.synced()
        print(access.listens_on("127.0.0.1", port), flush=True)
        async for line in lines():
            asked = json.loads(line)
            if "log" in asked:
                server.log.append(asked["log"].encode())
            else:
                change(server, asked)
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], login="--login" in sys.argv))
