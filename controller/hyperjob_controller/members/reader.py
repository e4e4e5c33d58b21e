"""The reader of all members: a task for each Cluster, and what is known of the clusters now.

A member that hangs, refuses or is gone costs the others nothing: each has tasks of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from hyperjob_controller.members.member import MOST_BYTES, Budget, Member
from hyperjob_controller.wall import first_error
from hyperjob_controller.watchdog import InTurn, Place
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import ContainerFailure, JobStatus
from hyperjob_core.api.wire import at, is_true, mapping, rfc3339, string, timestamp
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.errors import Gone, TooLarge
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import (
    CORE_EVENTS,
    DEVICES,
    HYPERNODES,
    NODES,
    PODGROUPS,
    PODS,
    Resource,
)
from hyperjob_core.tasks import apart, cancel
from hyperjob_engine.lifecycle.stops import ON_ITS_WAY
from hyperjob_engine.members.fold import MemberFold, News
from hyperjob_engine.model.members import MemberView, PodHeld
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.placement.capacity import not_ready_since

log = logging.getLogger(__name__)
T = TypeVar("T")

_PAGES: Final = 8
_CALL_SECONDS: Final = 15.0
_GATHER_SECONDS: Final = 0.25
"""The changes of a member in this time are reported once."""
_SKEW: Final = timedelta(seconds=1)
"""By how much the clock of a member may be behind that of Karmada."""
_AT_ONCE: Final = 3
"""The views that are renewed at once: of a large member it takes a tenth of a second."""
_TURN_SECONDS: Final = 2.0
_DOUBT: Final = timedelta(minutes=5)
_LONGEST_DOUBT: Final = timedelta(hours=1)
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 300.0


@dataclass(frozen=True, slots=True)
class _Vcjob:
    """The last vcjob of a name: its cluster, and when it was gone from Karmada.

    It was created at `created` or later, after the end of the vcjob before it.
    """

    cluster: str
    created: datetime | None = None
    gone: datetime | None = None


class Members:
    """The members as their own API servers show them; the caller runs `run()`."""

    place: Final = Place.MEMBERS

    def __init__(
        self,
        kube: Kube,
        clusters: Informer,
        *,
        nodes: bool,
        now: Callable[[], datetime],
        freed: Callable[[str], None],
        shown: Callable[[Collection[str]], None],
        wake: Callable[[str], None],
        faulty: Callable[[BaseException, str], None],
        in_turn: InTurn = nullcontext,
        turned: Callable[[str], None] = lambda _: None,
        most: int = MOST_BYTES,
    ) -> None:
        """With `nodes` the reader reads nodes and HyperNodes too, beside pods.

        `freed` gets the name of a cluster that may have more room, `shown` the keys of vcjobs with
        a further pod, `wake` the key of a HyperJob whose sub-job has no pod left or has failed,
        `faulty` an unexpected exception and what it is about, and `turned` the name of a cluster of
        which `views` has gained or lost the nodes. `in_turn` times the work on each object.
        """
        self.reads_nodes = nodes
        self._kube = kube
        self._clusters = clusters
        self._now = now
        self._freed = freed
        self._shown = shown
        self._wake = wake
        self._faulty = faulty
        self._in_turn = in_turn
        self._turned = turned
        self._viewed: frozenset[str] = frozenset()
        self._doubted_until: datetime | None = None
        self._doubt = _DOUBT
        self._resources: tuple[Resource, ...] = (PODS, PODGROUPS, CORE_EVENTS)
        if nodes:
            self._resources += (NODES, HYPERNODES, *DEVICES)
        self._pages = asyncio.Semaphore(_PAGES)
        self._budget = Budget(most)
        self._members: dict[str, Member] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # The vcjobs of each HyperJob, and the reverse; `_vcjobs` has the last cluster of each.
        self._jobs: dict[str, frozenset[str]] = {}
        self._owners: dict[str, str] = {}
        self._vcjobs: dict[str, _Vcjob] = {}
        # News by cluster, which one timer of the cluster reports together.
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._grown: dict[str, set[str]] = {}
        self._roomy: set[str] = set()
        self._running = False
        clusters.add_handler(self._cluster)

    def views(self, now: datetime, only: Collection[str] = ()) -> dict[str, MemberView]:
        """Return the clusters whose nodes are known, without those of which that is too old.

        `only`: of these clusters; without any, of all. One call renews the views of few clusters:
        in one turn of the event loop all would take long. The report of a change renews another.
        """
        if not self._counts_nodes(now):
            return {}
        members = self._members
        chosen = {name: members[name] for name in only if name in members} if only else members
        found, left = {}, _AT_ONCE
        for name, member in chosen.items():
            left -= member.has_changed and member.is_known(now)
            view = _view(member, now, renew=left >= 0)
            if view is not None:
                found[name] = view
        return found

    def pods_left(
        self, namespace: str, records: Mapping[str, JobStatus], now: datetime, *, lost: timedelta
    ) -> dict[str, int | None]:
        """Return the pods of sub-jobs that have not ended, by name, on all members.

        Pods on a Cluster that has not been Ready for the time `lost` do not count: no one can end
        them, or see their end.

        None: the member of the sub-job's cluster is not known; without a cluster, any member is
        not. None, too, while a member without pods of the last vcjob may show its changes late: it
        has shown no pod of that vcjob before, and nothing that happened after its deletion.
        """
        known = {name: each for name, each in self._members.items() if each.is_known(now)}
        found: dict[str, int | None] = dict.fromkeys(records)
        for name, record in records.items():
            if record.cluster not in known and (record.cluster or len(known) < len(self._members)):
                continue
            job = f"{namespace}/{name}"
            pods = sum(
                each.fold.jobs[job]
                for where, each in known.items()
                if job in each.fold.jobs and not self._is_lost(where, now - lost)
            )
            if pods or self._is_shown(job, known):
                found[name] = pods
        return found

    def staying(
        self, namespace: str, names: Iterable[str], now: datetime
    ) -> dict[str, tuple[str, ...]]:
        """Return the clusters with pods of sub-jobs that are not being deleted, by name."""
        known = {name: each.fold for name, each in self._members.items() if each.is_known(now)}
        found = {
            name: tuple(where for where in known if known[where].stays(f"{namespace}/{name}"))
            for name in names
        }
        return {name: clusters for name, clusters in found.items() if clusters}

    def _is_lost(self, cluster: str, before: datetime) -> bool:
        """Return whether a Cluster has not been Ready since a time or longer."""
        raw = self._clusters.get(cluster) or {}
        since = not_ready_since(mapping(raw.get("status")))
        return since is not None and since <= before

    def pods_of(self, cluster: str, job: str) -> int | None:
        """Return the pods of a vcjob that have not ended in a member; None if it is not known."""
        member = self._members.get(cluster)
        if member is None or not member.is_known(self._now()):
            return None
        return member.fold.jobs.get(job, 0)

    def held(self, now: datetime) -> Iterator[tuple[str, Iterator[PodHeld]]]:
        """Yield the members that are known, and the pods of vcjobs that hold a node of each."""
        for name, member in self._members.items():
            if member.is_known(now):
                yield name, member.fold.held()

    def counted(self, cluster: str, job: str) -> int | None:
        """Return the pods of a vcjob that `views` counts; None if the nodes are not known."""
        member, now = self._members.get(cluster), self._now()
        if member is None or not member.is_known(now) or not self._counts_nodes(now):
            return None
        return member.counted(job)

    def distrust(self) -> None:
        """Show no nodes for some time, after placement by nodes has failed: the sums count then."""
        now = self._now()
        if not self._counts_nodes(now):
            return
        last = self._doubted_until
        again = last is not None and now - last < _LONGEST_DOUBT
        self._doubt = min(_LONGEST_DOUBT, self._doubt * 2) if again else _DOUBT
        self._doubted_until = now + self._doubt
        log.error(
            "Placement by nodes has failed: decisions use the sums of the Clusters for some time",
            extra={"until": rfc3339(self._doubted_until)},
        )
        asyncio.get_running_loop().call_soon(self._turn)

    def _counts_nodes(self, now: datetime) -> bool:
        doubted = self._doubted_until is not None and now < self._doubted_until
        return self.reads_nodes and not doubted

    def _turn(self) -> None:
        """Report the clusters that have gained or lost the view of their nodes."""
        now = self._now()
        counts = self._counts_nodes(now)
        viewed = {name for name, each in self._members.items() if counts and each.is_known(now)}
        turned, self._viewed = viewed ^ self._viewed, frozenset(viewed)
        try:
            for name in sorted(turned):
                self._turned(name)
        except Exception as error:  # noqa: BLE001 - the wall
            self._faulty(error, "the members")

    async def _watch_turns(self) -> None:
        """Look again and again which members are known: knowledge grows old without an event."""
        while True:
            self._turn()
            await asyncio.sleep(_TURN_SECONDS)

    def failure(self, cluster: str, job: str) -> ContainerFailure | None:
        """Return the first failed container of a vcjob in a member, if the watch has shown one."""
        member = self._members.get(cluster)
        return None if member is None else member.fold.failure(job)

    def told(
        self,
        ask: Callable[[MemberFold, str], T | None],
        namespace: str,
        records: Mapping[str, JobStatus],
        *,
        now: datetime | None = None,
    ) -> dict[str, T]:
        """Return what the members say of sub-jobs, by name, where they say something.

        With `now` only those do that are known at that time.
        """
        found = {}
        for name, record in records.items():
            member = self._members.get(record.cluster)
            if member is not None and (now is None or member.is_known(now)):
                answer = ask(member.fold, f"{namespace}/{name}")
                if answer is not None:
                    found[name] = answer
        return found

    def state(self, now: datetime) -> dict[str, Object]:
        """Return what is known of each member, for the debug page."""
        found = {name: member.state(now) for name, member in sorted(self._members.items())}
        if self.reads_nodes and not self._counts_nodes(now) and self._doubted_until is not None:
            for each in found.values():
                each["nodesDoubtedUntil"] = rfc3339(self._doubted_until)
        return found

    def planned(self, observed: Observed, _decided: Plan | None = None) -> None:
        """Remember the sub-jobs of a HyperJob: the end of their pods requests its pass."""
        hyperjob = observed.hyperjob
        names = {*hyperjob.records, *observed.jobs}
        jobs = frozenset(f"{hyperjob.namespace}/{name}" for name in names)
        before = self._jobs.get(hyperjob.key, frozenset())
        if jobs != before:
            self._drop(before - jobs)
            self._jobs[hyperjob.key] = jobs
            self._owners.update(dict.fromkeys(jobs, hyperjob.key))
        for name, record in hyperjob.records.items():
            job, key = observed.jobs.get(name), f"{hyperjob.namespace}/{name}"
            known = self._vcjobs.get(key) or _of_record(record, hyperjob.created)
            if job is not None:
                last = known.cluster if known.created == job.created else ""
                self._vcjobs[key] = _Vcjob(record.cluster or last, job.created)
            elif known.gone is None:
                self._vcjobs[key] = replace(known, gone=observed.now)

    def strays(self) -> set[str]:
        """Return the vcjobs with pods in any member that are of no HyperJob of a pass."""
        folds = [each.fold for each in self._members.values()]
        return {job for fold in folds for job in fold.jobs if job not in self._owners}

    def jobs_of(self, key: str) -> frozenset[str]:
        """Return the vcjobs of a HyperJob, until `forget`."""
        return self._jobs.get(key, frozenset())

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        self._drop(self._jobs.pop(key, ()))

    def _drop(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            self._owners.pop(job, None)
            self._vcjobs.pop(job, None)

    def _is_shown(self, job: str, members: Mapping[str, Member]) -> bool:
        """Return whether the cluster of the last vcjob of this name has shown pods of it, or later.

        Without a cluster, whether all have shown what happened later.
        """
        vcjob = self._vcjobs.get(job)
        if vcjob is None:
            return False
        own = members.get(vcjob.cluster)
        begun = own.fold.begun(job) if own is not None else None
        if begun is not None and vcjob.created is not None and begun >= vcjob.created - _SKEW:
            return True
        if vcjob.gone is None or (vcjob.cluster and own is None):
            return False
        latest = [each.fold.latest for each in (members.values() if own is None else [own])]
        due = vcjob.gone + ON_ITS_WAY
        return all(each is not None and each >= due for each in latest)

    async def tried(self, seconds: float) -> None:
        """Wait until each member whose Cluster is Ready is known or has failed, for this long."""
        waits = [
            member.tried.wait()
            for name, member in self._members.items()
            if is_true(self._clusters.get(name), "Ready")
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*waits)

    async def run(self) -> None:
        """Read until cancelled."""
        self._running = True
        try:
            for name in self._members:
                self._start(name)
            await self._watch_turns()
        finally:
            self._running = False
            for handle in self._due.values():
                handle.cancel()
            self._due.clear()
            self._grown.clear()
            self._roomy.clear()
            await cancel(list(self._tasks.values()))
            self._tasks.clear()

    def _cluster(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Start the reader of a new Cluster, and end that of a deleted one."""
        name = string(at(new if new is not None else old, "metadata", "name"))
        if kind is EventType.DELETED:
            self._members.pop(name, None)
            task = self._tasks.pop(name, None)
            if task is not None:
                task.cancel()
        elif name not in self._members:
            self._members[name] = Member(
                name,
                self._kube.member(name, time_limit=_CALL_SECONDS),
                resources=self._resources,
                pages=self._pages,
                now=self._now,
                heard=self._heard,
                budget=self._budget,
                in_turn=self._in_turn,
            )
            if self._running:
                self._start(name)

    def _start(self, name: str) -> None:
        self._tasks[name] = asyncio.ensure_future(self._keep(self._members[name]))

    async def _keep(self, member: Member) -> None:
        """Read a member; after an unexpected exception read it again, after a pause.

        Until then it is not known. The pause doubles while the member fails within the longest.
        """
        clock, pause = asyncio.get_running_loop().time, _FIRST_PAUSE
        while True:
            began = clock()
            try:
                await apart(member.run())
            except Exception as error:  # noqa: BLE001 - the wall
                first = first_error(error)
                if isinstance(first, Gone):
                    continue  # the next lists count again what is kept
                if isinstance(first, TooLarge):
                    log.warning(
                        "The controller keeps nothing of a member: decisions use the sums of its"
                        " Cluster",
                        extra={"cluster": member.name, "error": str(first)},
                    )
                else:
                    self._faulty(error, f"member {member.name}")
                member.trouble = str(first) if isinstance(first, TooLarge) else repr(first)
                member.tried.set()
            member.forget()  # the exception may have left a part of a change
            if clock() - began > _LONGEST_PAUSE:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    def _heard(self, cluster: str, news: News) -> None:
        """Report ended pods at once, further pods and freed room together a moment later."""
        for job in news.jobs:
            key = self._owners.get(job)
            if key is not None:
                self._wake(key)
        if news.grown:
            self._grown.setdefault(cluster, set()).update(news.grown)
        if news.freed:
            self._roomy.add(cluster)
        if cluster not in self._due:
            loop = asyncio.get_running_loop()
            self._due[cluster] = loop.call_later(_GATHER_SECONDS, self._report, cluster)

    def _report(self, cluster: str) -> None:
        self._due.pop(cluster, None)
        grown, freed = self._grown.pop(cluster, set()), cluster in self._roomy
        self._roomy.discard(cluster)
        if self.reads_nodes and cluster in self._members:
            _view(self._members[cluster], self._now())
        try:
            if grown and self.reads_nodes:  # without nodes only the sums count, which lag behind
                self._shown(grown)
            if freed:
                self._freed(cluster)
        except Exception as error:  # noqa: BLE001 - the wall
            self._faulty(error, "the members")


def _of_record(record: JobStatus, begin: str) -> _Vcjob:
    """Return the last vcjob of a sub-job by its record: another controller may have deleted it."""
    runs = record.history
    cluster = record.cluster or (runs[-1].cluster if runs else "")
    since = runs[-2].end if len(runs) > 1 else begin if record.attempt <= 1 else ""
    return _Vcjob(cluster, timestamp(since))


def _view(member: Member, now: datetime, *, renew: bool = True) -> MemberView | None:
    """Return a member as it is known; after an unexpected exception it is not known."""
    try:
        return member.view(now, renew=renew)
    except Exception as error:  # noqa: BLE001 - the wall
        member.fail(error)
        return None
