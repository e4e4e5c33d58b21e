"""Records on each Queue object what its queue has consumed, for the next leader and for readers.

The record is one annotation, by a merge patch that names the UID: the controller owns no other
field of a Queue and creates none. A user who applies the Queue leaves the annotation as it is.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from hyperjob_controller.watchdog import Place
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import FIELD_MANAGER
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import QUEUES
from hyperjob_queueing.consumed import FAIR_SHARING, Consumed, consumed_text, parse_consumed
from hyperjob_queueing.usage import QueueUsage

log = logging.getLogger(__name__)

SAMPLING_SECONDS: Final = 300.0
"""Kueue's usageSamplingInterval: a Queue is written at most so often, and only if it changed."""


class ConsumptionRecorder:
    """Writes the records of a leader's queues."""

    place: Final = Place.RECORD

    def __init__(
        self,
        kube: Kube,
        queues: Callable[[], Iterable[Object]],
        usage: Callable[[], QueueUsage],
    ) -> None:
        """`queues` returns the Queue objects, `usage` the present usage with the consumption."""
        self._kube = kube
        self._queues = queues
        self._usage = usage

    async def run(self) -> None:
        """Write the records that have changed, every SAMPLING_SECONDS, until cancelled."""
        while True:
            await asyncio.sleep(SAMPLING_SECONDS)
            await self.record()

    async def record(self) -> None:
        """Write the records that have changed; a queue alone needs none."""
        for queue in list(self._queues()) if self._usage().remembers else ():
            name, usage = queue["metadata"]["name"], self._usage()
            known = usage.consumption.record(name)
            if known is None or not usage.is_news(name, known, parse_consumed(queue)):
                continue
            try:
                await self._kube.patch(
                    QUEUES,
                    name,
                    _patch(queue, known),
                    kind=PatchType.MERGE,
                    field_manager=FIELD_MANAGER,
                )
            except KubeError as error:
                log.warning(
                    "Cannot record what a queue has consumed: the next leader would not know it",
                    extra={"queue": name, "error": str(error)},
                )


def _patch(queue: Object, consumed: Consumed) -> Object:
    annotations = {FAIR_SHARING: consumed_text(consumed)}
    return {"metadata": {"uid": queue["metadata"]["uid"], "annotations": annotations}}
