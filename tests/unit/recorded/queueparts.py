"""The parts of the queue engine by themselves: trees, accounts, spaces, gangs, ends, Queues."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from hyperjob_core.api.meta import Object
from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.slots import Slots
from hyperjob_engine.queueing.admit import (
    Grant,
    closed,
    gang_of,
    is_guaranteed,
    leaves_guarantees,
    try_to_admit,
)
from hyperjob_engine.queueing.confirm import BuiltinQueues
from hyperjob_engine.queueing.evict import loss_of
from hyperjob_engine.queueing.forecast import (
    CapacityTimeline,
    end_of,
    estimate_of,
    has_room,
    room_for,
)
from hyperjob_engine.queueing.occupancy import Occupancy
from hyperjob_engine.queueing.queues import ROOT, Queue, Tree, parse_queue
from hyperjob_engine.queueing.read import unit_of
from hyperjob_engine.queueing.room import Space
from hyperjob_engine.queueing.usage import QueueUsage, Shares
from hyperjob_engine.queueing.workload import (
    Entry,
    ExpectedEnd,
    OrderInQueue,
    Pending,
    QueuedHyperJob,
    QueuedSubJob,
    Shape,
    Shapes,
)
from hyperjob_engine.reasons.waiting import QueueTroubleCode
from hyperjob_engine.resources import Resources
from tests.unit.controller.builders import GPU, NOW
from tests.unit.recorded.generated import hyperjob_of, some
from tests.unit.recorded.placements import clusters_of
from tests.unit.recorded.recording import Case, changes, line, plain
from tests.unit.recorded.snapshots import observed_of

NAMES: Final = ("p", "q", "r", "s", "t")
UNIT: Final = 10**9
WHOLE: Final = re.compile(r"\.0(?!\d)")
VALUES: Final[tuple[Any, ...]] = (
    None, "", 0, 1, -1, True, "x", "1us", "1ns", "0s", [], {}, {"cpu": 1},
)  # fmt: skip
KINDS: Final = (GPU, "cpu", "memory")


def _amounts(rng: random.Random, *choices: int, chance: float = 0.6) -> dict[str, int]:
    return {kind: rng.choice(choices) * UNIT for kind in KINDS if some(rng, chance)}


def _small(value: Any) -> Any:
    """Write nano-units as units."""
    if isinstance(value, dict):
        return {key: _small(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_small(each) for each in value]
    return value / UNIT if isinstance(value, int) and abs(value) >= UNIT // 2 else value


def _told(value: Any) -> str:
    return WHOLE.sub("", line(_small(plain(value)))).replace(GPU, "gpu")


def _tree(rng: random.Random) -> Tree:
    queues = []
    for number, name in enumerate(NAMES):
        above = [ROOT, ROOT, *NAMES[:number]]
        queues.append(
            Queue(
                name=name,
                parent=rng.choice((*above, *above, "none", rng.choice(NAMES))),
                weight=rng.choice((1, 1, 2, 3)),
                priority=rng.choice((0, 0, 1)),
                reclaimable=some(rng, 0.6),
                preemption=some(rng, 0.8),
                estimate=timedelta(minutes=rng.choice((5, 20))) if some(rng, 0.3) else None,
                state=rng.choice(("", "Open", "Open", "Open", "Closed")),
                capability=_amounts(rng, 4, 8, 16) if some(rng, 0.5) else {},
                guarantee=_amounts(rng, 1, 2, 4) if some(rng, 0.4) else {},
                deserved=_amounts(rng, 0, 4, 6) if some(rng, 0.3) else {},
            )
        )
    return Tree(queues, _amounts(rng, 16, 21, 32, chance=0.9))


def _queue_rows(tree: Tree) -> Iterator[str]:
    for name in NAMES:
        each = tree.queues[name]
        told = {
            "cap": each.capability,
            "guarantee": each.guarantee,
            "deserved": each.deserved,
            "entitled": tree.entitled.get(name, {}),
        }
        trouble = tree.trouble(name)
        words = _told(trouble) if trouble is not None else ""
        yield (
            f"{'/'.join(tree.path(name))} weight {each.weight} priority {each.priority}"
            f" {_told({key: value for key, value in told.items() if value})} {words}".rstrip()
        )
    lent = {f"{a} to {b}": tree.lent(a, b) for a in NAMES for b in NAMES}
    yield f"lent {_told({key: pair for key, pair in lent.items() if pair is not None})}"
    yield f"{tree.guaranteed} {tree.lends} {tree.estimates}"
    codes = [tree.trouble(name) for name in ("nowhere", ROOT)]
    assert [each and each.code for each in codes] == [
        QueueTroubleCode.MISSING,
        QueueTroubleCode.IS_ROOT,
    ]


def account_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"account {seed}")
        tree = _tree(rng)
        yield f"queues {seed}", [*_queue_rows(tree), *_accounts(rng, tree)]


def _accounts(rng: random.Random, tree: Tree) -> Iterator[str]:
    account = QueueUsage(tree)
    for _ in range(5):
        queue, demand = rng.choice(NAMES), _amounts(rng, 1, 2, 3, 6)
        account.add(queue, demand)
        yield f"uses {queue} {_told(demand)}"
    copied = account.copy()
    copied.add("p", {GPU: UNIT})
    if some(rng, 0.5):
        queue, demand = rng.choice(NAMES), _amounts(rng, 1, 2)
        account.claim(queue, demand)
        yield f"claims {queue} {_told(demand)}"
    asking = {name: _amounts(rng, 0, 1, 2, 4, 8) for name in rng.sample(NAMES, 3)}
    for name, demand in asking.items():
        limit = account.limit(name, demand)
        said = _told(limit) if limit is not None else "no limit"
        owed = [other for other in NAMES if account.has_borrowed_from(other, name, demand)]
        sure = " guaranteed" if account.is_guaranteed(name, demand) else ""
        yield f"{name} asks {_told(demand)}: {said}, owed by {owed}{sure}"
    yield f"turn of {next(account.turns(asking))}; kept {_told(account.kept_for_others(KINDS))}"
    free = _amounts(rng, 2, 8, 20)
    account.reserve_for_head(asking[min(asking)], free)
    yield f"spoken for {_told(account.kept_for_others(KINDS))}"
    yield f"used {_told({name: account.used(name) for name in (*NAMES, ROOT)})}"
    account.forget_claims()
    yield f"forgotten {_told(account.kept_for_others(KINDS))}"
    parts = _parts(rng, 4, alike=some(rng, 0.4))
    space = Space(_clusters(rng), {})
    for needed in (0, 1, 3, 4):
        shape = _shape(parts, needed)
        gang = [part.name for part in gang_of(parts, shape.needs, account)]
        found = try_to_admit(parts, shape.needs, account, space)
        said = _told(found.clusters) if isinstance(found, Grant) else _told(found)
        yield f"gang of {needed}: {gang} {said}"
    alone = [part for part in parts if part.queue == parts[0].queue]
    shares = Shares(BuiltinQueues(), usage=account)
    yield (
        f"guaranteed {is_guaranteed(parts, account)} {is_guaranteed(alone, account)}"
        f" leaves {leaves_guarantees(alone, shares, _amounts(rng, 6, 12))}"
        f" closed {_told(closed([part.queue for part in parts], account))}"
    )
    yield f"after {_told({name: account.used(name) for name in (*NAMES, ROOT)})}"


def _clusters(rng: random.Random) -> tuple[Cluster, ...]:
    if some(rng, 0.3):
        return clusters_of(rng, rng.choice((1, 2, 3)))
    return tuple(
        Cluster(
            name=name,
            usable=some(rng, 0.9),
            trouble=None,
            free=_amounts(rng, -1, 0, 2, 4, 9, chance=0.95),
            allocatable=_amounts(rng, 8, 16, chance=0.95),
        )
        for name in "abcd"[: rng.randint(1, 4)]
    )


def _request(rng: random.Random, name: str) -> PlacementRequest:
    demand = _amounts(rng, 0, 1, 2, 3, chance=0.7)
    preferred = tuple(rng.sample(("a", "b", "c0", "z"), rng.randint(1, 3)))
    listed = some(rng, 0.3)
    return PlacementRequest(
        name=name,
        group=rng.choice("gh"),
        demand=demand,
        preferred=preferred if listed else (),
        required=listed and some(rng, 0.5),
        excluded=frozenset({"b"}) if some(rng, 0.2) else frozenset(),
        pods=(PodGroup(demand, 1),) if some(rng, 0.5) else (),
    )


def _parts(rng: random.Random, count: int, *, alike: bool) -> list[QueuedSubJob]:
    first = _request(rng, "n0")
    queue = rng.choice(NAMES)
    return [
        QueuedSubJob(
            queue=queue if some(rng, 0.8) else rng.choice(NAMES),
            request=first.named(f"n{number}") if alike else _request(rng, f"n{number}"),
        )
        for number in range(count)
    ]


def _unit(parts: Sequence[QueuedSubJob], **more: Any) -> QueuedHyperJob:
    return QueuedHyperJob(key="ns/j", minimum=len(parts), parts=tuple(parts), **more)


def _shape(parts: Sequence[QueuedSubJob], needed: int, most: int | None = None) -> Shape:
    return Shapes().of(_unit(parts, max_domains=most), parts, needed=needed)


def space_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"space {seed}", list(_spaces(random.Random(f"space {seed}")))


def _free(space: Space) -> str:
    return f"{_told(space.free)} in all {_told(space.sum)}"


def _spaces(rng: random.Random) -> Iterator[str]:
    clusters = _clusters(rng)
    names = [each.name for each in clusters]
    eventual = {name: _amounts(rng, 0, 4, 8, 16) for name in names if some(rng, 0.9)}
    space = Space(clusters, eventual)
    yield f"{_free(space)}; in the end {_told(eventual)}, most {_told(space.most)}"
    alike = some(rng, 0.5)
    parts = _parts(rng, rng.choice((1, 2, 4, 5)), alike=alike)
    requests = [part.request for part in parts]
    for each in requests[: 1 if alike else None]:
        where = f"{_told(each.preferred)}{'!' if each.required else ''} not {sorted(each.excluded)}"
        who = len(requests) if alike else each.name
        yield f"{who} of {each.group} {_told(each.demand)} {where}"
    standing = [(rng.choice("gh"), rng.choice(names)) for _ in range(rng.choice((0, 0, 1, 2)))]
    for most in (None, 1, 2):
        found = space.assign(requests, standing, most)
        able = [
            space.holds(requests, standing, most, least=least, alike=alike)
            for least in range(1, len(requests) + 2)
        ]
        could = space.could(requests, standing, most)
        wants = space.wants(requests, most=rng.choice((1, len(requests))), max_domains=most)
        yield f"beside {standing} in {most}: {_told(found)} {able} could {could}"
        yield f"  wants {_told(wants)}"
        kept = space.copy()
        kept.keep(wants)
        yield f"  keeps {_free(kept)}"
    floors = [_amounts(rng, 0, 2, 5, 12) for _ in range(3)]
    yield f"allows {[space.allows(floor) for floor in floors]} of {_told(floors)}"
    ended = [(rng.choice((*names, "gone")), _amounts(rng, 1, 4)) for _ in range(2)]
    empty = space.emptied(ended)
    known = [each.nodes is not None for each in empty.clusters], bool(empty.slots)
    yield f"emptied {_free(empty)} nodes {known}"
    space.put(requests[0], names[0])
    space.take(names[-1], _amounts(rng, 1, 3))
    space.take("gone", {GPU: UNIT})
    yield f"put {_free(space)}"
    yield from _ends(rng, parts, Space(clusters, eventual))
    yield from _occupied(rng, clusters)
    slots = Slots(clusters)
    for sign in (1, 1, -1, -1) if slots else ():
        for each in requests:
            slots.add(names[0], each.pods, sign)
        yield f"slots {_told([slots.crowding(name, requests[0].pods) for name in names])}"


def _ends(rng: random.Random, parts: list[QueuedSubJob], space: Space) -> Iterator[str]:
    names = [*space.free, "gone"]
    ends = [
        ExpectedEnd(
            NOW + timedelta(minutes=number),
            f"ns/e{number}",
            tuple((rng.choice(names), _amounts(rng, 1, 2, 4)) for _ in range(rng.choice((1, 2)))),
            overdue=some(rng, 0.2),
        )
        for number in range(rng.choice((0, 1, 3, 6)))
    ]
    for needed, most in ((0, None), (1, None), (len(parts), None), (len(parts), 1)):
        shape = _shape(parts, needed, most)
        waiting = Pending(tuple(parts), shape, parts[0].queue, OrderInQueue(0, "", "ns/j"))
        start = CapacityTimeline(space, ends).earliest(waiting)
        found = room_for(waiting, space)
        yield f"{needed} in {most}: {has_room(waiting, space)} {_told(found)} from {_told(start)}"
        floor = _small(dict(shape.needs.floor))
        yield f"  floor {_told(floor)} {shape.needs.alike} {shape.queues}"
    tree = _tree(rng)
    entry = Entry(
        _unit(
            parts,
            since=rng.choice(("", "2026-01-02T03:00:00Z", "2026-01-02T02:00:00Z")),
            kept=rng.choice(("", "2026-01-02T03:00:30.000000Z")),
            created="2026-01-02T01:00:00Z",
            estimate=timedelta(minutes=rng.choice((4, 5, 90))) if some(rng, 0.5) else None,
        )
    )
    for holding in (False, True):
        if holding:
            entry.hold({part.name: (part, rng.choice(names)) for part in parts})
        end = end_of("ns/j", entry, tree, now=NOW)
        again = end_of("ns/j", entry, tree, now=NOW + timedelta(minutes=10))
        yield f"ends {_told(end)} then {_told(again)} by {estimate_of(entry, tree)}"
        yield f"loses {loss_of(entry, now=NOW) / UNIT:g}"


def _occupied(rng: random.Random, clusters: Sequence[Cluster]) -> Iterator[str]:
    occupancy = Occupancy(lag=timedelta(seconds=30))
    names = [each.name for each in clusters]
    for number in range(4):
        cluster, demand = rng.choice((*names, "")), _amounts(rng, 1, 2)
        occupancy.hold(cluster, demand)
        if some(rng, 0.5):
            occupancy.drop(cluster, demand)
            occupancy.fade(cluster, demand, now=NOW + timedelta(seconds=10 * number))
    shown: dict[str, Resources] = {name: _amounts(rng, 2, 6) for name in names if some(rng, 0.5)}
    for seconds in (30, 40, 59, 60, 90):
        now = NOW + timedelta(seconds=seconds)
        later = occupancy.next_change(), occupancy.next_change(after=now)
        yield f"changes {_told(later)}"
        yield f"  in the end {_told(occupancy.eventual(clusters, shown, now=now))}"


def unit_cases(seeds: Iterable[int]) -> Iterator[Case]:
    """Read HyperJobs in any state for the queue engine."""
    for seed in seeds:
        rng = random.Random(f"unit {seed}")
        raw = hyperjob_of(rng, most=3)
        seen = observed_of(rng, raw)
        if seen is None:
            continue
        found = unit_of(seen)
        if found is None:
            yield f"HyperJob {seed}", ["nothing"]
            continue
        parts = [
            f"{part.name} of {part.queue} {_told(part.request.demand)}"
            f"{' piece' if part.piece else ''}{' grows' if part.grows else ''}"
            f" {_told([part.request.preferred, part.request.required, part.request.excluded])}"
            for part in found.parts
        ]
        rest = _told(replace(found, parts=()))
        yield f"HyperJob {seed}", [*parts, rest, f"kept {found.kept} order {tuple(found.order)}"]


def document_cases() -> Iterator[Case]:
    """Read a Queue whose fields are gone, null or of another type, one at a time."""
    amount = {"cpu": "4", GPU: "8"}
    spec = {
        "parent": "up", "weight": 3, "priority": 2, "dequeueStrategy": "fifo", "reclaimable": True,
        "capability": amount, "guarantee": {"resource": amount}, "deserved": amount,
    }  # fmt: skip
    marks = {
        "training.volcano.sh/preemption": "disabled",
        "training.volcano.sh/running-estimate": "20m",
    }
    whole: dict[str, Any] = {"spec": spec, "annotations": marks, "status": {"state": "Closed"}}
    usual = plain(_queue(whole))["Queue"]
    for part, fields in whole.items():
        rows = [_told(usual)]
        for field in (*fields, None):
            for value in VALUES:
                changed = {**fields, field: value} if field is not None else value
                found = plain(_queue({**whole, part: changed}))["Queue"]
                rows.append(f"{field} {_told(value)}: {', '.join(changes(usual, found))}")
        yield part, rows
    roots = [parse_queue({"metadata": {"name": ROOT}, "spec": {"parent": "x"}}), parse_queue({})]
    yield "roots", [_told(each) for each in roots]


def _queue(parts: Object) -> Queue:
    metadata = {"name": "q", "annotations": parts["annotations"]}
    return parse_queue({"metadata": metadata, "spec": parts["spec"], "status": parts["status"]})
