"""The causes of failed sub-jobs: the first container that failed.

The watch of a member has mostly shown it already. Of other members, and with `--members off`, the
failed pods are listed once through Karmada's cluster proxy. The number of concurrent calls, the
pods of one answer and the time are bounded. Without an answer within the time limit the cause is
unknown: a restart never waits for an unreachable cluster.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from hyperjob_controller.watchdog import Place
from hyperjob_core.api.launchers import diagnosed, is_of_launcher
from hyperjob_core.api.status import ContainerFailure
from hyperjob_core.api.wire import at, objects
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Forbidden, KubeError
from hyperjob_core.kube.logs import Log
from hyperjob_core.kube.resources import CLUSTERS, PODS, split_key
from hyperjob_engine.members.podfailures import first_failure, order
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import FailedJob, Plan
from hyperjob_engine.reasons.pods import is_same

log = logging.getLogger(__name__)
T = TypeVar("T")

_CALLS: Final = 8
_LOG_BYTES: Final = 256 * 1024
_PODS: Final = "50"
_JOB: Final = "volcano.sh/job-name"
_TAIL: Final = "2000"
_STAMP: Final = 64
"""More than the bytes of the time before a line."""
_MOST: Final = 4 * 1024 * 1024
"""The bytes of a log that are read to find its end."""
_FORBIDDEN: Final = timedelta(minutes=10)
"""How long the controller does not ask a cluster again after a 403 response."""


@dataclass(slots=True)
class _Entry:
    """One failed vcjob: the deadline of its answer, and the failure that was found."""

    job: FailedJob
    asked: datetime
    until: datetime
    answered: bool = False
    failure: ContainerFailure | None = None


class CauseReader:
    """Reads which container of a failed sub-job failed first."""

    place: Final = Place.CAUSES

    def __init__(
        self,
        kube: Kube,
        *,
        answered: Callable[[str], None],
        now: Callable[[], datetime],
        time_limit: timedelta,
        faulty: Callable[[BaseException], None],
        watched: Callable[[str, str], ContainerFailure | None] = lambda _cluster, _job: None,
        read_logs: bool = False,
    ) -> None:
        """Call `answered` with a HyperJob's key for each answer.

        `watched` returns the first failure of a vcjob that the watch of its cluster has shown. With
        `read_logs` the cause is looked for in the log, where a launcher such as torchrun failed.
        `faulty` gets an unexpected exception; the cause of that failure stays unknown.
        """
        self._kube = kube
        self._answered = answered
        self._now = now
        self._limit = time_limit
        self._faulty = faulty
        self._watched = watched
        self._read_logs = read_logs
        self._entries: dict[str, dict[str, _Entry]] = {}
        self._waiting: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._refusing: dict[str, datetime] = {}

    def causes(self, key: str) -> Mapping[str, ContainerFailure | None]:
        """Return the causes of a HyperJob's failed vcjobs by UID; None: unknown for good."""
        now, namespace = self._now(), split_key(key)[0]
        found: dict[str, ContainerFailure | None] = {}
        for uid, entry in self._entries.get(key, {}).items():
            if entry.answered or entry.until <= now:
                found[uid] = self._first(namespace, entry)
                if self._read_logs and found[uid] != entry.failure and entry.until > now:
                    entry.failure, entry.answered = found.pop(uid), False
                    self._waiting.put_nowait((key, uid))  # its log is read before the answer
        return found

    def _first(self, namespace: str | None, entry: _Entry) -> ContainerFailure | None:
        """Return the failure that was read, or an earlier failure from the watch of the member."""
        shown = self._watched(entry.job.cluster, f"{namespace}/{entry.job.name}")
        if shown is None or is_same(shown, entry.failure):
            return entry.failure
        return shown if entry.failure is None else min(entry.failure, shown, key=order)

    def asked(self, key: str) -> Mapping[str, datetime]:
        """Return when the cause of each failed vcjob of a HyperJob was asked for, by UID."""
        return {uid: entry.asked for uid, entry in self._entries.get(key, {}).items()}

    def ask(self, key: str, jobs: Sequence[FailedJob]) -> None:
        """Read the pods of these vcjobs, each once; drop the HyperJob's other vcjobs."""
        known = self._entries.get(key, {})
        self._entries[key] = {
            job.uid: known.get(job.uid) or _Entry(job, self._now(), self._now() + self._limit)
            for job in jobs
        }
        for uid in self._entries[key].keys() - known.keys():
            self._waiting.put_nowait((key, uid))

    def planned(self, observed: Observed, decided: Plan) -> None:
        """Read the causes of the failures that a plan lists; without any, keep what was read."""
        if decided.failed:
            self.ask(observed.hyperjob.key, decided.failed)

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        self._entries.pop(key, None)

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_CALLS):
                group.create_task(self._work())

    async def _work(self) -> None:
        """Read the causes of failed vcjobs one by one, until cancelled.

        Every entry is answered, at the latest at its time limit, also without a cause.
        """
        while True:
            key, uid = await self._waiting.get()
            entry = self._entries.get(key, {}).get(uid)
            if entry is None:
                continue
            namespace, job = split_key(key)[0], entry.job
            entry.failure = entry.failure or self._watched(job.cluster, f"{namespace}/{job.name}")
            if entry.failure is None and not self._refuses(job.cluster):
                what = "The pods of a failed sub-job could not be read"
                entry.failure = await self._in_time(key, entry, self._read(namespace, job), what)
            failure = entry.failure
            if self._read_logs and failure is not None and is_of_launcher(failure):
                what = "The log of a failed container could not be read"
                read = self._log_end(namespace, job.cluster, failure)
                end = await self._in_time(key, entry, read, what)
                entry.failure = failure if end is None else diagnosed(failure, end)
            entry.answered = True
            self._answered(key)

    async def _in_time(
        self, key: str, entry: _Entry, answer: Coroutine[Any, Any, T | None], what: str
    ) -> T | None:
        """Return an answer within the time limit of an entry; else log `what`, and return None."""
        (namespace, name), left = split_key(key), (entry.until - self._now()).total_seconds()
        if left <= 0:
            answer.close()
            return None
        try:
            async with asyncio.timeout(left):
                return await answer
        except (KubeError, TimeoutError, ValueError) as error:
            about = {
                "hyperjob": {"namespace": namespace, "name": name},
                "job": {"namespace": namespace, "name": entry.job.name},
                "cluster": entry.job.cluster,
                "error": str(error) or type(error).__name__,
            }
            log.warning(what, extra=about)
        except Exception as error:  # noqa: BLE001 - the wall
            self._faulty(error)
        return None

    async def _read(self, namespace: str | None, job: FailedJob) -> ContainerFailure | None:
        params = {
            "labelSelector": f"{_JOB}={job.name}",
            "fieldSelector": "status.phase=Failed",
            "limit": _PODS,
        }
        path = CLUSTERS.path(None, job.cluster, "proxy") + PODS.path(namespace)
        try:
            answer = await self._kube.raw("GET", path, params=params)
        except Forbidden:
            self._refusing[job.cluster] = self._now() + _FORBIDDEN
            raise
        return first_failure(objects(at(answer.json(), "items")))

    async def _log_end(self, namespace: str | None, cluster: str, failure: ContainerFailure) -> str:
        """Return the last 256 KiB of the log of a failed container; raises KubeError."""
        path = CLUSTERS.path(None, cluster, "proxy") + PODS.path(namespace, failure.pod, "log")
        log = Log(self._kube, path, container=failure.container, longest=_LOG_BYTES + _STAMP)
        end = b""
        async with aclosing(log.read({"tailLines": _TAIL}, most=_MOST)) as batches:
            async for batch in batches:
                lines = b"".join(line.text + b"\n" for line in batch)
                end = (end + lines)[-_LOG_BYTES:]
        return end.decode(errors="replace")

    def _refuses(self, cluster: str) -> bool:
        until = self._refusing.get(cluster)
        return until is not None and self._now() < until
