"""Gangs behind queues, ours or Volcano Global's, with Karmada and members in any order."""

import copy
import random
from collections.abc import Iterable, Iterator
from datetime import timedelta

from hyperjob_engine.model.observed import QueueAdmission
from tests.unit.controller.builders import NOW
from tests.unit.controller.gangworld import GangWorld, feasible
from tests.unit.controller.histories import made
from tests.unit.controller.queuedgangs import QueuedGangs
from tests.unit.recorded.generated import some
from tests.unit.recorded.plans import plan_lines
from tests.unit.recorded.recording import Case, line

EVENTS = 40


def history_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"history {seed}")
        mode = list(QueueAdmission)[seed % 3]
        kind = QueuedGangs if mode is QueueAdmission.BUILTIN else GangWorld
        sizes, quotas = [rng.choice((4, 8, 12)) for _ in range(2)], [rng.choice((8, 16))] * 2
        world = kind.of(sizes, quotas, admission=mode)
        rows = [f"clusters of {sizes}, queues of {quotas}"]
        rows.extend(_history(rng, world, sizes, quotas))
        yield f"{mode} {seed}", rows


def _pass(world: GangWorld, name: str, *, dies_after: int | None = None) -> Iterator[str]:
    raw = world.hyperjobs[name]
    old = copy.deepcopy(raw["status"])
    templates = {each["name"]: each["templateSpec"] for each in raw["spec"]["replicatedJobs"]}
    found = list(plan_lines(old, templates, world.work(name, dies_after=dies_after)))
    if len(found) > 1 or dies_after is not None:
        yield f"{name} at {(world.now - NOW).total_seconds():g} s"
        yield from found


def _history(
    rng: random.Random, world: GangWorld, sizes: list[int], quotas: list[int]
) -> Iterator[str]:
    number = 0
    for step in range(EVENTS):
        if number < 4 and (step < 2 or some(rng, 0.1)):
            groups = [
                (rng.randint(1, 3), rng.choice((1, 2, 4)), rng.choice(("q0", "q1")), some(rng, 0.3))
                for _ in range(rng.choice((1, 1, 2)))
            ]
            raw = made(number, (groups, rng.choice((None, None, 1, 2)), rng.choice((None, 1, 2))))
            if feasible(raw, sizes, quotas):
                world.urgency[raw["metadata"]["name"]] = rng.choice((0, 0, 5))
                world.submit(raw)
                yield f"hj{number} asks for {groups} {line(raw['spec'].get('minAvailable'))}"
            number += 1
        yield from _event(rng, world)
        for name in list(world.due):
            if name in world.hyperjobs:
                yield from _pass(world, name)


def _event(rng: random.Random, world: GangWorld) -> Iterator[str]:
    cluster = rng.choice(sorted(world.sizes))
    match rng.randrange(12):
        case 0 | 1:
            world.bind()
            world.schedule()
            world.dispatch()
            for name in world.hyperjobs:
                world.deliver(name)
        case 2 | 3 | 4:
            most = rng.choice((1, 99))
            granted = world.round() if some(rng, 0.5) else world.release(at_most=most)
            world.bind()
            if granted:
                yield f"granted {line(granted)}"
            for name in world.hyperjobs:
                world.deliver(name)
        case 5:
            world.schedule()
            world.dispatch()
        case 6:
            world.foreign[cluster] = rng.choice((0, 2, world.sizes[cluster]))
            world.clusters_change()
            yield f"others use {world.foreign[cluster]} of {cluster}"
        case 7 if some(rng, 0.5):
            world.lost ^= {cluster}
            world.clusters_change()
            yield f"lost are {sorted(world.lost)}"
        case 8 | 9:
            world.now += timedelta(seconds=rng.choice((1, 5, 29, 30, 31, 120, 299, 300, 301)))
            world.finish_jobs()
        case 10 if world.hyperjobs:
            name = rng.choice(sorted(world.hyperjobs))
            yield from _pass(world, name, dies_after=rng.choice((0, 1, 2, None)))
        case _:
            world.delete_ended()
    world.time_is_up()
