"""Which alternatives a round of the queue engine chooses for a HyperJob that holds nothing."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.resources import PODS
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.round import schedule
from hyperjob_queueing.sizes import template_of
from hyperjob_queueing.state import Settings, new_state, set_queues, update
from hyperjob_queueing.verdict import verdict_of
from hyperjob_queueing.workload import QueuedHyperJob, QueuedSubJob
from tests.unit.engine.builders import NOW, Object, cluster, group, hyperjob, observed
from tests.unit.queueing.queueworld import LAG, queue

HOUR = timedelta(hours=1)


EXAMPLES = int(os.environ.get("HYPERJOB_CHOICES", "150"))
TYPES = ("a", "b", "c")
STEPS = 36000
SPEEDS = (1, 2, 4, 5, 8, 10)


@dataclass(frozen=True)
class Shape:
    """An alternative: sub-jobs of a size on a type, its measured speed, and earlier runs of it.

    With bounds it can train with `least` of its `number` of sub-jobs.
    """

    kind: str
    size: int
    number: int
    least: int
    speed: int | None
    runs: tuple[int, ...]

    def overlay(self, *, alone: bool, bounds: bool) -> Object:
        amounts = {self.kind: str(self.size)}
        resources = {"requests": amounts, "limits": amounts}
        containers = [{"name": "main", "resources": resources}]
        tasks = [{"name": "worker", "template": {"spec": {"containers": containers}}}]
        made: Object = {"templateSpec": {"tasks": tasks}}
        if alone:
            return made
        return made | {"replicas": self.number} | ({"minReplicas": self.least} if bounds else {})


@dataclass(frozen=True)
class Waits:
    """A HyperJob that waits with alternatives, and what it has trained of its steps, if it said.

    With `alone` sub-jobs, of a quorum, each has an alternative for itself; `mixed` are the speeds
    that were measured with different ones side by side. With `bounds` their number is open too.
    """

    shapes: tuple[Shape, ...]
    step: int | None
    alone: int
    mixed: tuple[int | None, ...]
    bounds: bool

    @property
    def options(self) -> list[tuple[int, ...]]:
        """Return the alternative of each sub-job, in order of preference: of all that it wants."""
        if not self.alone:
            return [(at,) * each.number for at, each in enumerate(self.shapes)]
        return self.mixes(self.alone)

    def mixes(self, number: int) -> list[tuple[int, ...]]:
        every = product(range(len(self.shapes)), repeat=number)
        return sorted({tuple(sorted(each)) for each in every})

    def in_bounds(self, has_room: Callable[[tuple[int, ...]], bool]) -> list[tuple[int, ...]]:
        """Return the options with as many sub-jobs as have room, else the fewest."""
        if not self.bounds:
            return self.options
        if self.alone:
            least = min(self.alone, self.shapes[0].least)
            each = [mix for n in range(self.alone, least - 1, -1) for mix in self.mixes(n)]
            return [next(filter(has_room, each), (0,) * least)]
        found = []
        for at, shape in enumerate(self.shapes):
            tried = [(at,) * number for number in range(shape.number, shape.least - 1, -1)]
            found.append(next(filter(has_room, tried), tried[-1]))
        return found

    def name(self, option: tuple[int, ...]) -> str:
        return f"{len(option)} {option[0]}" if self.bounds else str(option[0])

    def sub_jobs(self, option: tuple[int, ...]) -> list[Shape]:
        return [self.shapes[at] for at in option]

    def raw(self, name: str, *, chosen: int | None = None, **status: Any) -> Object:
        """Make the HyperJob; `chosen`: all its sub-jobs have that alternative."""
        alone = bool(self.alone)
        many = [
            {"name": str(at), **each.overlay(alone=alone, bounds=self.bounds)}
            for at, each in enumerate(self.shapes)
        ]
        if chosen is not None:
            number = self.alone or self.shapes[chosen].number
            taken = {"replicatedJob": "t", "name": self.name((chosen,) * number)}
            status["alternatives"] = [taken]
            status["jobs"] = [
                {
                    "name": f"{name}-t-{i}",
                    "replicatedJob": "t",
                    "index": i,
                    "alternative": str(chosen),
                }
                for i in range(self.alone)
            ]
        spec: Object = {"quorum": 1} if alone else {}
        own: Object = {"replicas": self.alone} if alone else {"replicas": 1}
        if alone and self.bounds:
            own["minReplicas"] = min(self.alone, self.shapes[0].least)
        made = hyperjob(
            group("t", gpus=1, alternatives=many, **own),
            name=name,
            status=status,
            **spec,
        )
        image = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]["spec"]
        image["containers"][0] = {"name": "main", "image": name}
        made["metadata"] |= {
            "uid": f"uid of {name}",
            "creationTimestamp": f"2026-01-02T03:00:0{name}Z",
        }
        return made

    def now(self, name: str) -> Object:
        status: Object = {}
        if self.step is not None:
            status["training"] = {"step": self.step, "steps": STEPS}
            status["speeds"] = [
                {"alternatives": self.text(option), "stepsPerSecond": str(speed)}
                for option in self.options
                if (speed := self.speed(option)) is not None
            ]
        return self.raw(name, **status)

    def text(self, option: tuple[int, ...]) -> str:
        counts = sorted((-option.count(at), at) for at in set(option))
        alone = " + ".join(f"{-number} {at}" for number, at in counts)
        return f"t={alone if self.alone else self.name(option)}"

    def speed(self, option: tuple[int, ...]) -> int | None:
        if len({*option}) == 1:
            return self.shapes[option[0]].speed
        return self.mixed[self.options.index(option)]

    def left(self, option: tuple[int, ...]) -> timedelta | None:
        """Say by hand how long it still runs with some alternatives; without a time the slowest.

        With bounds a time is in proportion; then room alone decides about sub-jobs of a quorum.
        """
        if self.bounds and self.alone:
            return None
        if self.bounds:
            whole = self.shapes[option[0]].number
            found = replace(self, bounds=False).left((option[0],) * whole)
            return None if found is None else found * (whole / len(option))
        part, speed = 1.0 if self.step is None else 1 - self.step / STEPS, self.speed(option)
        if speed is not None and self.step is not None:
            return timedelta(seconds=STEPS * part / speed)
        if len({*option}) > 1:
            lefts = [self.left((at,) * len(option)) for at in set(option)]
            known = [each for each in lefts if each is not None]
            return max(known) if len(known) == len(lefts) else None
        runs = self.shapes[option[0]].runs
        return sorted(runs)[len(runs) // 2] * part * HOUR if runs else None


@dataclass(frozen=True)
class Runs:
    """A HyperJob that has run for some hours on a cluster, and earlier runs of its template."""

    cluster: int
    size: int
    ran: int
    runs: tuple[int, ...]


def completed(raw: Object, took: int, number: int) -> Object:
    """Make an earlier run of a HyperJob that took so many hours, in the order of `number`."""
    raw["metadata"]["uid"] = f"run {number:03}"
    ended = rfc3339(NOW - 9 * HOUR + number * timedelta(minutes=1))
    raw["status"] |= {
        "state": {"phase": "Completed", "lastTransitionTime": ended},
        "goodput": {"milliseconds": {"productive": took * 3600_000}},
    }
    return raw


def expected(runs: Sequence[int], ran: int) -> int | None:
    longer = sorted(took for took in runs if took > ran)
    return longer[len(longer) // 2] if longer else None


def starts_at(
    free: dict[str, int],
    kinds: dict[str, str],
    ends: list[tuple[datetime, str, int]],
    sub_jobs: list[Shape],
) -> datetime | None:
    """Try all moments: when do all sub-jobs have room on clusters of their types?"""
    for moment in sorted({NOW, *(at for at, _, _ in ends)}):
        left = dict(free)
        for at, where, amount in ends:
            left[where] += amount if at <= moment else 0
        if room_for(left, kinds, sub_jobs):
            return moment
    return None


def room_for(free: dict[str, int], kinds: dict[str, str], sub_jobs: list[Shape]) -> bool:
    """Try all clusters for each sub-job."""
    if not sub_jobs:
        return True
    first, *others = sub_jobs
    return any(
        room_for({**free, name: free[name] - first.size}, kinds, others)
        for name in free
        if kinds[name] == first.kind and free[name] >= first.size
    )


def taken_by_hand(
    waits: Waits,
    free: dict[str, int],
    whole: dict[str, int],
    kinds: dict[str, str],
    ends: list[tuple[datetime, str, int]],
) -> tuple[tuple[int, ...], Chosen | None]:
    """Choose by the expected ends of all alternatives that can ever run, else by room and order.

    Return the reason too, of a choice among several.
    """
    sub_jobs = waits.sub_jobs
    options = waits.in_bounds(lambda each: room_for(free, kinds, sub_jobs(each)))
    if len(options) == 1:
        return options[0], None
    able = [each for each in options if room_for(whole, kinds, sub_jobs(each))]
    lefts = {each: waits.left(each) for each in able}
    if len(able) > 1 and all(each is not None for each in lefts.values()):
        starts = {each: starts_at(free, kinds, ends, sub_jobs(each)) for each in able}
        timed = [
            (start + left, options.index(each))
            for each in able
            if (start := starts[each]) is not None and (left := lefts[each]) is not None
        ]
        if timed:
            return options[min(timed)[1]], Chosen.EARLIEST_END
    now = [each for each in able if room_for(free, kinds, sub_jobs(each))]
    return next(iter(now or able), options[0]), Chosen.FIRST_WITH_ROOM if now else Chosen.FIRST


past = st.lists(st.integers(1, 12), max_size=2).map(tuple)
shapes = st.builds(
    Shape,
    kind=st.sampled_from(TYPES),
    size=st.sampled_from([2, 4, 8]),
    number=st.integers(1, 3),
    least=st.integers(1, 3),
    speed=st.sampled_from([None, *SPEEDS]),
    runs=past,
).map(lambda each: replace(each, least=min(each.least, each.number)))
waiting_ones = st.builds(
    Waits,
    shapes=st.lists(shapes, min_size=2, max_size=3).map(tuple),
    step=st.sampled_from([None, 0, STEPS // 2, STEPS // 2]),
    alone=st.sampled_from([0, 1, 2, 3]),
    mixed=st.lists(st.sampled_from([None, *SPEEDS]), min_size=10, max_size=10).map(tuple),
    bounds=st.booleans(),
)
running_ones = st.builds(
    Runs,
    cluster=st.integers(0, 3),
    size=st.sampled_from([2, 4, 8]),
    ran=st.integers(0, 6),
    runs=past,
)


@settings(max_examples=EXAMPLES)
@given(
    sizes=st.lists(
        st.tuples(st.sampled_from(TYPES), st.sampled_from([4, 8, 16])), min_size=4, max_size=4
    ),
    running=st.lists(running_ones, min_size=3, max_size=3),
    waiting=st.lists(waiting_ones, min_size=3, max_size=3),
)
def test_the_choice_is_that_of_all_moments_and_alternatives_tried_one_by_one(
    sizes: list[tuple[str, int]], running: list[Runs], waiting: list[Waits]
) -> None:
    """Speeds were measured, and completed runs of templates and of the queue say when others end.

    HYPERJOB_CHOICES is the number of cases, 150 unless set.
    """
    kinds = {f"c{place}": kind for place, (kind, _) in enumerate(sizes)}
    whole = {f"c{place}": number for place, (_, number) in enumerate(sizes)}
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default")])
    took: list[int] = []
    for place, known in enumerate(running):
        for each in known.runs:
            raw = hyperjob(group("t", templateSpec=template(image=f"r{place}")))
            state.past.note(completed(raw, each, len(took)))
            took.append(each)
    for place, waits in enumerate(waiting, start=3):
        for at, shape in enumerate(waits.shapes):
            for each in shape.runs:
                raw = waits.raw(str(place), chosen=at)
                state.past.note(completed(raw, each, len(took)))
                took.append(each)
    latest = took[-16:]
    free, ends = dict(whole), []
    for place, known in enumerate(running):
        name, job = f"c{known.cluster}", str(place)
        if free[name] < known.size:
            continue
        free[name] -= known.size
        raw = hyperjob(group("t", templateSpec=template(image=f"r{place}")))
        part = QueuedSubJob(
            queue="default",
            request=PlacementRequest(
                name=f"{job}-0", group="t", demand={kinds[name]: known.size * NANO}
            ),
        )
        held = frozenset({part.name})
        made = QueuedHyperJob(
            key=f"default/{job}",
            minimum=1,
            parts=(part,),
            template=template_of(parse_hyperjob(raw)),
            since=rfc3339(NOW - known.ran * HOUR),
            held=held,
            made=held,
            clusters={part.name: name},
        )
        update(state, made.key, made, now=NOW)
        hours = expected(known.runs, known.ran) or expected(latest, known.ran)
        if hours is not None:
            ends.append((NOW + (hours - known.ran) * HOUR, name, known.size))
    clusters = tuple(
        replace(
            cluster(name, 0),
            free={kinds[name]: free[name] * NANO, PODS: 99 * NANO},
            allocatable={kinds[name]: whole[name] * NANO, PODS: 99 * NANO},
        )
        for name in whole
    )
    for place, waits in enumerate(waiting, start=3):
        seen = observed(waits.now(str(place)), clusters=clusters)
        update(state, f"default/{place}", unit_of(seen, state.past.took), now=NOW)
    schedule(state, clusters, now=NOW)
    for place, waits in enumerate(waiting, start=3):
        taken, why = taken_by_hand(waits, free, whole, kinds, ends)
        entry, sub_jobs = state.entries[f"default/{place}"], waits.sub_jobs(taken)
        names = {f"t/{index}": str(at) for index, at in enumerate(taken)} if waits.alone else {}
        if waits.bounds or not waits.alone:
            names["t"] = f"{len(taken)} 0" if waits.alone else waits.name(taken)
        assert dict(entry.unit.choice) == names
        assert why in (None, verdict_of(state, f"default/{place}").chosen)
        assert bool(entry.holding) is room_for(free, kinds, sub_jobs)
        left = waits.left(taken)
        of_template = waits.alone == len(taken) and len({*taken}) == 1 and waits.bounds
        hours = expected(sub_jobs[0].runs, 0) if of_template else None
        hours = hours or expected(latest, 0)
        ends_in = left if left is not None else None if hours is None else hours * HOUR
        for part, where in entry.holding.values():
            size = sub_jobs[int(part.name.rpartition("-")[2])].size
            assert part.request.demand == {kinds[where]: size * NANO, PODS: NANO}
            free[where] -= size
            if ends_in is not None:
                ends.append((NOW + ends_in, where, size))


def template(*, image: str) -> Object:
    return {"tasks": [{"name": "t", "template": {"spec": {"containers": [{"image": image}]}}}]}
