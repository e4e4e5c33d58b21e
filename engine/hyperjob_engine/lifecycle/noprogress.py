"""Programs that make no steps: the record in the status, and the reaction of `onNoProgress`.

The reader of logs has looked twice before a stall is here. A restart waits for longer than a
notice: the reader may be wrong about a pause that the program has not announced.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.choices import OnNoProgress
from hyperjob_core.api.training import StallStatus, Suspect
from hyperjob_core.api.wire import count, rfc3339
from hyperjob_core.text import listed
from hyperjob_engine.lifecycle.decisions import (
    End,
    Member,
    Recreation,
    Restart,
    restarts_spent,
    with_all,
)
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import FailurePolicy, Observed
from hyperjob_engine.model.stalls import LEAST_RESTART, Hang, Stall
from hyperjob_engine.model.training import latest_training
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.reasons.stacks import Survey
from hyperjob_engine.reasons.stall import no_steps_text

_PATIENCES: Final = 3
_SUSPECTS: Final = 16


def stall_of(observed: Observed, members: Sequence[Member]) -> StallStatus | None:
    """Return the stall of the present attempts; None while their programs make steps.

    The record in the status stays until a program makes a step: a controller that restarts has
    read no log yet.
    """
    running = {child.name: child for _, child in members if _runs(child)}
    hang = observed.hang or Hang()
    found = {
        name: stall
        for name, stall in hang.stalls.items()
        if name in running and stall.attempt == running[name].attempt
    }
    if found:
        return _found_stall(observed, running, found, hang)
    before = table.read(StallStatus, observed.hyperjob.status.get("stall"))
    if before is None or not set(before.jobs) <= running.keys():
        return None
    for name in before.jobs:
        record = running[name].record
        now = latest_training(observed.trainings.get(name), record.training if record else None)
        if now is None or now.step != before.step or now.phase:
            return None
        if now.attempt != running[name].attempt or now.started > before.since:
            return None
    return before


def next_restart(observed: Observed, members: Sequence[Member]) -> timedelta | None:
    """Return the time until the restart of a stalled program; None if none is due."""
    stall = stall_of(observed, members)
    if stall is None or stall.restart_time is None:
        return None
    return max(stall.restart_time - observed.now, timedelta())


def unmoving(observed: Observed, members: Sequence[Member]) -> Restart | End | None:
    """Return the restart of stalled programs that `onNoProgress` asks for, or the end without one.

    A stall of all that report restarts the whole HyperJob, unless a quorum trains on without the
    others. Each restart counts against maxRestarts.
    """
    stall, wish = stall_of(observed, members), observed.hyperjob.on_no_progress
    if stall is None or stall.restart_time is None or observed.now < stall.restart_time:
        return None
    children = {child.name: child for _, child in members}
    first = children[stall.jobs[0]]
    where = f" on {first.cluster}" if first.cluster else ""
    since = f"since {rfc3339(stall.since)} (step {stall.step})"
    why = f"{first.name}{where} has reported no step {since}"
    pods = [f"{each.cluster}/{each.pod}" for each in stall.suspects]
    if pods:
        why = f"the others wait for pod {listed(pods)}: no step {since}"
    blamed = {pod.job for pod in stall.suspects} & children.keys() or {*stall.jobs}
    all_of_them = stall.whole and observed.hyperjob.quorum is None
    policy = observed.hyperjob.failure_policy or FailurePolicy()
    left = policy.max_restarts - count(observed.hyperjob.status.get("restarts"))
    cost = 1 if all_of_them else len(stall.jobs)
    if cost > left:
        return restarts_spent(why, policy.max_restarts)
    suspected = {pod.job: pod.cluster for pod in stall.suspects if pod.job}
    moves = suspected or {name: children[name].cluster for name in stall.jobs}
    again = [
        Recreation(
            name=child.name,
            reason=Reason.NO_PROGRESS if child.name in blamed else Reason.RESTARTED_WITH_ALL,
            why=why if child.name in blamed else with_all(why),
            leave=_leave(moves, child) if wish is OnNoProgress.MIGRATE else (),
            delayed=True,
        )
        for _, child in members
        if child.name in stall.jobs or (all_of_them and not child.is_terminal)
    ]
    return Restart(again=tuple(again), spent=cost)


def _runs(child: Child) -> bool:
    return child.exists and not child.is_terminal


def _found_stall(
    observed: Observed, running: Mapping[str, Child], found: Mapping[str, Stall], hang: Hang
) -> StallStatus:
    """Return the record of the stalls that the reader has found, by sub-job: of the latest one.

    It is `whole` if no other running sub-job reports progress.
    """
    last = max(found.values(), key=lambda stall: stall.since)
    reporting = {
        name
        for name, training in observed.trainings.items()
        if name in running and training.reported and training.attempt == running[name].attempt
    }
    whole = reporting <= found.keys()
    patience = max(stall.patience for stall in found.values())
    restarts = observed.hyperjob.on_no_progress is not OnNoProgress.NOTIFY
    jobs = tuple(sorted(found))
    return StallStatus(
        since=last.since,
        step=last.step,
        jobs=jobs,
        whole=whole,
        message=no_steps_text(
            [] if whole else jobs,
            since=last.since,
            step=last.step,
            usual=last.usual,
            survey=hang.survey,
        ),
        suspects=_suspects(hang.survey),
        restart_time=last.since + max(LEAST_RESTART, _PATIENCES * patience) if restarts else None,
    )


def _suspects(survey: Survey | None) -> tuple[Suspect, ...]:
    """Return the pods for which the others wait, at most as many as the status has."""
    pods = survey.suspects()[:_SUSPECTS] if survey is not None else ()
    return tuple(Suspect(cluster=pod.cluster, pod=pod.name, job=pod.job) for pod in pods)


def _leave(moves: Mapping[str, str], child: Child) -> tuple[str, ...]:
    """Return the cluster that a sub-job leaves; `moves` are the clusters to leave by sub-job."""
    return (moves[child.name],) if moves.get(child.name) else ()
