"""Stream logs through the cluster proxy and print their lines, each queue of lines bounded."""

import asyncio
import json as json_text
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from rich.console import Console
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access
from hyperjob.cli.kubectl.exits import Code, FailureError, words
from hyperjob.cli.verbs.logs.choosing import Source, Wanted, placed_jobs, sources
from hyperjob.cli.verbs.members import log_path, pods_of_all
from hyperjob.cli.views.summary import read
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError
from hyperjob.kube.resources import HYPERJOBS

_TAIL = 10
_AHEAD = 8
_LINES_HELD = 500
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")

Line = tuple[Source, bytes]


async def print_logs(
    access: Access,
    name: str,
    wanted: Wanted,
    *,
    query: Mapping[str, str],
    tail: int | None,
    prefix: bool,
    limit: int,
    json: bool,
) -> None:
    """Find the pods, read their logs and print them; ends the command with 1 if some failed."""
    async with access.connect() as kube:
        namespace = access.home(kube)
        summary = read(await kube.get(HYPERJOBS, name, namespace=namespace))
        jobs = placed_jobs(summary, wanted)
        pods, errors = await pods_of_all(kube, namespace, jobs)
        for job, error in errors.items():
            out.remark(f"{job}: {words(error)}")
        chosen, left_out = sources(jobs, pods, wanted)
        for text in left_out:
            out.remark(text)
        if not chosen:
            why = f"kubectl hyperjob why {name} -n {namespace}"
            code = Code.FAILED if errors else Code.NOT_YET
            raise FailureError(f"no pod of {name} has a log yet: {why}", code=code)
        follow = "follow" in query
        if follow and len(chosen) > limit:
            raise FailureError(
                f"{len(chosen)} logs to follow, --max-log-requests allows {limit}: choose with"
                " --job, --cluster or --task, or allow more"
            )
        lines = -1 if len(chosen) == 1 else _TAIL
        wanted_lines = lines if tail is None else tail
        params = {**query, **({} if wanted_lines < 0 else {"tailLines": str(wanted_lines)})}
        printer = _Printer(chosen, prefix=prefix, json=json)
        reader = _Reader(kube, namespace, params)
        stream = reader.together(chosen) if follow else reader.in_order(chosen)
        async with aclosing(stream) as found:
            async for source, line in found:
                printer.print(source, line)
    if errors or reader.failed:
        raise SystemExit(Code.FAILED)


class _Reader:
    """Reads logs of several containers; what cannot be read is said and counted."""

    def __init__(self, kube: Kube, namespace: str, params: Mapping[str, str]) -> None:
        self._kube = kube
        self._namespace = namespace
        self._params = params
        self.failed = 0

    async def in_order(self, chosen: Sequence[Source]) -> AsyncGenerator[Line, None]:
        """Give one log after the other, the next few read ahead."""
        queues: list[asyncio.Queue[bytes | None]] = []
        tasks: list[asyncio.Task[None]] = []

        def start(source: Source) -> None:
            queue: asyncio.Queue[bytes | None] = asyncio.Queue(_LINES_HELD)
            queues.append(queue)
            tasks.append(asyncio.create_task(self._fill(source, queue)))

        try:
            for position, source in enumerate(chosen):
                for later in chosen[len(queues) : position + _AHEAD]:
                    start(later)
                while (line := await queues[position].get()) is not None:
                    yield source, line
                await tasks[position]
        finally:
            await _end(tasks)

    async def together(self, chosen: Sequence[Source]) -> AsyncGenerator[Line, None]:
        """Give the lines of all logs as they come, until every log ends."""
        lines: asyncio.Queue[Line | None] = asyncio.Queue(_LINES_HELD)

        async def one(source: Source) -> None:
            queue: asyncio.Queue[bytes | None] = asyncio.Queue(1)
            filling = asyncio.create_task(self._fill(source, queue))
            try:
                while (line := await queue.get()) is not None:
                    await lines.put((source, line))
                await filling
            finally:
                await _end([filling])

        async def everyone() -> None:
            await asyncio.gather(*(one(source) for source in chosen))
            await lines.put(None)

        task = asyncio.create_task(everyone())
        try:
            while (found := await lines.get()) is not None:
                yield found
            await task
        finally:
            await _end([task])

    async def _fill(self, source: Source, queue: "asyncio.Queue[bytes | None]") -> None:
        path = log_path(source.cluster, self._namespace, source.pod)
        params = {**self._params, "container": source.container}
        try:
            async with aclosing(self._kube.lines(path, params=params)) as lines:
                async for line in lines:
                    await queue.put(line)
        except KubeError as error:
            self.failed += 1
            out.remark(f"{source.label}: {words(error)}")
        await queue.put(None)


async def _end(tasks: Sequence["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Printer:
    """Prints lines behind the name of where they come from, each cluster in its colour."""

    def __init__(self, chosen: Sequence[Source], *, prefix: bool, json: bool) -> None:
        clusters = sorted({source.cluster for source in chosen})
        self._styles = {
            name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(clusters)
        }
        self._prefix = prefix
        self._json = json
        self._console: Console = out.console()

    def print(self, source: Source, line: bytes) -> None:
        """Print one line as it is; what is no UTF-8 is shown as such."""
        text = line.decode(errors="replace").rstrip("\r")
        if self._json:
            entry = {
                "cluster": source.cluster,
                "pod": source.pod,
                "container": source.container,
                "line": text,
            }
            self._console.out(json_text.dumps(entry, ensure_ascii=False), highlight=False)
            return
        if not self._console.is_terminal:
            self._console.out(f"[{source.label}] {text}" if self._prefix else text, highlight=False)
            return
        head = Text(f"[{source.label}] " if self._prefix else "")
        head.stylize(self._styles[source.cluster])
        # a log may bring colours of its own
        self._console.print(head.append_text(Text.from_ansi(text)), soft_wrap=True)
