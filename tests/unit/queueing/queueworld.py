"""Clusters, queues and HyperJobs of given lengths, run against the queue state as time passes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hyperjob_core.api.quantity import NANO
from hyperjob_engine.model.observed import Cluster, Observed, QueueVerdict
from hyperjob_engine.model.subjobs import Choice, choosing
from hyperjob_engine.resources import Resources, parse_resources, subtract, total
from hyperjob_queueing.evict import evicted_for
from hyperjob_queueing.queues import Queue, parse_queue
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import QueueState, Settings, admitted, new_state, set_queues, update
from hyperjob_queueing.verdict import choice_in, verdict_of
from hyperjob_queueing.workload import QueuedHyperJob, QueuedSubJob
from tests.unit.engine.builders import GPU, NOW, Object, cluster, request

LAG = timedelta(seconds=30)


def queue(name: str, *, gpus: int | None = None, state: str = "Open", **spec: object) -> Queue:
    """Read a Queue document; `gpus` is its capability."""
    if gpus is not None:
        spec["capability"] = {GPU: str(gpus)}
    for field_ in ("guarantee", "deserved"):
        if field_ in spec:
            amount = {GPU: str(spec[field_])}
            spec[field_] = {"resource": amount} if field_ == "guarantee" else amount
    document: Object = {"metadata": {"name": name}, "spec": spec, "status": {"state": state}}
    return parse_queue(document)


def one_queue() -> QueueState:
    """Make the state of the engine with the Queue `default` alone."""
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default")])
    return state


def decided(state: QueueState, seen: Observed) -> Observed:
    """Let the queues decide about a HyperJob; return it as its next pass has it."""
    key = f"{seen.hyperjob.namespace}/{seen.hyperjob.name}"
    update(state, key, unit_of(seen), now=NOW)
    schedule(state, seen.clusters, now=NOW)
    chosen = choosing(seen.hyperjob, choice_in(state, key))
    return replace(seen, hyperjob=chosen, verdict=verdict_of(state, key))


def making_way(state: QueueState) -> dict[str, Choice]:
    """Return those that make way, each with the size that it takes."""
    return {key: each.size for key, each in state.eviction.victims.items()}


def unit(
    name: str,
    *gpus: int,
    queue: str = "default",
    queues: tuple[str, ...] = (),
    priority: int = 0,
    age: int = 0,
    minimum: int | None = None,
    max_domains: int | None = None,
    only_on: tuple[str, ...] = (),
    everything: int = 0,
) -> QueuedHyperJob:
    """Make a HyperJob with a sub-job for each number of GPUs; the smaller `age`, the older.

    The GPUs are those of the pods that start together, `everything` those of all pods.
    """
    whole: Resources = {GPU: everything * NANO} if everything else {}
    parts = tuple(
        QueuedSubJob(
            queue=queues[index] if queues else queue,
            request=replace(
                request(f"{name}-{index}", number, preferred=only_on, required=bool(only_on)),
                everything=whole,
            ),
        )
        for index, number in enumerate(gpus)
    )
    return QueuedHyperJob(
        key=f"ns/{name}",
        uid=f"uid of {name}",
        created=f"2026-01-02T02:{age // 60:02}:{age % 60:02}Z",
        priority=priority,
        minimum=len(parts) if minimum is None else minimum,
        max_domains=max_domains,
        parts=parts,
    )


@dataclass
class QueueWorld:
    """Everything granted runs at once, where it was promised, for as long as `lengths` says."""

    gpus: dict[str, int]
    lengths: dict[str, int] = field(default_factory=dict)
    now: datetime = NOW
    state: QueueState = field(default_factory=lambda: new_state(Settings(lag=LAG)))
    units: dict[str, QueuedHyperJob] = field(default_factory=dict)
    ends: dict[str, datetime] = field(default_factory=dict)
    started: dict[str, datetime] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    shows_after: timedelta = timedelta()
    leaving: list[tuple[datetime, str, Resources]] = field(default_factory=list)
    reclaimed: list[str] = field(default_factory=list)
    settling: dict[str, int] = field(default_factory=dict)

    def set_queues(self, *queues: Queue) -> None:
        set_queues(self.state, queues)

    def submit(self, *units: QueuedHyperJob) -> None:
        for each in units:
            self.units[each.key] = each
            update(self.state, each.key, each, now=self.now)

    def clusters(self) -> list[Cluster]:
        held: dict[str, list[Resources]] = {}
        ending: dict[str, list[Resources]] = {}
        for each in self.units.values():
            for part in each.parts:
                if part.name in each.made:
                    held.setdefault(each.clusters[part.name], []).append(part.request.demand)
        for until, where, demand in self.leaving:
            if self.now < until:
                held.setdefault(where, []).append(demand)
                ending.setdefault(where, []).append(demand)
        found = []
        for name, gpus in self.gpus.items():
            made = cluster(name, gpus)
            others = parse_resources({GPU: str(self.foreign.get(name, 0))})
            free = subtract(made.free, total((others, *held.get(name, ()))))
            leaving = {"": total(ending[name])} if name in ending else {}
            twice = parse_resources({GPU: str(self.settling.get(name, 0))})
            free = subtract(free, twice)
            settling = twice if name in self.settling else {}
            made = replace(made, free=free, allocatable=made.free, ending=leaving)
            found.append(replace(made, settling=settling))
        return found

    def round(self) -> list[str]:
        """Play a round, of which nothing follows yet; return those that it wakes."""
        return schedule(self.state, self.clusters(), now=self.now).keys

    def decide(self) -> list[str]:
        """Play a round; run what it granted, and end what is to give back."""
        woken = self.round()
        for key in woken:
            if evicted_for(self.state, key):
                self.give_back(key)
            else:
                self.make(key)
        return woken

    def give_back(self, key: str) -> None:
        """Take down a HyperJob, which queues again; its clusters show that `shows_after` later."""
        known = self.units[key]
        for part in known.parts:
            if part.name in known.made:
                gone = self.now + self.shows_after, known.clusters[part.name], part.request.demand
                self.leaving.append(gone)
        self.reclaimed.append(key[3:])
        self.ends.pop(key)
        self.units[key] = replace(known, held=frozenset(), made=frozenset(), clusters={})
        update(self.state, key, self.units[key], now=self.now)

    def make(self, key: str) -> None:
        """Make all of a HyperJob that may be made."""
        reserved_clusters = self.state.entries[key].reserved_clusters
        known = self.units[key]
        names = admitted(self.state, key)
        self.units[key] = replace(
            known,
            held=names,
            made=names,
            clusters={
                **known.clusters,
                **{name: reserved_clusters[name] for name in names if name in reserved_clusters},
            },
        )
        update(self.state, key, self.units[key], now=self.now)
        self.started.setdefault(key, self.now)
        self.ends.setdefault(key, self.now + timedelta(seconds=self.lengths.get(key[3:], 3600)))

    def end(self, key: str) -> None:
        del self.units[key]
        self.ends.pop(key, None)
        update(self.state, key, None, now=self.now)

    def advance(self) -> list[str]:
        """Go on to the next end of a HyperJob; return who has ended then."""
        self.now = min(self.ends.values())
        ended = [key for key, end in self.ends.items() if end <= self.now]
        for key in ended:
            self.end(key)
        return ended

    def used(self, name: str) -> int:
        return self.state.usage.used(name).get(GPU, 0) // 10**9

    def running(self) -> set[str]:
        return {key[3:] for key, each in self.units.items() if each.made}

    def verdict(self, name: str) -> QueueVerdict:
        return verdict_of(self.state, f"ns/{name}")

    def message(self, name: str) -> str:
        verdict = self.verdict(name)
        entry = self.state.entries.get(f"ns/{name}")
        if entry is not None and entry.waiting is not None:
            entry.note_written(verdict.message_facts, now=self.now)
        return verdict.message


def world(units: Iterable[QueuedHyperJob] = (), *queues: Queue, **gpus: int) -> QueueWorld:
    """Make a world with clusters of so many GPUs; without queues there is `default`."""
    made = QueueWorld(gpus or {"a": 32})
    made.set_queues(*(queues or (queue("default"),)))
    made.submit(*units)
    return made


def ran(
    units: Iterable[QueuedHyperJob] = (),
    *queues: Queue,
    shows_after: timedelta = timedelta(),
    **gpus: int,
) -> QueueWorld:
    """Make a world in which HyperJobs have started and run for a minute, if they had room."""
    made = world(units, *queues, **gpus)
    made.decide()
    made.now += 2 * LAG
    return made


def after(
    running: Iterable[QueuedHyperJob], late: Iterable[QueuedHyperJob], *queues: Queue, **gpus: int
) -> QueueWorld:
    """Let HyperJobs run for a minute, then submit others, and play a round."""
    made = ran(running, *queues, **gpus)
    made.submit(*late)
    made.decide()
    return made
