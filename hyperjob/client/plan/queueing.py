"""Predict the queue engine's decisions with the controller's queue engine, in a plan's world.

The module plays the controller's rounds, in which waiting HyperJobs come in their order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hyperjob.client.plan.prospect import Gang
from hyperjob.client.plan.world import Snapshot
from hyperjob_engine.model.observed import Observed, QueueAdmission
from hyperjob_engine.placement.capacity import less_each
from hyperjob_engine.queueing.confirm import BuiltinQueues, Confirmer, NoConfirmation, VolcanoGlobal
from hyperjob_engine.queueing.queues import parse_queue
from hyperjob_engine.queueing.quota import Charges
from hyperjob_engine.queueing.read import unit_of
from hyperjob_engine.queueing.round import schedule
from hyperjob_engine.queueing.state import (
    QueueState,
    Settings,
    new_state,
    reserved,
    set_queues,
    update,
)
from hyperjob_engine.queueing.verdict import share_of, verdict_of
from hyperjob_engine.queueing.workload import QueuedHyperJob
from hyperjob_engine.reasons.waiting import Share, after_its_name


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePosition:
    """A place in a queue, counted from 1, and the number of HyperJobs that wait there."""

    queue: str
    place: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStanding:
    """The state of a HyperJob in its queues.

    `problems` has for each queue the reason why it takes no jobs, empty if it takes jobs; `line`
    is the HyperJob's place in its queue, and `gang` the sub-jobs that wait there.
    """

    problems: Mapping[str, str] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    line: LinePosition | None = None
    gang: Gang | None = None


def ask(observed: Observed, world: Snapshot) -> tuple[Observed, QueueStanding]:
    """Return the controller's observation after its queues have decided, and the queues' state."""
    mine = f"{observed.hyperjob.namespace}/{observed.hyperjob.name}"
    others = {**world.hyperjobs, **world.earlier}
    units = {key: unit_in(world, world.observe(raw)) for key, raw in others.items() if key != mine}
    state = played({**units, mine: unit_in(world, observed)}, world)
    return _judged(observed, state, mine), _standing(state, mine)


def unit_in(world: Snapshot, observed: Observed) -> QueuedHyperJob | None:
    """Return the queue entry of a HyperJob; its sub-jobs on drained clusters wait for others."""
    unit = unit_of(observed)
    if unit is None or not world.drained:
        return unit
    moved = {name for name, where in unit.clusters.items() if where in world.drained} - unit.ended
    return replace(
        unit,
        held=unit.held - moved,
        made=unit.made - moved,
        clusters={name: where for name, where in unit.clusters.items() if name not in moved},
    )


def played(units: Mapping[str, QueuedHyperJob | None], world: Snapshot) -> QueueState:
    """Return the queue engine's state after all rounds that admit a HyperJob."""
    settings = Settings(
        lag=timedelta(), counts=lambda key: key in world.taken, forecast_every=timedelta()
    )
    state = new_state(settings, _confirmer(world))
    if world.queues is not None or not state.shares.confirmer.needs_queues:
        set_queues(state, (parse_queue(raw) for raw in world.queue_objects))
    for key, unit in units.items():
        update(state, key, unit, now=world.now)
    while schedule(state, world.clusters, shown=world.shown, now=world.now).keys:
        pass
    return state


def _confirmer(world: Snapshot) -> Confirmer:
    match world.admission:
        case QueueAdmission.NONE:
            return NoConfirmation()
        case QueueAdmission.BUILTIN:
            return BuiltinQueues()
        case QueueAdmission.VOLCANO_GLOBAL:
            charges = Charges()
            for key, charge in world.charges():
                charges.put(key, charge)
            return VolcanoGlobal(charges.beside)


def _judged(observed: Observed, state: QueueState, mine: str) -> Observed:
    promised = reserved(state, but=mine)
    clusters = less_each(observed.clusters, promised)
    return replace(observed, clusters=clusters, verdict=verdict_of(state, mine))


def _standing(state: QueueState, mine: str) -> QueueStanding:
    entry = state.entries.get(mine)
    if entry is None or not state.known:
        return QueueStanding()
    problems, shares = {}, {}
    for part in entry.unit.parts if state.shares.confirmer.needs_queues else ():
        if part.queue in problems:
            continue
        problems[part.queue] = after_its_name(state.usage.tree.trouble(part.queue))
        share = share_of(state, part.queue, part.request.demand)
        if share is not None:
            shares[part.queue] = share
    waiting = entry.waiting
    line = gang = None
    if waiting is not None:
        needs = waiting.shape.needs
        gang = Gang(
            requests=tuple(part.request for part in waiting.parts),
            needed=needs.needed,
            standing=tuple(needs.standing),
            max_domains=needs.max_domains,
        )
        if state.shares.confirmer.needs_queues:
            line = LinePosition(
                queue=waiting.queue,
                place=state.lines.place(waiting.queue, waiting.order),
                length=len(state.lines.line(waiting.queue)),
            )
    return QueueStanding(problems=problems, shares=shares, line=line, gang=gang)
