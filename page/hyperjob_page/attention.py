"""The HyperJobs that need a person, by the rules of `hyperjob why`, and preflight's findings.

The module explains each HyperJob after a change, a few at a time: ten thousand HyperJobs do not
delay a request. It does not read members; the page of a HyperJob does.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hyperjob.client.why.evidence import Cause, Evidence, Outcome
from hyperjob.client.why.explain import explain
from hyperjob_core.api.phases import Phase
from hyperjob_core.kube.client import Kube
from hyperjob_install.preflight import Finding, Status, preflight
from hyperjob_page.rows import Row
from hyperjob_page.world import LiveState

_WORK_SECONDS: Final = 0.005
_PAUSE_SECONDS: Final = 0.02
_AGAIN_SECONDS: Final = 300.0
_PREFLIGHT_SECONDS: Final = 300.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """A HyperJob that needs a person, and the decisive cause."""

    key: str
    headline: str
    causes: Sequence[Cause]


class Attention:
    """Keeps the list; `run` belongs in the caller's TaskGroup."""

    def __init__(self, world: LiveState, kube: Kube, *, examine: bool = True) -> None:
        self.findings: Sequence[Finding] = ()
        self.examined: datetime | None = None
        self._world = world
        self._kube = kube
        self._examine = examine
        self._troubles: dict[str, AttentionItem] = {}
        self._due: dict[str, None] = {}  # HyperJobs to explain again; `_idle` is set while empty
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._looked = asyncio.Event()
        world.add_listener(self._changed)

    @property
    def troubles(self) -> Mapping[str, AttentionItem]:
        """Return the HyperJobs that need a person, by namespace/name."""
        return self._troubles

    async def run(self) -> None:
        """Explain changed HyperJobs, and all HyperJobs periodically, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._judging())
            group.create_task(self._again())
            if self._examine:
                group.create_task(self._examining())

    async def settled(self) -> None:
        """Wait until all known HyperJobs are explained, and preflight has run."""
        await self._idle.wait()
        await self._looked.wait()

    def _changed(self, old: Row | None, new: Row | None) -> None:
        row = new or old
        assert row is not None, "a change has an old or a new row"
        self._request(row.key)

    def _request(self, key: str) -> None:
        """Have a HyperJob explained again."""
        self._due[key] = None
        self._idle.clear()
        self._wake.set()

    async def _judging(self) -> None:
        """Explain requested HyperJobs in short slices of time, without an end."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                until = time.monotonic() + _WORK_SECONDS
                while self._due and time.monotonic() < until:
                    key = next(iter(self._due))
                    del self._due[key]
                    self._judge(key)
                await asyncio.sleep(_PAUSE_SECONDS)
            self._idle.set()

    async def _again(self) -> None:
        """Explain waiting HyperJobs again: clusters, queues and the time change their causes."""
        while True:
            await asyncio.sleep(_AGAIN_SECONDS)
            settled = (Phase.COMPLETED, Phase.FAILED, Phase.SUSPENDED)
            for key, row in self._world.rows.items():
                if row.summary.phase not in settled:
                    self._request(key)

    def _judge(self, key: str) -> None:
        """Explain a HyperJob, and count a change of its entry in the list."""
        row = self._world.rows.get(key)
        before = self._troubles.pop(key, None)
        now = None if row is None else self._trouble(row)
        if now is not None:
            self._troubles[key] = now
        if now != before:
            self._world.note("attention")

    def _trouble(self, row: Row) -> AttentionItem | None:
        """Return why a HyperJob needs a person; None if it does not."""
        world = self._world
        summary = row.summary
        if (
            summary.phase in (Phase.COMPLETED, Phase.STOPPING, Phase.SUSPENDED)
            and not summary.deleting
        ):
            return None  # a person has suspended it
        evidence = Evidence(
            now=datetime.now(UTC),
            summary=summary,
            lease=world.leases,
        )
        found = explain(evidence)
        if found.outcome is not Outcome.NEEDS_HELP:
            return None
        return AttentionItem(row.key, found.headline, found.causes)

    async def _examining(self) -> None:
        """Run preflight every few minutes."""
        while True:
            now = datetime.now(UTC)
            try:
                report = await preflight(self._kube, now=now)
            except Exception:  # the page stays useful without the findings of preflight
                log.exception("Preflight failed")
            else:
                self.findings = [
                    finding
                    for finding in report.findings
                    if finding.verdict.status in (Status.FAILED, Status.WARNING)
                ]
                self.examined = now
                self._world.note("attention")
            self._looked.set()
            await asyncio.sleep(_PREFLIGHT_SECONDS)
