"""Who admits to the queues, and what Volcano Global releases, computed from the ResourceBindings.

Beside it: the HyperJob at which rounds fail, and the count of those that make way for others.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from prometheus_client import Counter

from hyperjob_controller.caches import Caches, hyperjob_keys, workload_of_binding
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import VCJOB_KIND, binding_name
from hyperjob_core.api.volcano_global import queues_bindings
from hyperjob_core.api.wire import at, string, string_map
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import key_of
from hyperjob_core.registry import REGISTRY
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.resources import Resources
from hyperjob_queueing.queues import Queue, value_of
from hyperjob_queueing.quota import Charge, Charges, charge_of, forecast_dispatch
from hyperjob_queueing.state import QueueState
from hyperjob_queueing.workload import QueuedHyperJob, Rank

log = logging.getLogger(__name__)

FOUND: Final = "Volcano Global's webhook for ResourceBindings is installed"
NOT_FOUND: Final = "Volcano Global's webhook for ResourceBindings is not installed"


class Mode:
    """The present queue admission; `current` counts once the informer is synced."""

    def __init__(
        self,
        wanted: QueueAdmission | None,
        webhooks: Informer,
        *,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`wanted` None follows the MutatingWebhookConfigurations that `webhooks` holds.

        `changed` is called after each change.
        """
        self._wanted = wanted
        self._found: set[str] = set()
        self._on_changed = changed
        if wanted is None:
            webhooks.add_handler(self._changed)

    @property
    def current(self) -> QueueAdmission:
        """Return the present queue admission."""
        if self._wanted is not None:
            return self._wanted
        return QueueAdmission.VOLCANO_GLOBAL if self._found else QueueAdmission.BUILTIN

    @property
    def decides_alone(self) -> bool:
        """Return whether Volcano Global is known not to be installed."""
        return self._wanted is None and not self._found

    @property
    def why(self) -> str:
        """Return why this mode is in use."""
        if self._wanted is not None:
            return f"--queue-admission {self._wanted}"
        return FOUND if self._found else NOT_FOUND

    def _changed(self, _kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow one MutatingWebhookConfiguration, whose rules may change under its name."""
        before = self.current
        for obj in (old, new):
            if obj is not None:
                self._found.discard(obj["metadata"]["name"])
        if new is not None and queues_bindings([new]):
            self._found.add(new["metadata"]["name"])
        if self.current is before:
            return
        log.info("Queue admission", extra={"mode": str(self.current), "because": self.why})
        self._on_changed()


SILENT_AFTER: Final = timedelta(seconds=30)
GIVES_BACK_AFTER: Final = timedelta(seconds=5)
_CYCLES: Final = timedelta(seconds=5)  # several cycles of Volcano Global's dispatcher
_DEFAULT_QUEUE: Final = "default"
_QUEUE_NAMES: Final = ("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")


class Releases:
    """Follows ResourceBindings and their templates; calls `changed` when the sums change."""

    def __init__(self, caches: Caches, *, changed: Callable[[], None]) -> None:
        self._caches = caches
        self._changed = changed
        self._charges = Charges()
        self._on = False
        # By vcjob of the last forecast: True to be released, False without quota; and since when.
        self._since: dict[str, tuple[bool, datetime]] = {}
        self._released: set[str] = set()  # vcjobs that were released since the last `look`
        self._skipped: set[str] = set()  # overdue vcjobs of `_since` while others were released
        self._looked: datetime | None = None
        caches.bindings.add_handler(self._binding)
        caches.jobs.add_handler(self._template(VCJOB_KIND))
        caches.other_jobs.add_handler(self._template(VCJOB_KIND))
        caches.deployments.add_handler(self._template("Deployment"))

    def switch(self, *, on: bool) -> None:
        """Fill the account from the caches, or empty it."""
        self._on, self._charges = on, Charges()
        self._since.clear()
        self._released.clear()
        self._skipped.clear()
        for obj in self._caches.bindings.items() if on else ():
            self._charges.put(key_of(obj), self._charge(obj))

    def others(self, holds: Callable[[str], bool]) -> Mapping[str, Resources]:
        """Return the allocated resources by queue, without vcjobs that the queue engine counts."""
        return self._charges.released(but=holds)

    def look(self, queues: Sequence[Queue], *, now: datetime) -> set[str]:
        """Forecast the next dispatch; return the HyperJobs whose release is overdue now.

        `_since` has the present state of each forecast vcjob and its beginning: another state, or a
        forecast without the vcjob, starts a new time.
        """
        classes = {each["metadata"]["name"]: each for each in self._caches.priority_classes.items()}
        states = forecast_dispatch(self._charges, queues, partial(self._priority, classes))
        self._note_skipped(now=now)
        self._looked = now
        before, self._since = self._since, {}
        overdue = set()
        for key, state in states.items():
            was = before.get(key)
            since = was[1] if was is not None and was[0] is state else now
            self._since[key] = state, since
            if now >= since + _limit(state):
                overdue.add(key)
        return {
            owner
            for key in overdue
            if (job := self._caches.job(key)) is not None
            for owner in hyperjob_keys(job)
        }

    def next_change(self, *, now: datetime) -> timedelta | None:
        """Return the time until a release is overdue."""
        looked = self._looked or now
        due = [since + _limit(state) for state, since in self._since.values()]
        waits = (max(each - now, timedelta()) for each in due if each > looked)
        return min(waits, default=None)

    def passed_over(self, key: str, *, now: datetime) -> bool:
        """Return whether Volcano Global has had no quota for a vcjob for some seconds."""
        return self._is(key, False, now)

    def unanswered(self, key: str, *, now: datetime) -> bool:
        """Return whether Volcano Global has had quota for a vcjob for long, and not released it."""
        return self._is(key, True, now)

    def forgotten(self, key: str, *, now: datetime) -> bool:
        """Return whether Volcano Global releases other vcjobs and leaves this one out for good.

        If a ResourceBinding is deleted between the decision of the dispatcher and the release, the
        dispatcher ignores its name until it restarts (`unSuspendResourceBindingTaskWorker`, 0.3.0).
        """
        return key in self._skipped and self.unanswered(key, now=now)

    def _note_skipped(self, *, now: datetime) -> None:
        """Record the vcjobs whose release is overdue while another vcjob was released."""
        if self._released:
            self._skipped |= {
                key
                for key, (state, since) in self._since.items()
                if state and now >= since + _CYCLES
            }
        self._skipped &= self._since.keys() - self._released
        self._released.clear()

    def _is(self, key: str, state: bool, now: datetime) -> bool:
        known = self._since.get(key)
        return known is not None and known[0] is state and now >= known[1] + _limit(state)

    def _binding(self, _kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a ResourceBinding; a sub-job that scheduling no longer suspends was released.

        A release that follows other sub-jobs shows that the dispatcher works.
        """
        obj = new or old
        if not self._on or obj is None:
            return
        charge = None if new is None else self._charge(new)
        waited = old is not None and at(old, "spec", "suspension", "scheduling") is True
        if charge is not None and charge.sub_job and waited and not charge.waits:
            self._released.add(charge.sub_job)
        if self._charges.put(key_of(obj), charge):
            self._changed()

    def _template(self, kind: str) -> Callable[[EventType, Object | None, Object | None], None]:
        """Return the handler of a kind of template, whose queue may change its binding's charge."""

        def changed(_kind: EventType, old: Object | None, new: Object | None) -> None:
            obj = new or old
            if not self._on or obj is None:
                return
            namespace, _, name = key_of(obj).partition("/")
            binding = self._caches.bindings.get(f"{namespace}/{binding_name(name, kind=kind)}")
            if binding is not None:
                self._binding(EventType.MODIFIED, None, binding)

        return changed

    def _charge(self, binding: Object) -> Charge | None:
        """Return the charge of a ResourceBinding; None if Volcano Global does not count it."""
        if at(binding, "metadata", "deletionTimestamp") is not None:
            return None
        kind, key = workload_of_binding(binding)
        if kind == "Deployment":
            found = self._caches.deployments.get(key)
            return None if found is None else charge_of(binding, queue=_queue(found), sub_job="")
        own = self._caches.job(key) if kind == VCJOB_KIND else None
        job = own or (self._caches.other_jobs.get(key) if kind == VCJOB_KIND else None)
        if job is None:
            return None
        queue = string(at(job, "spec", "queue")) or _DEFAULT_QUEUE
        return charge_of(binding, queue=queue, sub_job=key if own is not None else "")

    def _priority(self, classes: Mapping[str, Object], key: str) -> int | None:
        """Return the priority of a vcjob; None if its PriorityClass does not exist."""
        name = string(at(self._caches.job(key), "spec", "priorityClassName"))
        return None if name and name not in classes else value_of(name, classes)


def _limit(released: bool) -> timedelta:
    return SILENT_AFTER if released else GIVES_BACK_AFTER


def _queue(deployment: Object) -> str:
    """Return the queue of a Deployment, from its pod template."""
    metadata = at(deployment, "spec", "template", "metadata")
    labels, annotations = (
        string_map(at(metadata, "labels")),
        string_map(at(metadata, "annotations")),
    )
    named = labels.get(_QUEUE_NAMES[0]) or annotations.get(_QUEUE_NAMES[0])
    return named or annotations.get(_QUEUE_NAMES[1]) or _DEFAULT_QUEUE


def held_only(workload: QueuedHyperJob | None) -> QueuedHyperJob | None:
    """Return a HyperJob with only the sub-jobs that hold a share: it neither waits nor evicts.

    Its running sub-jobs stay in the account of their queue. None if it holds nothing.
    """
    if workload is None:
        return None
    parts = tuple(part for part in workload.parts if part.name in workload.held)
    if not parts:
        return None
    return replace(workload, minimum=0, parts=parts, preempts=False, estimate=None, variants=())


async def culprit(keys: Sequence[str], fails: Callable[[Sequence[str]], bool]) -> str | None:
    """Return the HyperJob because of which a round fails; None if it fails for another reason.

    `fails` plays a round with some HyperJobs alone. The search plays about log2 of their number,
    and other tasks run between these.
    """
    if fails(()) or not fails(keys):
        return None
    fine, failing = 0, len(keys)  # the first `fine` do not fail together, the first `failing` do
    while failing - fine > 1:
        middle = (fine + failing) // 2
        await asyncio.sleep(0)
        if fails(keys[:middle]):
            failing = middle
        else:
            fine = middle
    return keys[failing - 1]


_PREEMPTED: Final = Counter(
    "hyperjob_preempted_workloads",
    "HyperJobs that make way for a head of line: for its priority (InQueue), its share"
    " (Reclamation), or since it waited long (WaitedLong)",
    ("preempting_queue", "reason"),
    registry=REGISTRY,
)


def count_evicted(state: QueueState, evicted: Iterable[str]) -> None:
    """Count the HyperJobs that the last round let make way for a head of line."""
    eviction = state.eviction
    head = state.entries.get(eviction.head)
    if head is None or head.waiting is None:
        return
    for key in evicted:
        reason = "InQueue" if eviction.victims[key].why else "Reclamation"
        reason = "WaitedLong" if eviction.rank is Rank.LATE else reason
        _PREEMPTED.labels(head.waiting.queue, reason).inc()
