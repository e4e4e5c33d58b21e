"""Reads the failed pods of failed sub-jobs through Karmada's cluster proxy.

Bounded in everything: calls at a time, pods of one answer, and time. An answer that does not come
within the limit counts as unknown, so that a restart never waits for a cluster out of reach.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import orjson

from controller.causes.pods import first_failure
from controller.model.planned import FailedJob
from controller.model.runs import ContainerFailure
from controller.model.wire import objects
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import Forbidden, KubeError
from hyperjob.kube.resources import CLUSTERS, PODS, split_key

log = logging.getLogger(__name__)

_CALLS: Final = 8
_PODS: Final = "50"
_JOB: Final = "volcano.sh/job-name"
_FORBIDDEN: Final = timedelta(minutes=10)
"""How long a cluster is not asked again that refuses the controller its pods."""


@dataclass(slots=True)
class _Entry:
    """One failed vcjob: when its answer is no longer waited for, and what was found."""

    job: FailedJob
    until: datetime
    answered: bool = False
    failure: ContainerFailure | None = None


class CauseReader:
    """Finds out which container of a failed sub-job failed first."""

    def __init__(
        self,
        kube: Kube,
        *,
        answered: Callable[[str], None],
        now: Callable[[], datetime],
        time_limit: timedelta,
    ) -> None:
        """Call `answered` with a HyperJob's key for each answer."""
        self._kube = kube
        self._answered = answered
        self._now = now
        self._limit = time_limit
        self._entries: dict[str, dict[str, _Entry]] = {}
        self._waiting: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._refusing: dict[str, datetime] = {}

    def causes(self, key: str) -> Mapping[str, ContainerFailure | None]:
        """Give what is known of a HyperJob's failed vcjobs, by UID; None is unknown for good."""
        now = self._now()
        return {
            uid: entry.failure
            for uid, entry in self._entries.get(key, {}).items()
            if entry.answered or entry.until <= now
        }

    def ask(self, key: str, jobs: Sequence[FailedJob]) -> None:
        """Ask about vcjobs; each is asked about once, and those not named are forgotten."""
        known = self._entries.get(key, {})
        self._entries[key] = {
            job.uid: known.get(job.uid) or _Entry(job, self._now() + self._limit) for job in jobs
        }
        for uid in self._entries[key].keys() - known.keys():
            self._waiting.put_nowait((key, uid))

    def forget(self, key: str) -> None:
        """Forget a HyperJob that is gone."""
        self._entries.pop(key, None)

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_CALLS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key, uid = await self._waiting.get()
            entry = self._entries.get(key, {}).get(uid)
            if entry is None:
                continue
            left = (entry.until - self._now()).total_seconds()
            if left > 0 and not self._refuses(entry.job.cluster):
                try:
                    async with asyncio.timeout(left):
                        entry.failure = await self._read(split_key(key)[0], entry.job)
                except (KubeError, TimeoutError, ValueError) as error:
                    self._note(key, entry.job, error)
            entry.answered = True
            self._answered(key)

    async def _read(self, namespace: str | None, job: FailedJob) -> ContainerFailure | None:
        answer = await self._kube.raw(
            "GET",
            CLUSTERS.path(None, job.cluster, "proxy") + PODS.path(namespace),
            params={
                "labelSelector": f"{_JOB}={job.name}",
                "fieldSelector": "status.phase=Failed",
                "limit": _PODS,
            },
        )
        content = orjson.loads(answer.body)
        pods = objects(content.get("items")) if isinstance(content, dict) else []
        return first_failure(pods)

    def _refuses(self, cluster: str) -> bool:
        until = self._refusing.get(cluster)
        return until is not None and self._now() < until

    def _note(self, key: str, job: FailedJob, error: Exception) -> None:
        if isinstance(error, Forbidden):
            self._refusing[job.cluster] = self._now() + _FORBIDDEN
        namespace, name = split_key(key)
        log.warning(
            "The pods of a failed sub-job could not be read",
            extra={
                "hyperjob": {"namespace": namespace, "name": name},
                "job": {"namespace": namespace, "name": job.name},
                "cluster": job.cluster,
                "error": str(error) or type(error).__name__,
            },
        )
