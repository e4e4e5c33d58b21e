"""The logs of whole sub-jobs: the survey of a training, and what stopping programs save at SIGTERM.

The survey reads the last stacks, and the waiting, in the logs of all pods. Each read is bounded in
bytes and time. A pod whose log cannot be read is neither silent nor elsewhere: the survey leaves it
out. The logs of stopping sub-jobs are followed: the deletion of the pods waits until they are open,
since a log is gone with its pod.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from statistics import median
from typing import Final

from hyperjob_controller.apply.slots import FairSlots
from hyperjob_controller.training.schedule import Item
from hyperjob_controller.training.watch import LIMIT_BYTES, Source, Watch
from hyperjob_controller.watchdog import InTurn
from hyperjob_core.api.lines import LogLine, progress_lines, waits_of
from hyperjob_core.kube.errors import BadRequest, KubeError
from hyperjob_core.kube.logs import Batch, Log
from hyperjob_core.kube.ratelimit import TokenBucket
from hyperjob_core.tasks import at_once
from hyperjob_engine.model.training import WaitShare
from hyperjob_engine.reasons.stacks import Pod, Stack, Survey, is_stack, parse_stack, survey_of

log = logging.getLogger(__name__)

PART_OF_CLUSTER: Final = 4
"""A cluster has at most such a part of the places for reads."""
_FOLLOWED: Final = 128
_LOOKS: Final = 16
_LOOK_SECONDS: Final = 5.0
_LAST_LINES: Final = 10_000
"""Lines of the past that are read of a log that was not read before."""
_STARTING_SECONDS: Final = (0.5, 0.5, 1.0, 2.0, 4.0)
"""The pauses between the tries to follow a container that has not started."""
_SAVED_SECONDS: Final = 0.5
"""A step that a stopping pod has saved is in the status within this time."""
_FOLLOW_SECONDS: Final = 900.0
_FOLLOW_BYTES: Final = 64 * LIMIT_BYTES


class Follower:
    """Follows the pods of stopping sub-jobs, some of each cluster at once."""

    def __init__(
        self,
        log_of: Callable[..., Log],
        heard: Callable[[str], None],
        *,
        bucket: TokenBucket,
        now: Callable[[], datetime],
        wake: Callable[[str, float], None],
        faulty: Callable[[BaseException], None],
        in_turn: InTurn = nullcontext,
    ) -> None:
        """`log_of(source, pod, container, position, opened=...)` is the log of a container.

        `heard` gets the key of a HyperJob after progress lines; the others are the reader's.
        """
        self._log_of = log_of
        self._heard = heard
        self._bucket = bucket
        self._now = now
        self._wake = wake
        self._faulty = faulty
        self._in_turn = in_turn
        self._reporting = FairSlots(_FOLLOWED, of_cluster=_FOLLOWED // PART_OF_CLUSTER)
        self._others = FairSlots(_FOLLOWED, of_cluster=_FOLLOWED // PART_OF_CLUSTER)
        self._looks = FairSlots(_LOOKS, of_cluster=_LOOKS // PART_OF_CLUSTER)

    async def follow(self, item: Item, found: Watch) -> None:
        """Read logs until they end: a program that gets SIGTERM reports what it has saved."""
        first, others = found.peers()
        closed = {*first, *others}

        def opened(number: int) -> None:
            closed.discard(number)
            if not closed and not found.followed:
                found.followed = True
                self._wake(item[0], 0.0)  # the deletion waits for it

        await asyncio.gather(
            *(self._follow_pod(item, found, number, opened) for number in first),
            *(self._look_for(item, found, number, opened) for number in others),
        )

    async def _look_for(
        self, item: Item, found: Watch, number: int, opened: Callable[[int], None]
    ) -> None:
        """Follow a pod of a stopping sub-job if it reports and no other one does."""
        source, reports = found.source, False
        lines = self._log_of(source, *source.pod(number)).read(found.query(), most=LIMIT_BYTES)
        with contextlib.suppress(KubeError, TimeoutError):
            async with self._looks.of(source.namespace, source.cluster):
                await asyncio.sleep(self._bucket.reserve())
                async with asyncio.timeout(_LOOK_SECONDS), aclosing(lines) as batches:
                    async for batch in batches:
                        reports = reports or bool(progress_lines(batch))
        if reports and not found.found:
            await self._follow_pod(item, found, number, opened)
        opened(number)

    async def _follow_pod(
        self, item: Item, found: Watch, number: int, opened: Callable[[int], None]
    ) -> None:
        """Read the log of a pod until it ends; a log that cannot be read ends at once.

        A container that has not started may start before the deletion reaches its member.
        """
        source, pod = found.source, found.source.pod(number)
        own = found.found and number == found.number
        slots = self._reporting if own else self._others
        query = {} if own and found.position.newest else {"tailLines": str(_LAST_LINES)}
        position = replace(found.position) if own else None
        try:
            async with slots.of(source.namespace, source.cluster), asyncio.timeout(_FOLLOW_SECONDS):
                for pause in (*_STARTING_SECONDS, 0.0):
                    await asyncio.sleep(self._bucket.reserve())
                    read = self._log_of(source, *pod, position, opened=partial(opened, number))
                    try:
                        await self._hear_all(
                            item, found, number, read.follow(query, most=_FOLLOW_BYTES)
                        )
                    except BadRequest:
                        opened(number)
                        await asyncio.sleep(pause)
                    else:
                        break
        except (KubeError, TimeoutError) as error:
            log.debug("A log ended", extra={"job": item[1], "error": str(error)})
        except Exception as error:  # noqa: BLE001 - the wall
            self._faulty(error)
        finally:
            opened(number)

    async def _hear_all(
        self, item: Item, found: Watch, number: int, lines: AsyncGenerator[Batch, None]
    ) -> None:
        """Take in the lines of a pod of a stopping sub-job as they arrive."""
        async with aclosing(lines) as batches:
            async for batch in batches:
                before = found.training.saved_step
                with self._in_turn(f"a log of sub-job {item[1]} of {item[0]}"):
                    progressed = found.hear(number, batch, now=self._now())
                if progressed:
                    self._heard(item[0])
                if found.training.saved_step != before:
                    self._wake(item[0], _SAVED_SECONDS)  # another controller may not see the line


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
