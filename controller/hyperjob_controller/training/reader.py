"""The task that reads the logs of trainings through Karmada's cluster proxy.

Each read is a GET of the log of one pod; the rate of all reads together is bounded. Without a
running HyperJob there are no reads. The other modules of this package do no I/O.

No log stops the event loop: in one turn of it one log parses one batch of at most 64 KiB, and no
read waits for a member that does not answer.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from prometheus_client import Counter

from hyperjob_controller.apply.slots import FairSlots
from hyperjob_controller.training.joblogs import PART_OF_CLUSTER, Follower, Found, survey
from hyperjob_controller.training.schedule import Item, Schedule
from hyperjob_controller.training.watch import LIMIT_BYTES, Doing, Source, Watch, sources_of, watch
from hyperjob_controller.watchdog import InTurn, Place
from hyperjob_core.api.lines import MAX_LINE, LogLine, Position
from hyperjob_core.api.training import SubJobTraining
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Forbidden, KubeError, NotFound
from hyperjob_core.kube.logs import Log
from hyperjob_core.kube.ratelimit import TokenBucket
from hyperjob_core.kube.resources import CLUSTERS, PODS
from hyperjob_core.registry import REGISTRY
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.parse import with_fields
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.model.training import LEAST, Hang, Stall, WaitShare, straggler, used_to_it
from hyperjob_engine.reasons.stacks import Pod

log = logging.getLogger(__name__)

_IN_FLIGHT: Final = 32
_BATCHES: Final = 64.0
"""Batches of at most 64 KiB that are parsed in a second."""
_SECONDS: Final = 15.0
_FIRST_SECONDS: Final = 1.0
_TROUBLE_SECONDS: Final = (5.0, 300.0)
_SURVEYS: Final = 3
"""The surveys of one stall: a process may print its stack later than the first one."""
_WAITS_PAUSES: Final = (5.0, 300.0)
_WAITS_PAST: Final = timedelta(minutes=1)
_WAITS_LINES: Final = 10

_READS: Final = Counter(
    "hyperjob_progress_reads_total",
    "Reads of logs for progress lines: the log has some (progress) or none (silent), the pod does"
    " not exist or has not started (missing), the controller lacks the right (refused), the cluster"
    " does not answer (unreachable)",
    ("result",),
    registry=REGISTRY,
)


class Trouble(NamedTuple):
    """A cluster whose logs could not be read: until when no read begins, and for how long."""

    until: float = 0.0
    pause: float = 0.0


class _Waits(NamedTuple):
    """The waits of a HyperJob: when they may be read again, the pause after that, the last read."""

    due: float = 0.0
    pause: float = _WAITS_PAUSES[0]
    shares: tuple[WaitShare, ...] = ()


class Reader:
    """The progress of the trainings of all HyperJobs, and the task that reads their logs."""

    place: Final = Place.PROGRESS

    def __init__(
        self,
        kube: Kube,
        *,
        qps: float,
        interval: float,
        now: Callable[[], datetime],
        wake: Callable[[str, float], None],
        faulty: Callable[[BaseException], None],
        in_turn: InTurn = nullcontext,
    ) -> None:
        """`wake` requests a pass of a HyperJob after so many seconds; `interval` is in seconds.

        `faulty` gets an unexpected exception; the reader goes on with the next log. `in_turn` times
        what the reader does with the lines of a log.
        """
        self._kube = kube
        self._interval = interval
        self._now = now
        self._wake = wake
        self._faulty = faulty
        self._in_turn = in_turn
        self._bucket = TokenBucket(qps=qps, burst=max(1, int(qps)))
        # By the key of a HyperJob and the name of a sub-job. A watch that is neither read nor
        # followed nor at its end is in the schedule.
        self._watches: dict[str, dict[str, Watch]] = {}
        self._schedule = Schedule()
        self._woken: dict[str, float] = {}  # when the last requested pass of a HyperJob is due
        self._troubles: dict[str, Trouble] = {}  # by cluster
        self._news = asyncio.Event()
        self._places = FairSlots(_IN_FLIGHT, of_cluster=_IN_FLIGHT // PART_OF_CLUSTER)
        self._follower = Follower(
            self._log_of, self._heard, bucket=self._bucket, now=now, wake=wake, faulty=faulty,
            in_turn=in_turn,
        )  # fmt: skip
        self._parsing = FairSlots(1)
        self._batches = TokenBucket(qps=_BATCHES, burst=int(_BATCHES))
        self._hangs: dict[str, Hang] = {}
        self._surveys: dict[str, int] = {}  # how many a stalled HyperJob has had
        self._waits: dict[str, _Waits] = {}  # by the key of a HyperJob, while a process waits

    def trainings(self, key: str) -> Mapping[str, SubJobTraining]:
        """Return the progress of a HyperJob's sub-jobs, by name."""
        return {name: each.training for name, each in self._watches.get(key, {}).items()}

    def hang(self, key: str) -> Hang | None:
        """Return the programs of a HyperJob that make no steps; None before the first survey."""
        found = self._hangs.get(key)
        stalls = ((name, each.stall) for name, each in self._watches.get(key, {}).items())
        present = {name: stall for name, stall in stalls if stall is not None}
        return None if found is None or not present else replace(found, stalls=present)

    def waits(self, key: str) -> tuple[WaitShare, ...]:
        """Return how long all processes of a HyperJob wait for others, while one of them waits.

        All are read at once: the lines of two logs that were read at different times do not show
        which process waits for which.
        """
        return self._waits.get(key, _Waits()).shares

    def planned(self, observed: Observed, decided: Plan) -> None:
        """Update which sub-jobs of a HyperJob have logs to read.

        A stop that is decided now is written afterwards, and a later pass deletes the sub-jobs.
        """
        key = observed.hyperjob.key
        if observed.hyperjob.deleting:
            self.forget(key)
            return
        watches = self._watches.get(key, {})
        status = observed.hyperjob.status
        if decided.status is not None and decided.status.get("stop") != status.get("stop"):
            status = status | {"stop": decided.status.get("stop")}
            observed = replace(observed, hyperjob=with_fields(observed.hyperjob, status))
        found = sources_of(observed)
        sources = {
            each.name: each for each in found if not each.deleted or each.name not in watches
        }
        stopping = observed.hyperjob.stop.jobs if observed.hyperjob.stop is not None else ()
        for name in [name for name in watches if name not in sources and name not in stopping]:
            # A planned stop waits for the end of all its logs, also of logs that ended before it.
            if not watches[name].following:
                self._drop((key, name))
        for name, source in sources.items():
            self._source((key, name), watches.get(name), source)

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        for name in list(self._watches.get(key, {})):
            self._drop((key, name))
        self._woken.pop(key, None)
        self._hangs.pop(key, None)
        self._surveys.pop(key, None)
        self._waits.pop(key, None)

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._news.clear()
                item = self._schedule.take(_clock())
                if item is None:
                    await self._wait()
                    continue
                found = self._watches.get(item[0], {}).get(item[1])
                if found is None or found.doing in (Doing.READING, Doing.FOLLOWING):
                    continue  # the end of the read plans the next one
                if found.source.leaving:
                    found.doing = Doing.FOLLOWING
                    group.create_task(self._follow(item, found))
                elif found.doing is Doing.NOTHING and not self._put_off(item, found):
                    found.doing = Doing.WAITING
                    await asyncio.sleep(self._bucket.reserve())
                    group.create_task(self._look(item, found))

    def _source(self, item: Item, known: Watch | None, source: Source) -> None:
        """Update the watch of a sub-job, or begin one for another vcjob of its name.

        A new watch of a restarted sub-job reads the pod first that reported in the run before.
        """
        if known is not None and known.source.uid == source.uid:
            changed = (known.source.leaving, known.source.ended) != (source.leaving, source.ended)
            if known.source != source:
                known.source = source
            if source.ended and known.ends is None:
                known.ends = self._now()
            if changed and not known.ended and not known.following:
                self._plan(item, known, 0.0)
            return
        if source.ended:
            return  # it ended before any read: its pod, and with it the log, is being deleted
        made = watch(source)
        if known is not None and known.found and known.number < source.size:
            made.number = known.number  # the pod that reported in the run before
        made.others = any(each.found for each in self._watches.get(item[0], {}).values())
        self._watches.setdefault(item[0], {})[item[1]] = made
        self._plan(item, made, 0.0 if source.leaving else min(_FIRST_SECONDS, self._interval))

    def _drop(self, item: Item) -> None:
        watches = self._watches.get(item[0], {})
        watches.pop(item[1], None)
        if not watches:
            self._watches.pop(item[0], None)
        self._schedule.remove(item)

    def _plan(self, item: Item, found: Watch, seconds: float) -> None:
        self._schedule.put(item, due=_clock() + seconds, lane=found.lane)
        self._news.set()

    async def _wait(self) -> None:
        """Wait until an item is due or a new one arrives."""
        seconds = self._schedule.wait(_clock())
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    def _put_off(self, item: Item, found: Watch) -> bool:
        """Return whether a read waits because its cluster has refused or was unreachable."""
        wait = self._troubles.get(found.source.cluster, Trouble()).until - _clock()
        if wait <= 0:
            return False
        self._plan(item, found, wait * random.uniform(1.0, 1.5))
        return True

    async def _look(self, item: Item, found: Watch) -> None:
        """Read the log of one pod, survey the others where one stalls or waits, plan the next read.

        Every path for a present watch plans a read or sets `ended`: without one its log is not read
        again. `source` is as before the read, since only a read that begins after the end of the
        sub-job has its last lines. After each await the watch may be dropped or replaced.
        """
        async with self._places.of(found.source.namespace, found.source.cluster):
            if found.doing is not Doing.WAITING or not self._is_watched(item, found):
                return  # its sub-job is being stopped, or is gone
            found.doing, source, stalled = Doing.READING, found.source, found.stalled
            begins = not any(each.track for each in self._watches[item[0]].values())
            try:
                progressed = await self._read(item, found)
            finally:
                found.doing = Doing.NOTHING
        if not self._is_watched(item, found):
            return
        if found.stall is not None and self._surveys.get(item[0], 0) < _SURVEYS:
            await self._survey(item[0], found.stall)
        elif stalled and not found.stalled:
            self._moves_again(item[0])
        elif progressed and self._waits_elsewhere(item[0]):
            await self._survey_waits(item[0])
        if not self._is_watched(item, found):
            return  # the new watch of a restarted sub-job has its own next read
        if begins and found.track is not None:
            self._woken.pop(item[0], None)  # the first line shows that it starts no more
        if progressed:
            self._request_pass(item[0])
        if source.ended:
            found.ended = True
            self._wake(item[0], 0.0)  # the end of the HyperJob may wait for these lines
        else:
            changed = (source.leaving, source.ended) != (found.source.leaving, found.source.ended)
            self._plan(item, found, 0.0 if changed else self._pause(item[0], found))

    async def _read(self, item: Item, found: Watch) -> bool:
        """Read the present lines of a log; return whether they have progress."""
        reading, lines = self._log(found), list[LogLine]()
        present = reading.read(found.query(), most=LIMIT_BYTES, idle_limit=_SECONDS)
        try:
            async with asyncio.timeout(_SECONDS), aclosing(present) as batches:
                async for batch in batches:
                    lines += batch
            with self._in_turn(f"a log of sub-job {item[1]} of {item[0]}"):
                progressed = found.read_log(
                    lines, position=reading.position, size=reading.size, now=self._now()
                )
        except (KubeError, TimeoutError) as error:
            self._failed(found, error)
            return False
        except Exception as error:  # noqa: BLE001 - the wall
            self._faulty(error)
            found.miss()
            return False
        _READS.labels("progress" if progressed else "silent").inc()
        self._troubles.pop(found.source.cluster, None)
        return progressed

    async def _follow(self, item: Item, found: Watch) -> None:
        """Read the logs of a stopping sub-job until they end."""
        try:
            await self._follower.follow(item, found)
        finally:
            found.doing = Doing.NOTHING
        found.ended = True
        self._wake(item[0], 0.0)

    def _moves_again(self, key: str) -> None:
        """Forget the survey of a HyperJob whose programs all make steps again."""
        if not any(each.stalled for each in self._watches.get(key, {}).values()):
            self._hangs.pop(key, None)
            self._surveys.pop(key, None)
        self._wake(key, 0.0)

    async def _survey(self, key: str, stall: Stall) -> None:
        """Read what all processes of a HyperJob do, one of whose programs makes no steps."""
        self._surveys[key] = self._surveys.get(key, 0) + 1
        made = await self._survey_pods(key, self._now() - stall.since)
        if made is not None:
            self._hangs[key] = Hang(survey=made.survey)
            self._wake(key, 0.0)

    async def _survey_waits(self, key: str) -> None:
        """Read how long all processes wait, since those that are read wait for another."""
        last = self._waits.get(key, _Waits())
        longer = min(_WAITS_PAUSES[1], last.pause * 2)
        self._waits[key] = _Waits(_clock() + last.pause, longer, last.shares)
        tracks = [each.track for each in self._watches.get(key, {}).values() if each.track]
        slow = any(each.slow for each in tracks)
        usual = [each.usual * _WAITS_LINES for each in tracks if each.usual is not None]
        past = max(_WAITS_PAST, *usual, timedelta())
        found = await self._survey_pods(key, past, changed=slow)
        if found is None:
            return
        self._waits[key] = self._waits.get(key, last)._replace(shares=found.waits)
        if straggler(found.waits, steps_per_second=None) is None:
            for each in self._watches.get(key, {}).values():
                each.track = each.track and used_to_it(each.track)
        self._wake(key, 0.0)

    def _waits_elsewhere(self, key: str) -> bool:
        """Return whether a survey of the waiting is due: one waits, or has become slow."""
        watches = self._watches.get(key, {}).values()
        slow = any(each.track is not None and each.track.slow for each in watches)
        if not slow and not any(each.wait and each.wait.part >= LEAST for each in watches):
            self._waits.pop(key, None)
            return False
        return _clock() >= self._waits.get(key, _Waits()).due

    async def _survey_pods(
        self, key: str, past: timedelta, *, changed: bool = False
    ) -> Found | None:
        """Survey all pods; None if the HyperJob was deleted meanwhile, or another has its name."""
        watches = self._watches.get(key)
        present = [each for each in (watches or {}).values() if not each.ended]
        sources = {each.source.name: each.source for each in present}
        found = await survey(
            [each for each in sources.values() if not each.leaving],
            past=past,
            log_of=lambda pod, container: self._log_of(sources[pod.job], pod, container),
            turn=self._bucket.reserve,
            changed=changed,
        )
        return found if self._watches.get(key) is watches else None

    def _is_watched(self, item: Item, found: Watch) -> bool:
        return self._watches.get(item[0], {}).get(item[1]) is found

    def _log(self, found: Watch) -> Log:
        pod, container = found.source.pod(found.number)
        return self._log_of(found.source, pod, container, replace(found.position))

    def _log_of(
        self,
        source: Source,
        pod: Pod,
        container: str,
        position: Position | None = None,
        *,
        opened: Callable[[], None] | None = None,
    ) -> Log:
        path = PODS.path(source.namespace, pod.name, "log")
        return Log(
            self._kube,
            f"{CLUSTERS.path(None, source.cluster, 'proxy')}{path}",
            container=container,
            position=position or Position(),
            longest=MAX_LINE + 4,  # a longer line is cut, and is then still too long
            turn=partial(self._turn, source),
            opened=opened,
        )

    async def _turn(self, source: Source) -> None:
        """Wait until a batch of a log may be parsed; namespaces take turns."""
        async with self._parsing.of(source.namespace, source.cluster):
            await asyncio.sleep(self._batches.reserve())

    def _failed(self, found: Watch, error: Exception) -> None:
        """Record a failed read: the pod is missing, the right is missing, or the cluster is."""
        if isinstance(error, NotFound) or (isinstance(error, KubeError) and error.http_code == 400):
            _READS.labels("missing").inc()
            found.miss()
            return
        refused = isinstance(error, Forbidden)
        _READS.labels("refused" if refused else "unreachable").inc()
        least, most = _TROUBLE_SECONDS
        cluster = found.source.cluster
        before = self._troubles.get(cluster, Trouble()).pause
        seconds = min(most, max(least, before * 2))
        self._troubles[cluster] = Trouble(_clock() + seconds, seconds)
        log.log(
            logging.WARNING if refused and not before else logging.INFO,
            "The logs of a cluster cannot be read: the progress of its sub-jobs is unknown",
            extra={"cluster": cluster, "error": str(error) or "no answer", "seconds": seconds},
        )

    def _pause(self, key: str, found: Watch) -> float:
        found.others = any(
            each.found for each in self._watches.get(key, {}).values() if each is not found
        )
        due = self._waits.get(key, _Waits()).due - _clock()
        return found.pause(self._interval, due=due) * random.uniform(0.9, 1.1)

    def _heard(self, key: str) -> None:
        _READS.labels("progress").inc()
        self._request_pass(key)

    def _request_pass(self, key: str) -> None:
        """Request a pass of the HyperJob, at most once an interval."""
        now, last = _clock(), self._woken.get(key)
        if last is not None and last > now:
            return  # the requested pass will have this progress too
        due = now if last is None else max(now, last + self._interval)
        self._woken[key] = due
        self._wake(key, due - now)


def _clock() -> float:
    return asyncio.get_running_loop().time()
