"""The followers of the logs of stopping sub-jobs: what their programs save at SIGTERM.

The deletion of the pods waits until their logs are open, since a log is gone with its pod.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from hyperjob_controller.apply.slots import FairSlots
from hyperjob_controller.training.schedule import Item
from hyperjob_controller.training.watch import LIMIT_BYTES, Watch
from hyperjob_controller.watchdog import InTurn
from hyperjob_core.api.lines import progress_lines
from hyperjob_core.kube.errors import BadRequest, KubeError
from hyperjob_core.kube.logs import Batch, Log
from hyperjob_core.kube.ratelimit import TokenBucket

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
