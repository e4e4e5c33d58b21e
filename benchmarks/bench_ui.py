"""Measure the web page with 10,000 HyperJobs, 100 clusters and 50 viewers during changes.

The server is a separate process; 50 viewers each ask for a page every second, as a browser
does, and a reader opens pages one after another. The output is the time to the first and to the
last byte, the time from a change to its arrival at a viewer, and the memory of the server. All
traffic is on loopback.

    python benchmarks/bench_ui.py [HYPERJOBS] [CLUSTERS] [VIEWERS]
"""

import asyncio
import json
import resource
import statistics
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "sandbox")]

from hyperjob_core.kube.resources import HYPERJOBS  # noqa: E402 - found by the path above
from tests.support.apiserver import ApiServer  # noqa: E402
from tests.support.fleet import fill, hyperjob  # noqa: E402

PAGES = (
    "/",
    "/hyperjobs",
    "/hyperjobs?phase=Queued&sort=place",
    "/hyperjobs?q=model-17&sort=name",
    "/hyperjobs?cluster=cluster-007",
    "/hyperjobs?namespace=team-3&page=4",
    "/queues",
    "/hyperjobs/team-5/train-5",
)
CHANGES_PER_SECOND = 20
ROUNDS = 12
UPDATES = 15
TARGET = 42
AGAIN_SECONDS = 1.0


async def serve(hyperjobs: int, clusters: int) -> None:
    """Serve a fleet, and change HyperJobs on commands from standard input."""
    from tests.support.uiworld import open_ui

    server = ApiServer()
    fill(server, hyperjobs=hyperjobs, clusters=clusters)
    before = _memory()
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        started = time.perf_counter()
        ui = await open_ui(stack, server.kube)
        _say({"base": ui.base, "started": time.perf_counter() - started})
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            order = json.loads(line)
            if "memory" in order:
                _say({"before": before, "now": _memory()})
                continue
            server.put(HYPERJOBS, hyperjob(order["number"], clusters=clusters, **order["as"]))


async def main(hyperjobs: int, clusters: int, viewers: int) -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        "serve",
        str(hyperjobs),
        str(clusters),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    told = json.loads(await server.stdout.readline())
    base = told["base"]
    print(f"{hyperjobs} HyperJobs, {clusters} clusters, {viewers} viewers")
    print(f"  synced after {told['started']:.1f} s")
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        seen: dict[str, asyncio.Future[float]] = {}
        watching = [
            asyncio.create_task(_watch(session, base, PAGES[each % len(PAGES)], {}))
            for each in range(viewers - 1)
        ]
        target = f"/hyperjobs?q=train-{TARGET}&sort=name"
        watching.append(asyncio.create_task(_watch(session, base, target, seen)))
        changing = asyncio.create_task(_change(server.stdin, hyperjobs))
        await asyncio.sleep(5)
        first, whole = await _read(session, base)
        late = await _updates(server.stdin, seen)
        changing.cancel()
        server.stdin.write(b'{"memory": true}\n')
        memory = json.loads(await server.stdout.readline())
        for task in watching:
            task.cancel()
        await asyncio.gather(changing, *watching, return_exceptions=True)
    server.stdin.close()
    server.terminate()
    await server.wait()
    for path in PAGES:
        print(
            f"  {path:42} first byte p95 {_p95(first[path]) * 1000:6.0f} ms"
            f"   whole p95 {_p95(whole[path]) * 1000:6.0f} ms"
        )
    every = [each for times in first.values() for each in times]
    pages = [each for times in whole.values() for each in times]
    print(f"  all pages: first byte p50 {statistics.median(every) * 1000:.0f} ms,", end=" ")
    print(f"p95 {_p95(every) * 1000:.0f} ms; whole p95 {_p95(pages) * 1000:.0f} ms")
    print(f"  update at a viewer: p50 {statistics.median(late):.2f} s, most {max(late):.2f} s")
    print(
        f"  memory: {memory['now']} MiB, of which the API server's objects {memory['before']} MiB"
    )


async def _watch(
    session: aiohttp.ClientSession, base: str, path: str, seen: dict[str, asyncio.Future[float]]
) -> None:
    """Ask for a page again and again, and record the time at which an awaited text arrives."""
    known = ""
    while True:
        async with session.get(base + path, headers={"If-None-Match": known}) as answer:
            known, text = answer.headers["ETag"], await answer.text()
        for word, found in seen.items():
            if word in text and not found.done():
                found.set_result(time.perf_counter())
        await asyncio.sleep(AGAIN_SECONDS)


async def _change(pipe: asyncio.StreamWriter, hyperjobs: int) -> None:
    number = 0
    while True:
        number += 1
        order = {
            "number": (number * 37) % (hyperjobs // 2) * 2 + 1,
            "as": {"message": f"change {number}"},
        }
        pipe.write(json.dumps(order).encode() + b"\n")
        await asyncio.sleep(1 / CHANGES_PER_SECOND)


async def _read(
    session: aiohttp.ClientSession, base: str
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    first: dict[str, list[float]] = {path: [] for path in PAGES}
    whole: dict[str, list[float]] = {path: [] for path in PAGES}
    for _ in range(ROUNDS):
        for path in PAGES:
            started = time.perf_counter()
            async with session.get(base + path) as answer:
                await answer.content.readany()
                first[path].append(time.perf_counter() - started)
                await answer.read()
                whole[path].append(time.perf_counter() - started)
            assert answer.status == 200, (path, answer.status)
    return first, whole


async def _updates(
    pipe: asyncio.StreamWriter, seen: dict[str, asyncio.Future[float]]
) -> list[float]:
    late = []
    for number in range(UPDATES):
        word = f"news-{number}-of-it"
        seen[word] = asyncio.get_running_loop().create_future()
        started = time.perf_counter()
        pipe.write(json.dumps({"number": TARGET, "as": {"message": word}}).encode() + b"\n")
        late.append(await asyncio.wait_for(seen[word], 30) - started)
        del seen[word]
        await asyncio.sleep(0.37)
    return late


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _say(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(int(sys.argv[2]), int(sys.argv[3])))
    else:
        given = [int(each) for each in sys.argv[1:]]
        asyncio.run(main(*(given + [10_000, 100, 50][len(given) :])))
