"""Rounds in which queues want back what others borrowed, and half-made HyperJobs hold places."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from hyperjob_core.text import shortened
from hyperjob_engine.model.nodes import Grade, Nodes, PodGroup
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.queueing.queues import parse_queue
from hyperjob_engine.queueing.state import Settings, new_state, update
from hyperjob_engine.queueing.workload import QueuedHyperJob, QueuedSubJob
from hyperjob_engine.resources import parse_resources
from tests.unit.controller.builders import GPU, NOW, Object, request
from tests.unit.controller.queueworld import LAG
from tests.unit.recorded.generated import some
from tests.unit.recorded.recording import Case, line
from tests.unit.recorded.rounds import Rounds, decided

STEPS: Final = 8
SHOWN: Final = 150
LEAVES: Final = ("x", "y", "z")
DEMANDS: Final = (
    {GPU: "2"}, {GPU: "4"}, {GPU: "8"}, {GPU: "4", "cpu": "600"}, {"cpu": "300"}, {GPU: "1"},
)  # fmt: skip


@dataclass
class Contest(Rounds):
    """Some sub-jobs of an admitted HyperJob are made later than others, or not at all."""

    made: float = 1.0
    rng: random.Random = field(default_factory=random.Random)
    modelled: str = ""

    def make(self, key: str) -> None:
        super().make(key)
        known = self.units[key]
        made = frozenset(name for name in sorted(known.made) if some(self.rng, self.made))
        self.units[key] = replace(known, made=made, since=f"{self.now:%Y-%m-%dT%H:%M:%SZ}")
        update(self.state, key, self.units[key], now=self.now)

    def clusters(self) -> list[Cluster]:
        return [
            replace(each, nodes=_nodes(each)) if each.name in self.modelled else each
            for each in super().clusters()
        ]


def _nodes(each: Cluster) -> Nodes:
    """Make nodes that have four free GPUs each."""
    gpus = max(0, each.free[GPU])
    four = parse_resources({GPU: "4"})
    grade = Grade(gpus // four[GPU], four, parse_resources({GPU: "5"}))
    return Nodes((grade,), {GPU: gpus}, all_counted=True)


def contest_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"contest {seed}", list(_play(random.Random(f"contest {seed}")))


def _queues(rng: random.Random) -> Iterator[Object]:
    for name in (*LEAVES, "up"):
        spec: Object = {"weight": rng.choice((1, 3)), "reclaimable": some(rng, 0.8)}
        if some(rng, 0.2):
            spec["capability"] = {rng.choice((GPU, "cpu")): str(rng.choice((8, 16)))}
        if some(rng, 0.15):
            spec["guarantee"] = {"resource": {GPU: str(rng.choice((4, 8)))}}
        if some(rng, 0.2):
            spec["deserved"] = {GPU: str(rng.choice((4, 8)))}
        if some(rng, 0.2):
            spec["priority"] = 5
        if some(rng, 0.2):
            spec["dequeueStrategy"] = "fifo"
        spec["parent"] = "root" if name == "up" else rng.choice(("root", "up"))
        yield {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}


def _unit(rng: random.Random, number: int, queue: str) -> QueuedHyperJob:
    name, count = f"j{number}", rng.choice((1, 1, 2, 3, 5))
    kinds = [rng.choice(DEMANDS) for _ in range(1 if some(rng, 0.7) else count)]
    parts = []
    for index in range(count):
        demand = parse_resources({**kinds[index % len(kinds)], "pods": "2"})
        made = request(f"{name}-{index}", group=rng.choice(("g", "g", "h")))
        pods = (PodGroup({key: amount // 2 for key, amount in demand.items()}, 2),)
        preferred = tuple(rng.sample("abc", rng.choice((0, 0, 0, 1, 2))))
        wanted = replace(
            made,
            demand=demand,
            pods=pods,
            preferred=preferred,
            required=bool(preferred) and some(rng, 0.5),
            excluded=frozenset(rng.choice("abc")) if some(rng, 0.1) else frozenset(),
        )
        parts.append(QueuedSubJob(queue=queue, request=wanted, piece=some(rng, 0.05)))
    return QueuedHyperJob(
        key=f"ns/{name}",
        uid=name,
        created=f"2026-01-01T00:00:{rng.choice((number, number, 7)) % 60:02}Z",
        priority=rng.choice((0, 0, 0, 3, 9)),
        minimum=rng.choice((count, count, 1, max(1, count - 1), 0)),
        max_domains=rng.choice((None, None, 1, 2)),
        parts=tuple(parts),
        preempts=some(rng, 0.9),
        kept="" if some(rng, 0.5) else f"{NOW + timedelta(minutes=rng.randint(-9, 9)):%FT%TZ}",
        estimate=timedelta(seconds=rng.choice((60, 600, 4000))) if some(rng, 0.6) else None,
    )


def _told(each: QueuedHyperJob) -> str:
    alike: dict[str, int] = {}
    for part in each.parts:
        asked = {k: v // 10**9 for k, v in part.request.demand.items() if k != "pods"}
        only = "only " if part.request.required else ""
        where = f" {only}on {','.join(part.request.preferred)}" if part.request.preferred else ""
        but = f" but {','.join(part.request.excluded)}" if part.request.excluded else ""
        text = f"{line(asked).replace(GPU, 'gpu')}{where}{but}{' split' if part.piece else ''}"
        alike[text] = alike.get(text, 0) + 1
    rest = [
        f"{name} {value}"
        for name, value in (
            ("priority", each.priority),
            ("maxDomains", each.max_domains),
            ("kept", each.kept[11:]),
            ("runs", each.estimate),
        )
        if value
    ]
    parts = ", ".join(f"{number} x {text}" for text, number in alike.items())
    rest += [] if each.preempts else ["never preempts"]
    queue = each.parts[0].queue
    return f"{each.key[3:]} in {queue}: at least {each.minimum} of {parts} {' '.join(rest)}"


def _play(rng: random.Random) -> Iterator[str]:
    sizes = {name: rng.choice((4, 8, 16)) for name in "abc"[: rng.randint(1, 3)]}
    state = new_state(Settings(lag=LAG, most_in_flight=rng.choice((2, 5, 200, 200))))
    world = Contest(sizes, state=state, made=rng.choice((1.0, 1.0, 0.6)), rng=rng)
    world.modelled = rng.choice(("", "", "a", "abc"))
    world.shows_after = rng.choice((timedelta(), LAG))
    raws = list(_queues(rng))
    limits = f"{state.settings.most_in_flight} in flight, {world.made:.0%} made"
    yield f"{line(sizes)}, {limits}, nodes of {world.modelled or 'none'}"
    for raw in raws:
        yield f"queue {raw['metadata']['name']}: {line(raw['spec']).replace(GPU, 'gpu')}"
    world.set_queues(*map(parse_queue, raws))
    told: dict[str, str] = {}
    number, rich = 0, rng.choice(LEAVES)
    for step in range(STEPS):
        yield f"{step}. {(world.now - NOW).total_seconds():g} s"
        # One queue fills the clusters; then all want their share.
        for _ in range(5 if step == 0 else rng.choice((0, 1, 2))):
            queue = rich if step == 0 else rng.choice(LEAVES)
            made = _unit(rng, number, queue)
            world.lengths[f"j{number}"] = rng.choice((60, 600, 5000))
            world.submit(made)
            yield f"  {_told(made)}"
            number += 1
        if step:
            yield from (f"  {each}" for each in _event(rng, world))
        for _ in range(3):
            before = len(world.reclaimed)
            woken = world.decide()
            if len(world.reclaimed) > before:
                yield f"  gave back {line(world.reclaimed[before:])}"
            yield from (shortened(row, SHOWN) for row in decided(world, woken, told))
            if not woken:
                break
        held = [
            f"{key[3:]} {len(state.entries[key].holding)}" for key in sorted(state.index.holders)
        ]
        more = f", {state.in_flight} in flight" if state.in_flight else ""
        yield f"  held {' '.join(held)}{more}{', reserved' if state.index.missing else ''}"


def _event(rng: random.Random, world: Contest) -> Iterator[str]:
    world.now += timedelta(seconds=rng.choice((0, 1, 5, 29, 30, 31, 60, 600, 3600)))
    match rng.randrange(8):
        case 0 | 1 if world.ends:
            yield f"end {line(world.advance())}"
        case 2:
            world.lost = rng.choice((frozenset(), frozenset({rng.choice(list(world.gpus))})))
            yield f"lost are {sorted(world.lost)}"
        case 3 if running := sorted(key for key, each in world.units.items() if each.made):
            key = rng.choice(running)
            known = world.units[key]
            gone = rng.choice(sorted(known.made))
            world.units[key] = replace(
                known, ended=known.ended | {gone}, made=known.made - {gone}, held=known.held
            )
            update(world.state, key, world.units[key], now=world.now)
            yield f"sub-job {gone} has ended"
        case 4 | 5 if world.units:
            key = rng.choice(sorted(world.units))
            known = world.units[key]
            world.units[key] = replace(
                known,
                priority=rng.choice((known.priority, 9)),
                minimum=rng.choice((known.minimum, 1)),
                kept=f"{world.now:%Y-%m-%dT%H:%M:%SZ}" if some(rng, 0.5) else known.kept,
            )
            update(world.state, key, world.units[key], now=world.now)
            yield f"changed: {_told(world.units[key])}"
        case 6:
            name = rng.choice(list(world.gpus))
            world.foreign[name] = rng.choice((0, 2, 100))
            yield f"others use {world.foreign[name]} of {name}"
