"""What stays reserved on clusters while vcjobs, their bindings and clusters change in any order."""

import copy
import random
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

from hyperjob_controller.memory.candidates import Candidates
from hyperjob_controller.memory.refusals import Refusals
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.model.parse import parse_binding
from hyperjob_engine.model.planned import CreateChild, Repin
from hyperjob_engine.placement.capacity import ClusterSummary, summarise
from hyperjob_engine.queueing.read import unit_of_remains
from hyperjob_engine.resources import parse_resources
from tests.unit.controller.builders import (
    GPU,
    NOW,
    VCJOB_APIS,
    binding,
    hyperjob,
    job,
    owner,
    policy,
    task,
    template,
    vcjob_status,
)
from tests.unit.recorded.generated import some
from tests.unit.recorded.recording import Case, line

EVENTS: Final = 30
LAG: Final = timedelta(seconds=60)
NAMES: Final = ("hj-trainer-0", "hj-trainer-1", "hj-trainer-2")
CLUSTERS: Final = ("a", "b")
KINDS: Final = (
    (),
    ({"kind": "HyperJob", "name": "hj", "uid": "another", "controller": True},),
    ({"kind": "CronJob", "name": "hj", "uid": "hj-uid", "controller": True},),
)


class World:
    """The objects of one HyperJob, and what is remembered of them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now = rng, NOW
        self.owner: Object | None = hyperjob()
        self.jobs: dict[str, Object] = {}
        self.policies: dict[str, Object] = {}
        self.bindings: dict[str, Object] = {}
        self.summaries: dict[str, ClusterSummary] = {}
        self.reservations = Reservations(
            hyperjob=lambda key: self.owner if key == "default/hj" else None,
            job=lambda key: self.jobs.get(key.partition("/")[2]),
            policy=lambda key: self.policies.get(key.partition("/")[2]),
            binding=lambda key: self.bindings.get(key.partition("/")[2]),
            lag=LAG,
        )
        self.candidates = Candidates(self.reservations)
        for name in CLUSTERS:
            self.show(name, 0)

    def show(self, name: str, used: int) -> None:
        """Have a cluster report how much is used."""
        raw = {
            "metadata": {"name": name},
            "status": {
                "conditions": [{"type": "Ready", "status": "True" if used < 9 else "False"}],
                "apiEnablements": VCJOB_APIS,
                "resourceSummary": {
                    "allocatable": {GPU: "16", "pods": "50"},
                    "allocated": {GPU: str(used), "pods": str(used)},
                },
            },
        }
        found = summarise(raw)
        self.summaries = {**self.summaries, name: found}

    def update(self, name: str) -> None:
        self.reservations.update(f"default/{name}", now=self.now)


def reservation_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"reservations {seed}", list(_events(World(random.Random(f"reserved {seed}"))))


def _events(world: World) -> Iterator[str]:
    before: dict[str, str] = {}
    for _ in range(EVENTS):
        told = _event(world)
        yield f"{(world.now - NOW).total_seconds():g} s {told}"
        rows = dict(_state(world))
        yield from (f"  {name} {text}" for name, text in rows.items() if before.get(name) != text)
        before = rows


def _event(world: World) -> str:
    rng, name = world.rng, world.rng.choice(NAMES)
    raw, bound = world.jobs.get(name), world.bindings.get(name)
    match rng.randrange(13):
        case _ if raw is None:
            gpus = rng.choice((1, 2, 4))
            world.jobs[name] = job(name, spec=template(task(replicas=gpus)))
            if some(rng, 0.8):
                world.policies[name] = policy(name, cluster=rng.choice(CLUSTERS))
            world.update(name)
            return f"{name} of {gpus} is made"
        case 0 | 1 | 2:
            phase = rng.choice(("Pending", "Running", "Running", "Completed", ""))
            size = sum(each["replicas"] for each in raw["spec"]["tasks"])
            pods = rng.choice(({"running": size}, {"pending": size}, {"running": size - 1}, {}))
            since = f"{world.now - timedelta(seconds=rng.choice((0, 20, 59))):%Y-%m-%dT%H:%M:%SZ}"
            status = vcjob_status(phase, pods, since=since) if phase else {}
            raw["status"] = status
            if bound is not None and some(rng, 0.6):
                world.bindings[name] = _bound(name, bound["spec"].get("clusters"), status)
            world.update(name)
            return f"{name} {phase or 'says nothing'} {line(pods)}"
        case 3 | 4:
            cluster = rng.choice((*CLUSTERS, ""))
            world.bindings[name] = _bound(name, [{"name": cluster}] if cluster else None, {})
            if some(rng, 0.1):
                world.bindings[name]["metadata"]["ownerReferences"][0]["uid"] = "another"
            world.update(name)
            return f"{name} is bound to {cluster or 'nothing'}"
        case 5:
            del world.jobs[name]
            if some(rng, 0.5):
                world.bindings.pop(name, None)
            world.update(name)
            return f"{name} is gone"
        case 6:
            raw["metadata"]["generation"] += 1
            world.jobs[name] = {**raw, "spec": template(task(replicas=rng.choice((1, 3))))}
            world.update(name)
            return f"{name} has another size"
        case 7:
            change, value = rng.choice((
                ("ownerReferences", list(rng.choice(KINDS))),
                ("ownerReferences", owner()),
                ("labels", {}),
                ("deletionTimestamp", "2026-01-02T03:04:00Z"),
                ("uid", "made again"),
            ))  # fmt: skip
            raw["metadata"] = {**raw["metadata"], change: value}
            world.update(name)
            return f"{name} has {change} {line(value)}"
        case 8:
            cluster = rng.choice(CLUSTERS)
            world.policies[name] = policy(name, cluster=cluster)
            world.update(name)
            return f"{name} is pinned to {cluster}"
        case 9:
            world.owner = None if world.owner is not None and some(rng, 0.3) else hyperjob()
            for each in NAMES:
                world.update(each)
            return f"the HyperJob is {'there' if world.owner is not None else 'gone'}"
        case 10:
            cluster, used = rng.choice(CLUSTERS), rng.choice((0, 4, 9))
            world.show(cluster, used)
            taken = {GPU: used * NANO, "pods": used * NANO}
            world.reservations.summarised(cluster, taken, now=world.now)
            return f"{cluster} reports {used}"
        case 11:
            world.reservations.expire(now=world.now)
            return "what has ended is dropped"
        case _:
            world.now += timedelta(seconds=rng.choice((1, 4, 5, 6, 40, 59, 60, 61)))
            return "time passes"


def _bound(name: str, clusters: Any, status: Object) -> Object:
    made = binding(name, status=status or None, cluster=clusters[0]["name"] if clusters else "")
    return copy.deepcopy(made)


def _state(world: World) -> Iterator[tuple[str, str]]:
    kept, now = world.reservations, world.now
    for what, found in (
        ("reserved", kept.reserved(now=now)),
        ("reserved on a", kept.reserved(now=now, clusters=["a", "c"])),
        ("settling", kept.settling(now=now)),
        ("held on b", {"b": kept.held_on("b")}),
    ):
        yield what, line({name: _amounts(each) for name, each in found.items()})
    pods = kept.pods(now=now).items()
    yield "pods", line({
        name: sorted((_amounts(each.request), each.number) for each in groups)
        for name, groups in pods
    })  # fmt: skip
    clusters = world.candidates.of(world.summaries, now=now)
    yield "free", line([(each.name, _amounts(each.free)) for each in clusters])
    later = kept.eventual([each for each in clusters if each.usable], now=now)
    yield "in the end", line({name: _amounts(each) for name, each in later.items()})
    yield "changes", line([kept.next_change(now=now), kept.eventual_changes_in(now=now)])
    yield "ended", line([kept.ended_on(now=now), kept.take_freed(), dict(kept.versions)])
    yield "counted", line([name for name in NAMES if kept.counts(f"default/{name}")])
    actions = [
        CreateChild(name="n", policy=None, job=None, cluster="a", demand=parse_resources({GPU: 1})),
        Repin(name=NAMES[0], uid="", cluster="b", demand=parse_resources({GPU: 2}), placement={}),
    ]
    with kept.assumed(actions, namespace="default"):
        yield "assumed", line([
            {name: _amounts(each) for name, each in kept.reserved(now=now).items()},
            [name for name in ("n", *NAMES) if kept.counts(f"default/{name}")],
        ])  # fmt: skip
    remains = [
        (raw, parse_binding(world.bindings[name]))
        for name, raw in world.jobs.items()
        if name in world.bindings
    ]
    unit = unit_of_remains("default/hj", remains)
    yield (
        "remains",
        line(unit and {"held": unit.held, "parts": [each.queue for each in unit.parts]}),
    )


def _amounts(resources: Any) -> str:
    return " ".join(f"{n.partition('/')[0]} {a / NANO:g}" for n, a in sorted(resources.items()))


def refusal_cases(seeds: Iterable[int]) -> Iterator[Case]:
    """Refuse sub-jobs in any order, and accept or forget some."""
    for seed in seeds:
        rng, clock = random.Random(f"refused {seed}"), [NOW]
        refusals = Refusals(now=partial(clock.__getitem__, 0))
        rows = []
        for _ in range(40):
            key, name = rng.choice(("default/x", "default/y")), rng.choice(("0", "1"))
            uid, generation = rng.choice(("u", "u", "u", "v")), rng.choice((1, 1, 1, 1, 2))
            clock[0] += timedelta(seconds=rng.choice((0, 1, 10)))
            match rng.randrange(8):
                case 0:
                    refusals.accepted(key, name)
                    rows.append(f"{key} {name} is accepted")
                case 1 if some(rng, 0.4):
                    refusals.forget(key)
                    rows.append(f"{key} is gone")
                case _:
                    refusals.note(
                        key, name, uid=uid, generation=generation, reason="Invalid",
                        message=f"no {name}",
                    )  # fmt: skip
                    rows.append(f"{key} {name} is refused, {uid} {generation}")
            for each in ("default/x", "default/y"):
                found = refusals.of(each, uid="u", generation=1)
                rows.append(f"  {each} {line({n: r.retry_at for n, r in found.items()})}")
        yield f"refusals {seed}", rows
