"""The survey of a training: the last stacks, and the waiting, in the logs of all its pods.

Each read is bounded in bytes and time. A pod whose log cannot be read is neither silent nor
elsewhere: the survey leaves it out.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Final

from hyperjob_controller.training.watch import LIMIT_BYTES, Source
from hyperjob_core.api.lines import LogLine, waits_of
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.logs import Log
from hyperjob_core.tasks import at_once
from hyperjob_engine.model.training import WaitShare
from hyperjob_engine.reasons.stacks import Pod, Stack, Survey, is_stack, parse_stack, survey_of

PODS: Final = 256
_TAIL: Final = "200"
_AT_ONCE: Final = 8
_SECONDS: Final = 10.0
_CLOCKS: Final = timedelta(seconds=5)
_LINES: Final = 9
_RECENT: Final = 5
"""The last lines that show how long a process waits, usually and after its pace has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the pods of a HyperJob print: their stacks, and how long they wait for others."""

    survey: Survey
    waits: tuple[WaitShare, ...]


async def survey(
    sources: Sequence[Source],
    *,
    past: timedelta,
    log_of: Callable[[Pod, str], Log],
    turn: Callable[[], float],
    changed: bool = False,
) -> Found:
    """Read what the pods have printed in the past, such as the time of a silence.

    `log_of` returns the log of a pod's container, `turn` the seconds to wait before a read.
    `changed`: the pace of the training has changed within the usual number of lines.
    """
    last = _RECENT if changed else _LINES
    query = {
        "sinceSeconds": str(int((past + _CLOCKS).total_seconds())),
        "tailLines": _TAIL,
        "limitBytes": str(LIMIT_BYTES),
    }
    stacks, waits, read = list[Stack](), list[WaitShare](), list[Pod]()

    async def look(source: tuple[Pod, str]) -> None:
        pod, container = source
        await asyncio.sleep(turn())
        lines = await _lines(log_of(pod, container), query)
        if lines is None:
            return
        read.append(pod)
        raw = (line.raw for line in lines if is_stack(line.raw))
        stacks.extend(filter(None, (parse_stack(each, pod=pod) for each in raw)))
        for rank, parts in waits_of(lines).items():
            # In the first lines the processes wait for the last one. One with a rank in its lines
            # prints them while it is slow alone.
            if len(parts) > (last // 2 if rank is None else 1):
                waits.append(WaitShare(pod, median(parts[-last:]), rank))

    await at_once(look, _pods(sources), most=_AT_ONCE)
    pods = sorted(read, key=lambda pod: (pod.cluster, pod.name))
    return Found(survey=survey_of(stacks, pods), waits=tuple(waits))


def _pods(sources: Sequence[Source]) -> Iterator[tuple[Pod, str]]:
    """Yield the first pods of each sub-job, at most PODS of all."""
    each = max(1, PODS // max(1, len(sources)))
    for source in sources[:PODS]:
        for number in range(min(source.size, each)):
            yield source.pod(number)


async def _lines(log: Log, query: dict[str, str]) -> list[LogLine] | None:
    """Return the lines of one log; None if it cannot be read."""
    found: list[LogLine] = []
    try:
        async with (
            asyncio.timeout(_SECONDS),
            aclosing(log.read(query, most=LIMIT_BYTES, idle_limit=_SECONDS)) as batches,
        ):
            async for batch in batches:
                found += batch
    except (KubeError, TimeoutError):
        return None
    return found
