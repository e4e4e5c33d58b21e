"""Rounds of the queue engine over generated queues, clusters and waiting HyperJobs."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.queueing.queues import Queue, parse_queue
from hyperjob_engine.queueing.reserve import reserved
from hyperjob_engine.queueing.round import next_change
from hyperjob_engine.queueing.verdict import verdict_of
from hyperjob_engine.queueing.workload import QueuedHyperJob
from hyperjob_engine.reasons.detail import detail_text
from hyperjob_engine.reasons.waiting import wait_text
from tests.unit.controller.builders import GPU, NOW, Object, cluster
from tests.unit.controller.queueworld import LAG, QueueWorld, unit
from tests.unit.recorded.generated import some
from tests.unit.recorded.recording import Case, line

QUEUES = ("x", "y", "z")
STEPS = 9


class Rounds(QueueWorld):
    """Clusters may be lost, and sums say what else they have."""

    lost: frozenset[str] = frozenset()

    def clusters(self) -> list[Cluster]:
        return [
            cluster(each.name, unusable="yes") if each.name in self.lost else each
            for each in super().clusters()
        ]


def _queues(rng: random.Random) -> Iterator[tuple[Object, Queue]]:
    for name in (*QUEUES, "up", "over"):
        if some(rng, 0.02):
            continue
        spec: Object = {"weight": rng.choice((1, 1, 2, 5)), "reclaimable": some(rng, 0.5)}
        if some(rng, 0.25):
            spec["capability"] = {GPU: str(rng.choice((0, 8, 16, 16, 30)))}
        if some(rng, 0.2):
            spec["guarantee"] = {"resource": {GPU: str(rng.choice((2, 8)))}}
        if some(rng, 0.2):
            spec["deserved"] = {GPU: str(rng.choice((4, 12))), "cpu": "4"}
        if some(rng, 0.3):
            spec["priority"] = rng.choice((1, 5))
        if some(rng, 0.3):
            spec["dequeueStrategy"] = rng.choice(("fifo", "traverse"))
        if name in QUEUES:
            spec["parent"] = rng.choice((*("root", "up", "over") * 6, "nowhere"))
        elif name == "up":
            spec["parent"] = rng.choice(("root", "over"))
        elif some(rng, 0.04):
            spec["parent"] = "up"
        marks: Object = {}
        if some(rng, 0.15):
            marks["training.volcano.sh/preemption"] = "disabled"
        if some(rng, 0.15):
            marks["training.volcano.sh/running-estimate"] = "20m"
        state = rng.choice((*("Open",) * 25, "Closed", "Closing", ""))
        raw = {
            "metadata": {"name": name, "annotations": marks},
            "spec": spec,
            "status": {"state": state},
        }
        yield raw, parse_queue(raw)


def _unit(rng: random.Random, name: str, age: int) -> QueuedHyperJob:
    sizes = [rng.choice((1, 2, 4, 4, 8, 8, 12)) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    named = rng.choice(QUEUES)
    mixed = some(rng, 0.15)
    made = unit(
        name,
        *sizes,
        queues=tuple(rng.choice(QUEUES) if mixed else named for _ in sizes),
        priority=rng.choice((0, 0, 0, 5, 10)),
        age=age,
        minimum=rng.randint(1, len(sizes)) if some(rng, 0.3) else None,
        max_domains=rng.choice((None, None, None, 1, 2)),
        only_on=("a",) if some(rng, 0.15) else (),
    )
    if some(rng, 0.2):
        parts = tuple(replace(part, piece=True) for part in made.parts)
        made = replace(made, parts=parts)
    return replace(
        made,
        preempts=some(rng, 0.85),
        since=rng.choice(("", f"2026-01-02T0{age % 3}:00:00Z")),
        kept=rng.choice(("", f"2026-01-02T0{age % 3}:30:00Z")),
        estimate=timedelta(seconds=rng.choice((60, 600, 4000))) if some(rng, 0.5) else None,
    )


def _said(each: QueuedHyperJob) -> str:
    parts = ", ".join(
        f"{part.request.demand[GPU] // 10**9} of {part.queue}{' split' if part.piece else ''}"
        for part in each.parts
    )
    rest: dict[str, Any] = {
        "priority": each.priority,
        "minimum": each.minimum if each.minimum < len(each.parts) else 0,
        "maxDomains": each.max_domains,
        "only on": each.parts[0].request.preferred,
        "never preempts": not each.preempts,
        "since": each.since,
        "kept": each.kept,
        "estimate": each.estimate,
    }
    return f"{each.key[3:]} asks for {parts} {line({k: v for k, v in rest.items() if v})}"


def round_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"queues {seed}", list(_play(random.Random(f"rounds {seed}")))


def _play(rng: random.Random) -> Iterator[str]:
    sizes = {name: rng.choice((4, 8, 16, 24, 32)) for name in "abcd"[: rng.randint(1, 4)]}
    world = Rounds(sizes)
    world.state.settings = replace(world.state.settings, names_others=some(rng, 0.5))
    world.shows_after = rng.choice((timedelta(), LAG, timedelta(minutes=2)))
    yield line(sizes)
    queues = dict(_queue_rows(rng))
    for row, _ in queues.values():
        yield row
    world.set_queues(*(each for _, each in queues.values()))
    told: dict[str, str] = {}
    number = 0
    for step in range(STEPS):
        did = []
        for _ in range(rng.choice((0, 0, 1, 2)) if step else 4):
            made = _unit(rng, f"j{number}", age=rng.choice((number, number, 0)))
            world.lengths[f"j{number}"] = rng.choice((60, 600, 5000))
            world.submit(made)
            did.append(_said(made))
            number += 1
        did.extend(_events(rng, world, queues) if step else ())
        yield f"{step}. {(world.now - NOW).total_seconds():g} s"
        yield from (f"  {each}" for each in did)
        for _ in range(4):
            before = len(world.reclaimed)
            woken = world.decide()
            if len(world.reclaimed) > before:
                yield f"  gave back {line(world.reclaimed[before:])}"
            yield from decided(world, woken, told)
            if not woken:
                break
        change = next_change(world.state, now=world.now)
        if change is not None:
            yield f"  changes in {change.total_seconds():g} s"


def _queue_rows(rng: random.Random) -> Iterator[tuple[str, tuple[str, Queue]]]:
    for raw, made in _queues(rng):
        state, marks = raw["status"]["state"], raw["metadata"]["annotations"]
        shown = raw["spec"] | ({"annotations": marks} if marks else {})
        yield made.name, (f"queue {made.name} {state}: {line(shown)}", made)


def _events(
    rng: random.Random, world: Rounds, queues: dict[str, tuple[str, Queue]]
) -> Iterator[str]:
    if world.ends and some(rng, 0.4):
        key = rng.choice(sorted(world.ends))
        world.end(key)
        yield f"{key[3:]} ends"
    if world.ends and some(rng, 0.3):
        yield f"end {line(world.advance())}"
    else:
        world.now += timedelta(seconds=rng.choice((0, 1, 29, 30, 31, 60, 600, 7200)))
    if some(rng, 0.2):
        name = rng.choice(list(world.gpus))
        world.foreign[name] = rng.choice((0, 4, 100))
        yield f"others use {world.foreign[name]} of {name}"
    if some(rng, 0.15):
        world.lost = rng.choice((frozenset(), frozenset({rng.choice(list(world.gpus))})))
        yield f"lost are {sorted(world.lost)}"
    if some(rng, 0.15) and queues:
        queues.update(_queue_rows(rng))
        world.set_queues(*(each for _, each in queues.values()))
        yield from (row for row, _ in queues.values())


def decided(world: Rounds, woken: list[str], told: dict[str, str]) -> Iterator[str]:
    state = world.state
    if woken:
        yield f"  woken {line([key[3:] for key in woken])}"
    known = {f"reserved on {name}": requests for name, requests in reserved(state, but="").items()}
    rows = {
        where: " ".join(sorted(each.name for each in requests))
        for where, requests in known.items()
        if requests
    }
    for key in sorted(state.entries):
        verdict = verdict_of(state, key)
        entry = state.entries[key]
        text = wait_text(verdict.wait)
        if verdict.admitted:
            reserved_clusters = {
                name[len(key) - 2 :]: where
                for name, where in sorted(entry.reserved_clusters.items())
            }
            text += f"admitted {' '.join(sorted(verdict.admitted))} {line(reserved_clusters)}"
        if verdict.reclaimed_for:
            text += f", makes way for {verdict.reclaimed_for}, preempted {verdict.preempted}"
        for name, detail in sorted(verdict.unplaced.items()):
            text += f"; {name}: {detail_text(detail)}"
        rows[key[3:]] = f"{verdict.reason} {text}".strip()
        if entry.waiting is not None:
            entry.note_written(verdict.message_facts, now=world.now)
    uses = {}
    for name in sorted(state.usage.tree.queues):
        used = state.usage.used(name).get(GPU, 0)
        share = state.usage.tree.entitled.get(name, {}).get(GPU, 0)
        uses[name] = f"{used / 10**9:g}/{share / 10**9:g}"
    rows["used"] = " ".join(f"{name} {part}" for name, part in uses.items())
    for name in sorted({*told, *rows}):
        if told.get(name) != rows.get(name):
            yield f"  {name}: {rows.get(name, 'no more')}"
    told.clear()
    told.update(rows)
