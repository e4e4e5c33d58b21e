"""The loop of the queue engine: a round after each change, then passes of the changed HyperJobs.

The pass of a HyperJob creates and records the sub-jobs that a round has admitted.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import Final

from hyperjob_controller.admission.releases import Releases, count_evicted, culprit, held_only
from hyperjob_controller.caches import Caches, hyperjob_keys
from hyperjob_controller.reservations import Reservations
from hyperjob_controller.wall import Wall, first_error, void
from hyperjob_controller.watchdog import LONGEST, Place, SlowTurnError
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.resources import key_of
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_engine.model.observed import Binding, Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_queueing import state as queue_state
from hyperjob_queueing.consumed import parse_consumed
from hyperjob_queueing.evict import next_change
from hyperjob_queueing.messages import stale_messages
from hyperjob_queueing.queues import (
    IMPLICIT,
    BuiltinQueues,
    NoConfirmation,
    Queue,
    VolcanoGlobal,
    parse_queue,
)
from hyperjob_queueing.read import unit_of, unit_of_remains
from hyperjob_queueing.reserve import reserved
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import HyperJobFault, Settings
from hyperjob_queueing.stopped import PodsLeft, from_text, to_text
from hyperjob_queueing.verdict import is_contended, verdict_of
from hyperjob_queueing.workload import Entry, QueuedHyperJob

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 0.05
_REST: Final = 10.0  # rounds take a tenth of the time at most
_LONGEST_REST: Final = 0.2
MESSAGES_PER_SECOND: Final = 50.0
_SWEEP: Final = 50
_PATIENCE: Final = 10.0
_CUT: Final = 5.0
"""Seconds of CPU after which a round is stopped: the Lease must be renewed every ten seconds."""
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


class Admission:
    """The queue engine with its state; `run` plays rounds while this process is the leader."""

    def __init__(
        self,
        caches: Caches,
        queue: WorkQueue[str],
        settings: Settings,
        reservations: Reservations,
        *,
        wall: Wall,
        mode: Callable[[], QueueAdmission],
        now: Callable[[], datetime],
        messages_per_second: float = MESSAGES_PER_SECOND,
        pods_left: PodsLeft = lambda _cluster, _job: None,
    ) -> None:
        """`mode` returns the queue admission; `reset` takes over a changed one.

        `pods_left` knows the pods of stopped sub-jobs, of which a share is free after their end.

        The engine refreshes at most `messages_per_second` stale messages.
        """
        self._reservations = reservations
        self._pods_left = pods_left
        self._wall = wall
        self._dropped: set[str] = set()  # HyperJobs at which rounds failed again: not in the state
        self._torn = False  # an update has failed halfway: `_renew` replaces the state
        self._rejoining: dict[str, None] = {}  # to be put back into the state before the next round
        self._mode = mode
        self._caches = caches
        self._queue = queue
        self._settings = settings
        self._now = now
        self._changed = asyncio.Event()
        self._took = 0.0  # seconds of the last round
        self._patient = True  # False: the list of Queues is late, which verdicts then name
        self._messages_per_second = messages_per_second
        self._next_refresh = 0.0
        self._refresh_at: dict[str, float] = {}  # when each planned refresh of a message is due
        self._alone = True  # False after the log has named another component that suspends bindings
        self.releases = Releases(caches, changed=self.wake)
        self._state = queue_state.new_state(settings)
        self._queues: dict[str, Queue] = {}  # as the cache has them
        self._queues_changed = False  # since the state had them
        caches.queues.add_handler(self._queue_changed)
        caches.hyperjobs.add_handler(lambda _, __, new: self._state.past.note(new or {}))
        self.reset()

    def __str__(self) -> str:
        """Return each HyperJob with its sub-jobs that hold a share, and its queue if it waits."""
        return "; ".join(_shown(key, each) for key, each in sorted(self._state.entries.items()))

    def reset(self) -> None:
        """Forget all HyperJobs; `run` learns them again from the objects."""
        mode = self._mode()
        self.releases.switch(on=mode is QueueAdmission.VOLCANO_GLOBAL)
        self._empty(mode)
        self._alone = True

    def restore(self, ending: str) -> None:
        """Count the pods of sub-jobs that the last leader has stopped, as it recorded them."""
        for pods in from_text(ending):
            queue_state.count_ending(self._state, pods)

    def record(self) -> str:
        """Return the pods of stopped sub-jobs, for the next leader."""
        return to_text(self._state.ending)

    def ending(self, key: str) -> Mapping[str, datetime]:
        """Return until when pods of the stopped sub-jobs of a HyperJob may run, by sub-job."""
        return {pods.name: pods.until for pods in self._state.ending if pods.key == key}

    def _empty(self, mode: QueueAdmission) -> None:
        """Begin with an empty state, except stopped pods and what runs and queues took."""
        self._torn = False
        self._rejoining.clear()
        ending, past = self._state.ending, self._state.past
        consumption = self._state.shares.consumption
        self._state = queue_state.new_state(self._settings, self._confirmer(mode), past)
        self._state.shares.consumption = consumption
        for pods in ending:  # no object shows them
            queue_state.count_ending(self._state, pods)
        self._refresh_at.clear()

    def _confirmer(self, mode: QueueAdmission) -> BuiltinQueues:
        match mode:
            case QueueAdmission.NONE:
                return NoConfirmation()
            case QueueAdmission.BUILTIN:
                return BuiltinQueues()
            case QueueAdmission.VOLCANO_GLOBAL:
                return VolcanoGlobal(self.releases.others)

    @property
    def state(self) -> queue_state.QueueState:
        """Return the present state, which only this class changes while it runs rounds."""
        return self._state

    def update(self, observed: Observed) -> None:
        """Update the state with the present spec and objects of a HyperJob."""
        key = observed.hyperjob.key
        self._refresh_at.pop(key, None)
        self._look_for_others(observed)
        workload = unit_of(observed, self._state.past.took)
        if not self._wall.holds(key):
            self._dropped.discard(key)
        else:
            workload = None if key in self._dropped else held_only(workload)
        self._put(key, workload, now=observed.now)

    def _put(self, key: str, workload: QueuedHyperJob | None, *, now: datetime) -> None:
        """Replace a HyperJob in the state; after an exception its sums may be wrong."""
        try:
            if queue_state.update(self._state, key, workload, now=now):
                self.wake()
        except Exception:
            self._torn = True
            self.wake()
            raise

    def set_aside(self, key: str) -> None:
        """Let others have the room that a HyperJob waits for, or that it was granted."""
        entry = self._state.entries.get(key)
        if entry is not None:
            self._put(key, held_only(entry.unit), now=self._now())

    def verdict(self, key: str) -> QueueVerdict:
        """Return the decision of the last round about a HyperJob."""
        return verdict_of(self._state, key, patient=self._patient)

    def message_written(self, key: str, verdict: QueueVerdict) -> None:
        """Record that the status of a HyperJob has the message of this verdict."""
        entry = self._state.entries.get(key)
        if entry is not None and entry.waiting is not None:
            entry.note_written(verdict.message_facts, now=self._now())

    def forget(self, key: str, remains: Sequence[tuple[Object, Binding]]) -> None:
        """Drop a deleted HyperJob; its vcjobs that a member still runs keep their share."""
        self._refresh_at.pop(key, None)
        workload = unit_of_remains(key, remains)
        self._put(key, workload, now=self._now())

    def is_contended(self, key: str) -> bool:
        """Return whether another HyperJob waits that could use the resources of this one."""
        return is_contended(self._state, key)

    def reserved(self, key: str) -> Mapping[str, Sequence[PlacementRequest]]:
        """Return the sub-jobs of other HyperJobs for which room is reserved, by cluster."""
        return reserved(self._state, but=key)

    def after_pass(self, observed: Observed, look: Callable[[], Observed | None]) -> None:
        """Revoke the admissions for which the pass of a HyperJob has created no sub-job."""
        verdict, key = observed.verdict, observed.hyperjob.key
        entry = self._state.entries.get(key)
        if verdict is None or entry is None or not entry.granted & verdict.admitted:
            return
        if look() is None:
            return
        rest = queue_state.requeue(self._state, key, verdict.admitted, now=self._now())
        if rest is not None:
            self._queue.add_after(key, rest.total_seconds())
            self.wake()

    def rejoin(self, keys: Iterable[str]) -> None:
        """Let the next round know HyperJobs again that gave their room back, all at once.

        With some of them alone, the round would admit these in front of older HyperJobs.
        """
        self._rejoining |= dict.fromkeys(keys)
        if self._rejoining:
            self.wake()

    def wake(self) -> None:
        """Run a round soon."""
        self._changed.set()

    async def run(self, learn: Callable[[str], object]) -> None:
        """Run a round after each change, until cancelled; `learn` updates one HyperJob."""
        await self._learn_all(learn)
        self.wake()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._when_known())
            await self._rounds(learn)

    async def _when_known(self) -> None:
        """Run a round once the Queues are listed, even if there are none; log a long wait."""
        synced = self._caches.queues.synced
        if not self._state.shares.confirmer.needs_queues:
            self._learn_queues()
            self.wake()
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                await synced.wait()
        except TimeoutError:
            self._patient = False
            log.warning("Waiting for the list of Volcano's Queues: no HyperJob is admitted before")
            for key in self._state.entries:
                self._queue.add(key)
            await synced.wait()
            self._patient = True  # the next queue admission begins with a wait of its own
        self.wake()

    async def _rounds(self, learn: Callable[[str], object]) -> None:
        """Play rounds until cancelled.

        After an exception the HyperJob at which the round failed is set aside; where none is found,
        rounds pause. The state is then filled again: it may have a part of the round's sums.
        """
        pause = 0.0
        while True:
            try:
                await self._wait()
                if self._torn:
                    await self._renew(learn)
                while self._rejoining:
                    keys, self._rejoining = self._rejoining, {}
                    await self._learn(keys, learn)
                    for key in keys:
                        self._queue.add(key)
                began = asyncio.get_running_loop().time()
                with self._wall.watchdog.turn(Place.ROUND, "a round", most=_CUT, slow=void):
                    self._round()
                self._took = asyncio.get_running_loop().time() - began
                pause = 0.0
            except Exception as error:  # noqa: BLE001 - the wall
                if not await self._blame(error):
                    self._wall.failed(Place.ROUND, error)
                    await asyncio.sleep(pause)
                    pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, pause * 2))
                await self._renew(learn)

    async def _wait(self) -> None:
        """Wait until a round may admit a HyperJob."""
        wait = self._next_change(now=self._now())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if wait is None else wait.total_seconds()):
                await self._changed.wait()
        longest = _LONGEST_REST if self._took <= LONGEST else _LONGEST_PAUSE
        rest = min(longest, _REST * self._took)
        await asyncio.sleep(max(SETTLE_SECONDS, rest))
        self._changed.clear()

    async def _blame(self, error: Exception) -> bool:
        """Set the HyperJob aside at which a round failed; return whether there is such a one.

        If the exception names none, trial rounds find it. If rounds fail at a HyperJob that is set
        aside already, the engine drops it altogether. No HyperJob is to blame for a whole round
        that took too long.
        """
        cause, units = first_error(error), {k: each.unit for k, each in self._state.entries.items()}
        key: str | None
        if isinstance(cause, SlowTurnError):
            key = cause.of if cause.of in units else None
        elif isinstance(error, HyperJobFault):
            key = error.key
        else:
            key = await culprit(list(units), partial(self._fails, units))
        if key is None:
            return False
        if self._wall.holds(key):
            self._dropped.add(key)
        self._wall.caught(key, error, Place.ROUND)
        return True

    def _fails(self, units: Mapping[str, QueuedHyperJob], keys: Sequence[str]) -> bool:
        """Return whether a round with these HyperJobs alone fails; it decides nothing."""
        now = self._now()
        trial = queue_state.new_state(self._settings, self._state.shares.confirmer)
        clusters = self._reservations.clusters(now=now)
        try:
            queue_state.set_queues(trial, self._queues.values())
            for key in keys:
                queue_state.update(trial, key, units[key], now=now)
            schedule(trial, clusters, now=now, faulty=lambda _: None)
        except Exception:  # noqa: BLE001 - the wall
            return True
        return False

    async def _renew(self, learn: Callable[[str], object]) -> None:
        """Fill the state again after a failed round, which may have left a part of its sums.

        Grants that no object shows yet stay, and their HyperJobs get a pass: the failed round has
        not returned them.
        """
        granted = {
            key: {
                name: cluster
                for name in entry.granted
                if (cluster := entry.reserved_clusters.get(name))
            }
            for key, entry in self._state.entries.items()
            if entry.granted
        }
        self._empty(self._mode())
        await self._learn_all(learn)
        if not self._state.shares.confirmer.needs_queues or self._caches.queues.synced.is_set():
            self._learn_queues()
        for key, clusters in granted.items():
            if key in self._state.entries and not self._wall.holds(key):
                with self._wall.around([key], Place.ROUND):
                    queue_state.admit(self._state, key, clusters, now=self._now())
            self._queue.add(key)
        self.wake()

    def _next_change(self, *, now: datetime) -> timedelta | None:
        """Return the time until a round may admit a HyperJob without a change of an object."""
        waits = [next_change(self._state, now=now), self.releases.next_change(now=now)]
        if self._state.lines:
            waits.append(self._reservations.changes_in(now=now))
        return min((wait for wait in waits if wait is not None), default=None)

    async def _learn_all(self, learn: Callable[[str], object]) -> None:
        """Learn all HyperJobs before the first round, which must count every held share."""
        keys = dict.fromkeys(key_of(obj) for obj in self._caches.hyperjobs.items())
        for job in self._caches.jobs.items():
            keys |= dict.fromkeys(hyperjob_keys(job))
        await self._learn(keys, learn)

    async def _learn(self, keys: Iterable[str], learn: Callable[[str], object]) -> None:
        for number, key in enumerate(keys):
            with self._wall.around([key], Place.ROUND):
                learn(key)
            if number % _SWEEP == _SWEEP - 1:
                await asyncio.sleep(0)

    def _round(self) -> None:
        """Play a round, and put the HyperJobs with a decision into the workqueue.

        The decisions enter the workqueue before the messages are computed: a failure there delays
        no admission.
        """
        state, now = self._state, self._now()
        if self._queues_changed if state.known else self._caches.queues.synced.is_set():
            self._learn_queues()
        follows = self._mode() is QueueAdmission.VOLCANO_GLOBAL
        # Shares are of what the clusters have, and metrics show them while no HyperJob waits.
        counted = state.shares.total
        if counted and not (state.lines or state.index.missing or state.index.growing or follows):
            return
        clusters = self._reservations.clusters(now=now)
        forecast_failed = partial(self._wall.failed, Place.FORECAST)
        decisions = schedule(
            state,
            clusters,
            now=now,
            faulty=forecast_failed,
            in_turn=lambda key: self._wall.turn(key, Place.ROUND),
            pods_left=self._pods_left,
        )
        count_evicted(state, decisions.evicted)
        overdue = self.releases.look(state.shares.queues, now=now) if follows else set()
        for key in (*overdue, *decisions.keys):
            self._queue.add(key)
        try:
            self._refresh_messages()
        except Exception as error:  # noqa: BLE001 - the wall
            self._wall.failed(Place.MESSAGES, error)

    def _refresh_messages(self) -> None:
        """Put HyperJobs with stale messages into the workqueue, a bounded number per second.

        First messages go at once. A HyperJob with a new reason comes before those with changed
        numbers only, whose messages become rarer the longer they wait.
        """
        clock = asyncio.get_running_loop().time()
        for stale in stale_messages(self._state, now=self._now()):
            key, wait = stale.key, stale.wait.total_seconds()
            if stale.news:
                self._queue.add(key)
            elif self._refresh_at.get(key, inf) > clock + wait + 1:  # planned, or as early
                self._next_refresh = max(self._next_refresh, clock) + 1 / self._messages_per_second
                self._refresh_at[key] = clock + wait
                self._queue.add_after(key, max(wait, self._next_refresh - clock))

    def _queue_changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a changed Queue: the next round takes all changes together into its tree."""
        before = self._queues.pop(key_of(new or old or {}), None)
        if new is not None:
            self._queues[key_of(new)] = parse_queue(new)
            if before == self._queues[key_of(new)]:
                return
        self._queues_changed = True
        self.wake()

    def _learn_queues(self) -> None:
        self._queues_changed = False
        for each in self._caches.queues.items():
            if consumed := parse_consumed(each):
                self._state.shares.consumption.restore(key_of(each), consumed)
        queue_state.set_queues(self._state, self._queues.values())

    def priorities_changed(self) -> None:
        """Request a pass of every HyperJob in the state: their order may have changed."""
        for key in self._state.entries:
            self._queue.add(key)

    def queue_closed(self, name: str) -> None:
        """Request a pass of the HyperJobs of a Queue that a cluster has closed or opened.

        Without queue admission all wait in one line, whatever their Queues are.
        """
        for key, entry in self._state.entries.items():
            if any(part.queue in (name, IMPLICIT) for part in entry.unit.parts):
                self._queue.add(key)

    def _look_for_others(self, observed: Observed) -> None:
        """Log once that another component suspends ResourceBindings too, despite the mode."""
        for binding in observed.bindings.values():
            ours = self._mode() is QueueAdmission.BUILTIN
            if ours and self._alone and binding.scheduling_suspended:
                self._alone = False
                log.error(
                    "Volcano Global, or another queue admission, suspends bindings too: remove it,"
                    " or run with --queue-admission auto",
                    extra={"binding": f"{observed.hyperjob.namespace}/{binding.name}"},
                )


def _shown(key: str, entry: Entry) -> str:
    holds = f" holds {', '.join(sorted(entry.holding))}" if entry.holding else ""
    waits = f" waits in queue {entry.waiting.queue}" if entry.waiting is not None else ""
    return f"{key}{holds}{waits}"
