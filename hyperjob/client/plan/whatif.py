"""Predict the effect of changed queues or clusters on the HyperJobs of a control plane.

The controller decides in the present world and in the changed world, both in memory, and the module
compares. A sub-job on a drained cluster loses its place and waits in its queue for another cluster;
the HyperJob's other sub-jobs stay where they are.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hyperjob.client.expected import ExpectedStart
from hyperjob.client.plan.judge import Document, Judgement, judge_next
from hyperjob.client.plan.rehearsal import Rehearsal, rehearsing
from hyperjob.client.plan.world import World
from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS, key_of
from hyperjob_core.virtualtime import run
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.observed import QueueVerdict
from hyperjob_engine.queueing.read import unit_of
from hyperjob_engine.reasons.waiting import wait_text


class HyperJobChange(enum.StrEnum):
    """The effect of the changes on a HyperJob."""

    STARTS = "Starts"
    NO_LONGER_STARTS = "NoLongerStarts"
    MOVES = "Moves"
    STOPS = "Stops"
    GIVES_BACK = "GivesBack"
    WAITS = "Waits"
    NONE = "None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """A HyperJob: the clusters of its sub-jobs before and after, and the reason why it waits after.

    `change` is Starts for a HyperJob that starts only in the changed world, and None for a
    HyperJob that starts in both.
    """

    namespace: str
    name: str
    queue: str
    change: HyperJobChange
    now: Mapping[str, str]
    then: Mapping[str, str]
    message: str = ""
    expected: ExpectedStart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """A HyperJob that runs or waits: the clusters of its sub-jobs, and its queue's verdict."""

    queue: str
    clusters: Mapping[str, str]
    verdict: QueueVerdict


def what_if(
    world: World, changed: World, documents: Iterable[Document] = ()
) -> tuple[list[Judgement], list[Prospect]]:
    """Judge HyperJobs in the changed world; return also the HyperJobs that run or wait, by name.

    Must not be called on the thread of a running event loop.
    """

    async def compared() -> tuple[list[Judgement], list[Prospect]]:
        async with rehearsing(world) as rehearsal:
            before = _hyperjob_states(world, rehearsal)
        async with rehearsing(changed) as rehearsal:
            found = [await judge_next(each, rehearsal, changed) for each in documents]
            after = _hyperjob_states(world, rehearsal)
        exists = {key_of(job) for job in world.of(VCJOBS)}
        return found, [
            _prospect(key, before[key], after[key], exists)
            for key in sorted(before)
            if key in after
        ]

    return run(compared())


def _hyperjob_states(world: World, rehearsal: Rehearsal) -> dict[str, _State]:
    """Return the HyperJobs of the world that run or wait in a rehearsal, by namespace/name."""
    found = {}
    for key in map(key_of, world.of(HYPERJOBS)):
        observed = rehearsal.observe(key)
        unit = unit_of(observed) if observed is not None else None
        if observed is None or unit is None or not unit.parts:
            continue
        children = [child_of(observed, name) for name in observed.jobs]
        found[key] = _State(
            queue=unit.parts[0].queue,
            clusters={
                child.name: child.cluster
                for child in children
                if child.exists and not child.is_terminal
            },
            verdict=observed.verdict or QueueVerdict(),
        )
    return found


def _prospect(key: str, before: _State, after: _State, exists: set[str]) -> Prospect:
    """Compare a HyperJob in the two worlds; `exists` are the vcjobs of the control plane by key."""
    namespace, _, name = key.partition("/")
    now = {
        child: where for child, where in before.clusters.items() if f"{namespace}/{child}" in exists
    }
    verdict, then = after.verdict, after.clusters
    start = verdict.wait.start if verdict.wait is not None else None
    message = wait_text(verdict.wait)
    if verdict.reclaimed_for:
        message = f"releases its accelerators for {verdict.reclaimed_for}"
    return Prospect(
        namespace=namespace,
        name=name,
        queue=after.queue,
        change=_effect(now, before, after),
        now=now,
        then=then,
        message=message,
        expected=None if start is None or start.overdue else ExpectedStart(start.at, start.after),
    )


def _effect(now: Mapping[str, str], before: _State, after: _State) -> HyperJobChange:
    """Return the effect on a HyperJob, the worst one first.

    `now` are its existing sub-jobs; `before` has also those that start without the changes.
    """
    then = after.clusters
    if now.keys() - then.keys():
        return HyperJobChange.STOPS
    if any(then[child] != where for child, where in now.items() if where):
        return HyperJobChange.MOVES
    if after.verdict.reclaimed_for and not before.verdict.reclaimed_for:
        return HyperJobChange.GIVES_BACK
    if then.keys() - before.clusters.keys():
        return HyperJobChange.STARTS
    if before.clusters.keys() - then.keys():
        return HyperJobChange.NO_LONGER_STARTS
    return HyperJobChange.NONE if after.verdict.wait is None else HyperJobChange.WAITS
