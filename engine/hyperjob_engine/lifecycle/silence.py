"""Silent sub-jobs: Karmada has applied the vcjob, and reports no status, or no pods.

A recreated vcjob can be deleted together with its predecessor in the member, or stay unnoticed
there. The controller then has Karmada apply the vcjob again, after growing waits, and at last
recreates it if it was never known to run. These steps cost no restart. If many sub-jobs of one
HyperJob are silent, Karmada or the cluster is slow, and the controller only waits.

Karmada counts the Works of a ResourceBinding when one of them changes. A recreated vcjob may get
its Work a moment before its ResourceBinding: Karmada then counts none, and counts again only after
a change of the vcjob, which the same step makes.

Volcano can lose a vcjob, too, if another one of the same name was deleted shortly before: the vcjob
then stays Pending forever, without pods, or with pods that Volcano does not count. Its status looks
like that of a vcjob that waits for room or images in its member. The controller waits longer for
it, the longer the more such vcjobs there are, and then recreates it. Any other Pending vcjob just
waits.

Programs that make no steps: the record in the status, and the reaction of `onNoProgress`.

The reader of logs has looked twice before a stall is here. A restart waits for longer than a
notice: the reader may be wrong about a pause that the program has not announced.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.choices import OnNoProgress
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import Silence
from hyperjob_core.api.training import StallStatus, Suspect
from hyperjob_core.api.wire import count, rfc3339
from hyperjob_core.text import listed
from hyperjob_engine.lifecycle.decisions import (
    End,
    Member,
    Recreation,
    Restart,
    reachable,
    restarts_spent,
    with_all,
)
from hyperjob_engine.model.observed import FailurePolicy, Observed
from hyperjob_engine.model.planned import DeletionCause
from hyperjob_engine.model.subjobs import Child
from hyperjob_engine.model.training import LEAST_RESTART, Hang, Stall, latest_training
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.reasons.stacks import Survey, no_steps_text

TIMES: Final = 4
"""After so many steps the controller stops, and the message asks a person to look."""
FEW: Final = 3
"""With more silent sub-jobs of a HyperJob the controller assumes a delay and waits."""
UNCOUNTED: Final = timedelta(seconds=10)
"""How long a ResourceBinding without a counted Work may stay so before the first step."""
IMAGES: Final = 3
"""The factor of the wait for a vcjob with pods: they may wait for images."""


class SilenceStep(enum.StrEnum):
    """What the controller does about a cluster that does not report."""

    WAIT = "Wait"
    ASK = "Ask"
    MAKE_AGAIN = "MakeAgain"


_MISSING: Final[Mapping[DeletionCause, str]] = {
    DeletionCause.NOTHING_REPORTED: "nothing",
    DeletionCause.NO_PROGRESS: "no progress",
    DeletionCause.NO_PODS: "no pods",
}
_ENDS: Final[Mapping[SilenceStep, str]] = {
    SilenceStep.WAIT: ", like the clusters of many other sub-jobs",
    SilenceStep.ASK: "; the controller has Karmada apply it again",
    SilenceStep.MAKE_AGAIN: "; the controller recreates it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceCheck:
    """The next step about a silent sub-job, which report it lacks, and the message of its status.

    The message is empty before the silence timeout.
    """

    step: SilenceStep = SilenceStep.WAIT
    record: Silence | None = None
    lacks: DeletionCause | None = None
    message: str = ""
    wait: timedelta | None = None


_HEARD: Final = SilenceCheck()


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentCounts:
    """How many sub-jobs have no report, and no progress, for longer than the silence timeout."""

    silent: int = 0
    unmoved: int = 0


_NONE: Final = SilentCounts()


def count_silent(observed: Observed, members: Sequence[Member]) -> SilentCounts:
    """Count the sub-jobs that are silent for longer than the silence timeout."""
    limit = observed.now - observed.limits.silence
    found = [
        child.report is None
        for _, child in members
        if (since := _silent_since(observed, child)) is not None and since <= limit
    ]
    return SilentCounts(silent=sum(found), unmoved=len(found) - sum(found))


def check_silence(
    observed: Observed, child: Child, *, counts: SilentCounts = _NONE
) -> SilenceCheck:
    """Return the next step for a silent sub-job; `counts` are those of all silent ones.

    In order: the time without a sign is not over; the wait after the last step is not over; too
    many are silent; `TIMES` steps were in vain; else the next step, with a wait twice as long.
    """
    if child.report is not None and not _may_be_lost(observed, child):
        return _HEARD
    record = child.record.silence if child.record is not None else None
    since = _silent_since(observed, child)
    if since is None:
        return _HEARD if record is None else SilenceCheck(record=record)
    uncounted = _uncounted(child)
    now, due = observed.now, since + (UNCOUNTED if uncounted else observed.limits.silence)
    if child.report is not None:
        patience = IMAGES if child.report.pods.total else 1
        due += observed.limits.silence * max(patience, counts.unmoved / FEW)
    if now < due:
        text = _message(child, since, SilenceStep.ASK) if _is_asked(child) else ""
        return SilenceCheck(record=record, message=text, wait=due - now)
    if record is not None and record.retry_time is not None and now < record.retry_time:
        wait = record.retry_time - now
        step = _step(child, record.times)
        return SilenceCheck(record=record, message=_message(child, since, step), wait=wait)
    times = record.times if record is not None else 0
    if counts.silent > FEW and child.report is None and not uncounted:
        # Each report of a cluster triggers a pass, which decides again.
        text = _message(child, since, SilenceStep.WAIT)
        return SilenceCheck(record=record, message=text)
    if times >= TIMES:
        text = _message(child, since, _step(child, times))
        return SilenceCheck(record=record, message=f"{text}; {_advice(observed, child)}")
    times += 1
    step, wait = _step(child, times), observed.limits.silence * 2**times
    return SilenceCheck(
        step=step,
        record=Silence(times=times, retry_time=now.replace(microsecond=0) + wait),
        lacks=_lacks(child),
        message=_message(child, since, step),
        wait=wait,
    )


def _silent_since(observed: Observed, child: Child) -> datetime | None:
    """Return since when a sub-job is silent; None if it is not."""
    binding = child.binding
    if not child.exists or child.is_terminal or binding is None:
        return None
    if child.report is not None and not _may_be_lost(observed, child):
        return None
    if binding.suspended:
        return None
    since = binding.applied_since if binding.applied else binding.undelivered_since
    if _uncounted(child):
        since = binding.workless_since
    if since is None or binding.cluster not in reachable(observed):
        return None
    return since


def _uncounted(child: Child) -> bool:
    """Return whether Karmada says that a sub-job without any report has no Work."""
    return child.report is None and child.binding is not None and bool(child.binding.workless_since)


def _workless(child: Child) -> bool:
    """Return whether Karmada has made no Work of a sub-job without any report."""
    binding = child.binding
    since = binding and (binding.workless_since or binding.undelivered_since)
    return child.report is None and bool(since)


def _may_be_lost(observed: Observed, child: Child) -> bool:
    """Return whether Volcano may have lost a vcjob: one of its name was deleted just before it."""
    moved = child.report is None or not child.report.unmoved
    return not moved and child.name in observed.followers


def _step(child: Child, times: int) -> SilenceStep:
    """Return the next step after `times` steps; a sub-job that has run is never recreated."""
    again = child.report is not None or (times == TIMES and child.phase is JobPhase.UNKNOWN)
    return SilenceStep.MAKE_AGAIN if again else SilenceStep.ASK


def _is_asked(child: Child) -> bool:
    """Return whether Karmada applies a sub-job again, as it was asked to, of which nothing came."""
    record = child.record
    if record is None or record.silence is None or record.reason != Reason.NOTHING_REPORTED:
        return False
    return _step(child, record.silence.times) is SilenceStep.ASK


def _lacks(child: Child) -> DeletionCause:
    """Return which report of a silent sub-job is missing from its cluster."""
    if child.report is None:
        return DeletionCause.NOTHING_REPORTED
    return DeletionCause.NO_PROGRESS if child.report.pods.total else DeletionCause.NO_PODS


def _message(child: Child, since: datetime, step: SilenceStep) -> str:
    """Return which report of a cluster is missing, and what the controller does about that.

    With the step WAIT the clusters of many other sub-jobs do not report either.
    """
    what, time = _MISSING[_lacks(child)], rfc3339(since)
    text = (
        f"cluster {child.cluster} has reported {what} since Karmada applied the Job there at {time}"
    )
    if _workless(child):
        text = (
            f"Karmada has made no Work of {child.name} for {child.cluster} since {time}"
            f" (the Events of ResourceBinding {binding_name(child.name)} say why)"
        )
    return f"{text}{_ENDS[step]}"


def _advice(observed: Observed, child: Child) -> str:
    """Return what a person does about a cluster for which the controller's steps did not help."""
    tried = f"this did not help {TIMES} times"
    if _workless(child):
        return f"{tried}: look for an OverridePolicy that does not fit its vcjob"
    if child.report is not None:
        return f"{tried}: its PodGroup in the cluster has the reason"
    return (
        f"{tried}: see in the cluster whether Job {child.name} is there and Volcano's controller"
        f" runs, then: kubectl hyperjob restart {observed.hyperjob.name} --job {child.name}"
    )


_PATIENCES: Final = 3
_SUSPECTS: Final = 16


def stall_of(observed: Observed, members: Sequence[Member]) -> StallStatus | None:
    """Return the stall of the present attempts; None while their programs make steps.

    The record in the status stays until a program makes a step: a controller that restarts has
    read no log yet.
    """
    hang = observed.hang or Hang()
    before = table.read(StallStatus, observed.hyperjob.status.get("stall"))
    if before is None and not hang.stalls:
        return None
    running = {child.name: child for _, child in members if _runs(child)}
    found = {
        name: stall
        for name, stall in hang.stalls.items()
        if name in running and stall.attempt == running[name].attempt
    }
    if found:
        return _found_stall(observed, running, found, hang)
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
