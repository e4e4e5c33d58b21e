"""Measure how long the worst logs of 64 stopping pods stop the controller's event loop.

usage: python -m benchmarks.bench_logs [--pods 64] [--seconds 10]

A process serves the logs of all pods as fast as they are read: progress lines without end, lines
that only look like them, lines of the greatest length. The reader of the controller follows all
logs over HTTP, while a task of the same event loop wakes every 5 ms. Its longest delay is how long
anything else of the controller waits; the delay without logs is the baseline.
"""

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

import yaml
from aiohttp import web

from hyperjob_controller.training.reader import Reader
from hyperjob_core.api.lines import MAX_LINE
from hyperjob_core.kube.client import Kube
from hyperjob_core.tasks import cancel
from hyperjob_engine.model.planned import Plan
from tests.unit.engine.builders import binding, hyperjob, job, observed

WAKE_SECONDS = 0.005
_STAMP = b"2026-01-02T03:04:05.123456789Z "
WORST = {
    "progress": _STAMP + b'{"hyperjob": {"step": 7, "saved": 7, "metrics": {"loss": 1.5}}}\n',
    "lookalike": _STAMP + b'{"hyperjob": {"saved": \n',
    "short": _STAMP + b"\n",
    "long": _STAMP + b'{"hyperjob": {"step": 7}, "x": "' + b"x" * (MAX_LINE - 80) + b'"}\n',
}


def serve(kind: str, ready: Connection) -> None:
    """Serve logs without end on a free port, which `ready` gets."""
    chunk = WORST[kind] * (2**18 // len(WORST[kind]))

    async def log(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(chunk)
        return response

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", log)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(main())


class Results:
    """Counts batches with progress."""

    def __init__(self) -> None:
        self.batches = 0

    def read(self, _result: str) -> None:
        """Count one read."""
        self.batches += 1


async def delays(seconds: float) -> float:
    """Return the longest delay of a task that wakes every 5 ms, in seconds."""
    longest, end = 0.0, time.monotonic() + seconds
    while (begun := time.monotonic()) < end:
        await asyncio.sleep(WAKE_SECONDS)
        longest = max(longest, time.monotonic() - begun - WAKE_SECONDS)
    return longest


def raised(error: BaseException) -> None:
    """Raise an unexpected exception of the reader."""
    raise error


async def follow(port: int, pods: int, seconds: float, folder: Path) -> tuple[float, float, int]:
    """Follow the logs of stopping pods; return the longest delay, the part of a core, batches."""
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "u", "user": {}}],
            }
        )
    )
    names = [f"hj-trainer-{number}" for number in range(pods)]
    jobs = [job(name, phase="Running", gpus=1, deleting=True) for name in names]
    entries = [
        {"name": name, "replicatedJob": "trainer", "index": index}
        for index, name in enumerate(names)
    ]
    seen = observed(
        hyperjob(status={"jobs": entries}),
        *jobs,
        *(binding(name, cluster=f"c{number % 8}") for number, name in enumerate(names)),
    )
    wake: Callable[[str, float], None] = lambda _key, _seconds: None  # noqa: E731
    counts = Results()
    async with Kube.connect(kubeconfig=path) as kube:
        reader = Reader(
            kube,
            qps=40,
            interval=30,
            now=lambda: datetime.now(UTC),
            wake=wake,
            counts=counts,
            faulty=raised,
        )
        reader.planned(seen, Plan())
        reading = asyncio.create_task(reader.run())
        before = time.process_time()
        longest = await delays(seconds)
        cpu = (time.process_time() - before) / seconds
        await cancel([reading])
    return longest, cpu, counts.batches


def main() -> None:
    """Print the longest delay for each kind of log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    baseline = asyncio.run(delays(options.seconds))
    print(f"without logs: longest stop {baseline * 1000:.0f} ms")
    context = multiprocessing.get_context("spawn")
    for kind in WORST:
        ready, sent = context.Pipe(duplex=False)
        server = context.Process(target=serve, args=(kind, sent), daemon=True)
        server.start()
        try:
            port = ready.recv()
            with tempfile.TemporaryDirectory() as folder:
                longest, cpu, batches = asyncio.run(
                    follow(port, options.pods, options.seconds, Path(folder))
                )
        finally:
            server.terminate()
            server.join()
        print(
            f"{kind}: longest stop {longest * 1000:.0f} ms, {cpu * 100:.0f} % of a core,"
            f" {batches} batches with progress"
        )


if __name__ == "__main__":
    main()
