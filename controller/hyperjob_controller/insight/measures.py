"""The metrics of passes, and those that are computed at a scrape, and the debug pages.

Those of passes come from the difference of two statuses and from successful actions.

A pass without a change changes no metric. Pure, except for `Meter`, which sets the metrics.
"""

from collections import Counter as Numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from hyperjob_controller.members.reader import Members
from hyperjob_controller.memory import Memory
from hyperjob_controller.wall import Wall
from hyperjob_core.api.meta import Object
from hyperjob_core.api.overlay import shape_of, size_in, sizes_of, taken, wanted_of
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import at, count, mapping, objects, string, timestamp
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.renewals import LONGEST, parse
from hyperjob_core.registry import REGISTRY, filled
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import Cluster, HyperJob
from hyperjob_engine.model.planned import Action, CreateChild, OpenGate, Plan
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import Resources, is_counted
from hyperjob_engine.status.jobs import PLACED
from hyperjob_engine.status.phase import STARTED, TRAINS
from hyperjob_queueing.queues import IMPLICIT, ROOT
from hyperjob_queueing.state import QueueState

if TYPE_CHECKING:
    from hyperjob_core.telemetry.endpoints import Handler

_SIZES: Final = ("below", "wanted", "beyond")

_NO_ROOM: Final = (Reason.INSUFFICIENT_CAPACITY, Reason.EXCEEDS_CLUSTERS, Reason.NO_MATCHING_NODE)

_CHANGES: Final = frozenset({Chosen.GREW, Chosen.SPARED, Chosen.LEFT})
_BUCKETS: Final = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 10800, 43200, 86400)
_QUEUE_WAIT: Final = Histogram(
    "hyperjob_queue_wait_seconds",
    "Time from the creation of a HyperJob until enough of its sub-jobs are admitted to start",
    ("queue",),
    buckets=_BUCKETS,
    registry=REGISTRY,
)
_GANG_WAIT: Final = Histogram(
    "hyperjob_gang_wait_seconds",
    "Time from the first admitted sub-job until the gang starts (opened) or releases its quota"
    " (gave_back)",
    ("outcome",),
    buckets=_BUCKETS,
    registry=REGISTRY,
)
_PLACEMENTS: Final = Counter(
    "hyperjob_placement_attempts_total",
    "Reconciliations that placed all waiting sub-jobs (placed), or not all (no_room)",
    ("result",),
    registry=REGISTRY,
)
_RESTARTS: Final = Counter(
    "hyperjob_restarts_total", "Restarts that count against maxRestarts", registry=REGISTRY
)
_ATTEMPTS: Final = Counter(
    "hyperjob_job_attempts_total", "Sub-jobs created again, for any reason", registry=REGISTRY
)
_FINISHED: Final = Counter(
    "hyperjob_finished_total", "HyperJobs that ended, by phase", ("phase",), registry=REGISTRY
)
_REFUSALS: Final = Counter(
    "hyperjob_refusals_total",
    "Objects of sub-jobs that the API server refused, by reason",
    ("reason",),
    registry=REGISTRY,
)
_RESIZED: Final = Counter(
    "hyperjob_resized_total",
    "Changes of the size of a HyperJob that has had room, by reason: it grew (Grew), made way"
    " (MadeWay), or goes on with what a restart left (LargestThatIsLeft)",
    ("reason",),
    registry=REGISTRY,
)
# An alert needs a series before its first count.
for _family, _values in (
    (_QUEUE_WAIT, ("default",)),
    (_GANG_WAIT, ("opened", "gave_back")),
    (_PLACEMENTS, ("placed", "no_room")),
    (_FINISHED, (Phase.COMPLETED, Phase.FAILED)),
    (_RESIZED, sorted(_CHANGES)),
    (_REFUSALS, ("BadRequest", "Forbidden", "Invalid", "NotFound")),
):
    for _value in _values:
        _family.labels(_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """The events of one write of a status; times in seconds, None if there is no such event."""

    queue_wait: float | None = None
    given_back_after: float | None = None
    restarts: int = 0
    attempts: int = 0
    finished: str = ""
    resized: str = ""


def change_of(hyperjob: HyperJob, new: Object, *, now: datetime) -> StatusChange:
    """Return the difference between the old status of a HyperJob and the written one."""
    old = hyperjob.status
    phase, before = (string(at(status, "state", "phase")) for status in (new, old))
    started = not old.get("startTime") and phase in STARTED
    gave_back = count(at(new, "gang", "attempts")) > count(at(old, "gang", "attempts"))
    earlier = {job.get("name"): count(job.get("attempt")) for job in objects(old.get("jobs"))}
    attempts = (
        count(job.get("attempt")) - earlier.get(job.get("name"), 0)
        for job in objects(new.get("jobs"))
    )
    ended = phase != before and phase in set(Phase) and Phase(phase).is_terminal
    return StatusChange(
        queue_wait=_since(hyperjob.created, now) if started else None,
        given_back_after=_waited(hyperjob, now=now) if gave_back else None,
        restarts=max(0, count(new.get("restarts")) - count(old.get("restarts"))),
        attempts=sum(max(0, more) for more in attempts),
        finished=phase if ended else "",
        resized=_resized(old, new) if new.get("alternatives") else "",
    )


def _resized(old: Object, new: Object) -> str:
    """Return why a HyperJob that has had room has another size; empty if it has the same."""
    had = taken(old)
    sizes = [each for name, each in taken(new).items() if each.name != had.get(name, each).name]
    return next((each.reason for each in sizes if each.reason in _CHANGES), "")


def opened_after(hyperjob: HyperJob, done: Iterable[Action], *, now: datetime) -> float | None:
    """Return the time from the first admission to the opening of a gang's gates; None if none."""
    if not any(isinstance(action, OpenGate) for action in done):
        return None
    return _waited(hyperjob, now=now)


def placed(decided: Plan) -> bool | None:
    """Return whether a pass placed all missing sub-jobs; None if it had none to place."""
    if decided.waits_for_capacity or at(decided.status, "state", "reason") in _NO_ROOM:
        return False
    made = (action for action in decided.actions if isinstance(action, CreateChild))
    return True if any(action.job is not None for action in made) else None


class Meter:
    """Counts passes, and the HyperJobs and sub-jobs of each phase."""

    def __init__(self) -> None:
        self.phases: Numbers[str] = Numbers({str(phase): 0 for phase in Phase})
        self.job_phases: Numbers[str] = Numbers()
        self.sizes: Numbers[str] = Numbers(dict.fromkeys(_SIZES, 0))
        self.reporting = 0

    def placed(self, decided: Plan) -> None:
        """Count whether a pass found places."""
        found = placed(decided)
        if found is not None:
            _PLACEMENTS.labels("placed" if found else "no_room").inc()

    def carried_out(self, hyperjob: HyperJob, done: Iterable[Action], *, now: datetime) -> None:
        """Observe the wait of a gang whose gates were opened."""
        waited = opened_after(hyperjob, done, now=now)
        if waited is not None:
            _GANG_WAIT.labels("opened").observe(waited)

    def written(self, hyperjob: HyperJob, new: Object, *, now: datetime) -> None:
        """Count the events of a written status."""
        change = change_of(hyperjob, new, now=now)
        if change.queue_wait is not None:
            _QUEUE_WAIT.labels(string(new.get("queue"))).observe(change.queue_wait)
        if change.given_back_after is not None:
            _GANG_WAIT.labels("gave_back").observe(change.given_back_after)
        _RESTARTS.inc(change.restarts)
        _ATTEMPTS.inc(change.attempts)
        if change.resized:
            _RESIZED.labels(change.resized).inc()
        if change.finished:
            _FINISHED.labels(change.finished).inc()

    def refused(self, reason: str) -> None:
        """Count an object that the API server refused."""
        _REFUSALS.labels(reason).inc()

    def seen(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Update the phases of HyperJobs and sub-jobs; a handler of the HyperJob informer."""
        after = None if kind is EventType.DELETED else new
        before, phases = _phases(old), _phases(after)
        self.reporting += _reports(after) - _reports(old)
        if before[0] != phases[0]:
            self.phases.subtract(before[0])
            self.phases.update(phases[0])
        if before[1] != phases[1]:
            self.job_phases.subtract(before[1])
            self.job_phases.update(phases[1])
        self.sizes.subtract(_sizes(old))
        self.sizes.update(_sizes(after))


def _sizes(hyperjob: Object | None) -> list[str]:
    """Return how the size of a HyperJob that runs compares with its wish."""
    status = mapping(at(hyperjob, "status"))
    if not status.get("alternatives") or at(status, "state", "phase") not in TRAINS:
        return []
    chosen, found = {name: each.name for name, each in taken(status).items()}, []
    for job in objects(at(hyperjob, "spec", "replicatedJobs")):
        name = chosen.get(string(job.get("name")), "")
        shape, size = shape_of(job, name), size_in(name)
        if size and sizes_of(shape):
            wanted = wanted_of(shape)
            found.append(_SIZES[(size > wanted) - (size < wanted) + 1])
    return found


def _phases(hyperjob: Object | None) -> tuple[list[str], list[str]]:
    """Return the phase of a HyperJob, if there is one, and those of its sub-jobs."""
    if hyperjob is None:
        return [], []
    phase = string(at(hyperjob, "status", "state", "phase")) or str(Phase.PENDING)
    jobs = objects(at(hyperjob, "status", "jobs"))
    return [phase], [string(job.get("phase")) for job in jobs]


def _reports(hyperjob: Object | None) -> bool:
    return bool(at(hyperjob, "status", "training"))


def _waited(hyperjob: HyperJob, *, now: datetime) -> float:
    """Return the time since the first present sub-job was admitted; 0 if none was recorded."""
    admitted = (
        record.last_transition_time
        for record in hyperjob.records.values()
        if record.phase == PLACED and record.last_transition_time
    )
    return _since(min(admitted, default=""), now)


def _since(text: str, now: datetime) -> float:
    moment = timestamp(text)
    return max(0.0, (now - moment).total_seconds()) if moment is not None else 0.0


def _gauge(name: str, text: str, label: str, numbers: Mapping[str, float]) -> Metric:
    """Return a gauge with one label and its present numbers."""
    samples = (((value,), number) for value, number in numbers.items())
    return filled(Gauge(name, text, labels=(label,)), samples)


def queue_metrics(state: QueueState | None) -> Iterator[Metric]:
    """Yield the HyperJobs of each queue, and its share and use of extended resources."""
    entries = () if state is None else state.entries.values()
    waits = Numbers(entry.waiting.queue for entry in entries if entry.waiting is not None)
    holds = Numbers(queue for entry in entries for queue in entry.queues)
    tree = None if state is None else state.usage.tree
    queues = () if tree is None else tree.queues.keys() - {ROOT, IMPLICIT}
    for name, text, numbers in (
        ("hyperjob_pending_workloads", "HyperJobs that wait in a queue", waits),
        ("hyperjob_admitted_active_workloads", "HyperJobs that hold a share of a queue", holds),
    ):
        yield _gauge(name, text, "queue", {queue: numbers[queue] for queue in sorted(queues)})
    share, used, borrowed = (
        Gauge(f"hyperjob_queue_resource_{kind}", text, labels=("queue", "resource"))
        for kind, text in (
            ("share", "What a queue is entitled to of a resource while others want theirs"),
            ("usage", "What a queue and its children use of a resource"),
            ("borrowed", "What a queue uses of a resource beyond its share"),
        )
    )
    if state is not None and tree is not None:
        for resource in filter(is_counted, sorted(state.shares.total)):
            entitled = tree.entitled(resource)
            for queue in sorted(queues):
                labels, has = (queue, resource), entitled.get(queue, 0) // NANO
                uses = state.usage.used(queue).get(resource, 0) / NANO
                share.add_metric(labels, has)
                used.add_metric(labels, uses)
                borrowed.add_metric(labels, max(0.0, uses - has))
    yield from (share, used, borrowed)


Accelerators = Callable[[datetime], tuple[Iterable[Cluster], Mapping[str, Resources]]]
"""Returns the clusters, and by name what sub-jobs hold of them that they do not report yet."""


class Scrape(Collector):
    """Computes the metrics of one controller."""

    def __init__(
        self,
        accelerators: Accelerators,
        *,
        meter: Meter,
        mode: Callable[[], str],
        now: Callable[[], datetime],
        scraped: Callable[[], None] = lambda: None,
        queues: Callable[[], QueueState | None] = lambda: None,
    ) -> None:
        """Compute from `accelerators`, `mode`, and the changes that `meter` saw."""
        self._accelerators = accelerators
        self._meter = meter
        self._mode = mode
        self._now = now
        self._scraped = scraped
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its present samples."""
        self._scraped()  # after the counters of modules, which are registered first
        meter, text = self._meter, "HyperJobs whose programs have reported progress"
        yield Gauge("hyperjob_training_reporting", text, value=meter.reporting)
        text = "The present queue admission has the value 1"
        yield _gauge("hyperjob_queue_admission", text, "mode", {self._mode(): 1.0})
        yield _gauge("hyperjob_hyperjobs", "HyperJobs by phase", "phase", meter.phases)
        yield _gauge("hyperjob_jobs", "Sub-jobs by phase", "phase", meter.job_phases)
        text = "Running HyperJobs with bounds of their size, compared with the size that they"
        yield _gauge("hyperjob_elastic_hyperjobs", f"{text} ask for", "size", meter.sizes)
        yield from queue_metrics(self._queues())
        yield from self._devices(self._now())

    def _devices(self, now: datetime) -> Iterator[Metric]:
        """Yield the accelerators by cluster and type."""
        allocatable, free, reserved = (
            Gauge(f"hyperjob_accelerators_{state}", text, labels=("cluster", "type"))
            for state, text in (
                ("allocatable", "Allocatable devices of a cluster"),
                ("free", "Devices that are free for placement"),
                (
                    "reserved",
                    "Devices of placed sub-jobs that the Cluster's status does not include yet",
                ),
            )
        )
        clusters, held = self._accelerators(now)
        for cluster in clusters:
            for name in filter(is_counted, sorted(cluster.allocatable)):
                labels, taken = (cluster.name, name), held.get(cluster.name, {}).get(name, 0)
                allocatable.add_metric(labels, cluster.allocatable[name] / NANO)
                reserved.add_metric(labels, taken / NANO)
            for name in filter(is_counted, sorted(cluster.free)):
                # A reservation and a late summary may count the same pods; no device is negative.
                free.add_metric((cluster.name, name), max(0, cluster.free[name]) / NANO)
        yield from (allocatable, free, reserved)


class Renewals(Collector):
    """Reads the record at each scrape: the kubelet replaces the file when the Secret changes."""

    def __init__(self, file: Path) -> None:
        """`file` need not exist: there are no samples then."""
        self._file = file

    def collect(self) -> Iterator[Metric]:
        """Yield the expiry and the last renewal of each token."""
        try:
            with self._file.open("rb") as file:
                renewals = parse(file.read(LONGEST))
        except OSError:
            renewals = {}
        text = "Expiry of a ServiceAccount's token, in seconds since 1970"
        ends = {name: renewal.expires for name, renewal in renewals.items()}
        yield _gauge("hyperjob_credential_expiry_timestamp_seconds", text, "account", ends)
        text = "Last renewal of a ServiceAccount's token, in seconds since 1970"
        last = {name: renewal.renewed for name, renewal in renewals.items()}
        yield _gauge("hyperjob_credential_renewed_timestamp_seconds", text, "account", last)


_FORM = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def debug_routes(
    memory: Memory, wall: Wall, *, now: Callable[[], datetime], members: Members | None = None
) -> "dict[str, Handler]":
    """Return the handlers by path."""
    from aiohttp import web  # a slow import: not for `hyperjob plan`

    async def show_members(_request: web.Request) -> web.StreamResponse:
        body = orjson.dumps({} if members is None else members.state(now()), option=_FORM)
        return web.Response(body=body, content_type="application/json")

    async def remember(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"{memory}\nIncidents: {wall}\n")

    return {"/debug/members": show_members, "/debug/memory": remember}
