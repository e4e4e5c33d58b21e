"""The survey of a training that makes no steps: the last stacks in the logs of all its pods.

Each read is bounded in bytes and time. A pod whose log cannot be read is neither silent nor
elsewhere: the survey leaves it out.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Final

from hyperjob_controller.training.watch import LIMIT_BYTES, Source
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.logs import Log
from hyperjob_engine.model.stacks import Pod, Stack, Survey, is_stack, parse_stack, survey_of

PODS: Final = 256
_TAIL: Final = "200"
_AT_ONCE: Final = 8
_SECONDS: Final = 10.0
_CLOCKS: Final = timedelta(seconds=5)


async def survey(
    sources: Sequence[Source],
    *,
    silence: timedelta,
    log_of: Callable[[Pod, str], Log],
    turn: Callable[[], float],
) -> Survey:
    """Read the stacks that the pods have printed in the time of a silence.

    `log_of` returns the log of a pod's container, `turn` the seconds to wait before a read.
    """
    query = {
        "sinceSeconds": str(int((silence + _CLOCKS).total_seconds())),
        "tailLines": _TAIL,
        "limitBytes": str(LIMIT_BYTES),
    }
    stacks, read = list[Stack](), list[Pod]()
    places = asyncio.Semaphore(_AT_ONCE)

    async def look(pod: Pod, container: str) -> None:
        async with places:
            await asyncio.sleep(turn())
            found = await _stacks(log_of(pod, container), query, pod)
        if found is not None:
            stacks.extend(found)
            read.append(pod)

    async with asyncio.TaskGroup() as group:
        for pod, container in _pods(sources):
            group.create_task(look(pod, container))
    return survey_of(stacks, sorted(read, key=lambda pod: (pod.cluster, pod.name)))


def _pods(sources: Sequence[Source]) -> Iterator[tuple[Pod, str]]:
    """Yield the first pods of each sub-job, at most PODS of all."""
    each = max(1, PODS // max(1, len(sources)))
    for source in sources[:PODS]:
        for number in range(min(source.size, each)):
            yield source.pod(number)


async def _stacks(log: Log, query: dict[str, str], pod: Pod) -> list[Stack] | None:
    """Return the stacks in one log; None if it cannot be read."""
    found: list[Stack] = []
    try:
        async with (
            asyncio.timeout(_SECONDS),
            aclosing(log.read(query, most=LIMIT_BYTES, idle_limit=_SECONDS)) as batches,
        ):
            async for batch in batches:
                lines = [line.raw for line in batch if is_stack(line.raw)]
                found += filter(None, (parse_stack(line, pod=pod) for line in lines))
    except (KubeError, TimeoutError):
        return None
    return found
