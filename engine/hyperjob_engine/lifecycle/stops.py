"""Planned stops of sub-jobs that train: the saved step, the wait for the end, and the lost work.

The controller records a planned stop in the status before it deletes a vcjob. It recreates no
sub-job until all stopped ones have ended or their grace period has passed: all then resume from the
last step that all have saved. Pure: the progress of the programs comes from their logs, and may be
unknown.

No sub-job is stopped before Karmada keeps its claims. Karmada deletes the copy of a
PersistentVolumeClaim in a cluster with the last vcjob there that uses it, and a dynamically
provisioned volume goes with its claim. So each cluster in which pods may have written into a claim
keeps its copy until a user deletes the claim in the Karmada API server.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.duration import later, seconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import ClaimStatus
from hyperjob_core.api.stops import CheckpointStatus, LostWork, StopCause, StopStatus
from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.lifecycle.decisions import Member, Restart
from hyperjob_engine.model.claimcopies import Claim
from hyperjob_engine.model.observed import Observed, Ownership, grace_of
from hyperjob_engine.model.planned import (
    Action,
    DeleteChild,
    DeleteHyperJob,
    KeepClaim,
    Plan,
    Repin,
)
from hyperjob_engine.model.subjobs import Child
from hyperjob_engine.model.training import latest_training
from hyperjob_engine.reasons.reason import Reason, checkpoint_of, unkept_text

LONGEST_GRACE: Final = 24 * 3600
"""Seconds for which a planned stop waits at most, whatever the pods' grace period is."""
OPENED_WITHIN: Final = timedelta(seconds=10)
"""The longest time for which the deletion of stopped sub-jobs waits for their logs to be open."""
ON_ITS_WAY: Final = timedelta(seconds=5)
"""The longest time from the deletion in the control plane to the SIGTERM in the member."""

_REPORTED_WITHIN: Final = timedelta(seconds=10)
"""The longest time from the creation of a vcjob to Karmada's first report of its pods."""

_CAUSES: Final[Mapping[Reason, StopCause]] = {
    Reason.CLUSTER_LOST: StopCause.CLUSTER_LOST,
    Reason.RESTART_REQUESTED: StopCause.RESTARTED,
    Reason.MIGRATE_REQUESTED: StopCause.MIGRATED,
    Reason.RECLAIMED: StopCause.RECLAIMED,
    Reason.PREEMPTED: StopCause.PREEMPTED,
    Reason.RESIZED: StopCause.RESIZED,
}
_ALIVE: Final = frozenset({JobPhase.RUNNING, JobPhase.COMPLETING, JobPhase.RESTARTING})


def cause_of(decided: Restart) -> StopCause:
    """Return the cause of the stops of a restart: a failure, unless no sub-job of it has failed."""
    if decided.makes_way is not None:
        return _CAUSES[decided.makes_way]
    reasons = {again.reason for again in decided.again} - {Reason.RESTARTED_WITH_ALL}
    causes = {_CAUSES.get(reason, StopCause.FAILURE) for reason in reasons}
    return causes.pop() if len(causes) == 1 else StopCause.FAILURE


def stopped(
    observed: Observed, members: Sequence[Member], names: Collection[str], cause: StopCause
) -> Object:
    """Return the status fields that record a stop of the named sub-jobs."""
    reports = latest_reports(observed)
    fields = _progress_at_stop(observed, reports, names, cause)
    checkpoint = observed.hyperjob.checkpoint
    running = [
        member for member in members if member[1].name in names and may_run(observed, member[1])
    ]
    if checkpoint is None or not cause.is_planned or not running:
        return fields
    grace = min(
        LONGEST_GRACE,
        max(
            grace_of(sub_job.size.template, default=checkpoint.grace_seconds)
            for sub_job, _ in running
        ),
    )
    stop = StopStatus(
        cause=cause,
        since=observed.now,
        until=later(observed.now, seconds(grace + 1) + ON_ITS_WAY),
        jobs=tuple(child.name for _, child in running),
    )
    return fields | {"stop": table.write(stop)}


def suspending(observed: Observed, members: Sequence[Member]) -> Object | None:
    """Return the status fields that record a suspension; None if none is due or it is recorded."""
    hyperjob = observed.hyperjob
    if not hyperjob.suspend or hyperjob.checkpoint is None or hyperjob.stop is not None:
        return None
    names = running_jobs(observed, members)
    if not names:
        return None
    return stopped(observed, members, names, StopCause.SUSPENDED)


def running_jobs(observed: Observed, members: Sequence[Member]) -> set[str]:
    """Return the names of the sub-jobs whose pods may run."""
    return {child.name for _, child in members if may_run(observed, child)}


def going_on(observed: Observed, members: Sequence[Member]) -> Object:
    """Return the present status fields of stops: `stop`, `checkpoint` and `lostWork`.

    During a stop the last progress lines of its programs count. After a program has reported the
    step from which it resumed, the steps in between are lost work.
    """
    hyperjob, reports = observed.hyperjob, latest_reports(observed)
    fields: Object = {
        name: hyperjob.status[name]
        for name in ("checkpoint", "stop", "lostWork")
        if name in hyperjob.status
    }
    stop = hyperjob.stop
    if stop is not None:
        fields |= _progress_at_stop(observed, reports, stop.jobs, stop.cause)
        if is_over(observed, members):
            fields["stop"] = None
        return fields
    return fields | _settled(observed, reports)


def unopened(observed: Observed) -> timedelta | None:
    """Return for how long the deletion waits until the logs of its pods are open; None: no longer.

    A log is gone with its pod: what a program saves at SIGTERM is in an open one only.
    """
    stop = observed.hyperjob.stop
    trainings = observed.trainings
    if stop is None or all(
        name not in trainings or trainings[name].followed or trainings[name].ended
        for name in stop.jobs
    ):
        return None
    wait = (stop.since or stop.until) + OPENED_WITHIN - observed.now
    return wait if wait > timedelta() else None


def is_over(observed: Observed, members: Iterable[Member]) -> bool:
    """Return whether all sub-jobs of the planned stop have ended, or its time limit has passed.

    The limit does not count while a member shows pods of them: two attempts never run together.
    """
    stop = observed.hyperjob.stop
    if stop is None:
        return True
    if observed.now >= stop.until and not pods_of_stop(observed, stop):
        return True
    by_name = {member[1].name: member for member in members}
    return all(
        _has_ended(observed, by_name[name]) if name in by_name else _has_left(observed, name)
        for name in stop.jobs
    )


def _has_left(observed: Observed, name: str) -> bool:
    """Return whether a stopped sub-job that the HyperJob has no more is gone.

    What an elastic HyperJob gave up saves a part of the checkpoint from which the others resume.
    """
    if observed.hyperjob.elastic is None:
        return True
    return name not in observed.jobs and observed.pods_left.get(name) == 0


def pods_of_stop(observed: Observed, stop: StopStatus) -> int | None:
    """Return the pods that the members have of the stopped sub-jobs; None if any is not known."""
    found = [observed.pods_left.get(name) for name in stop.jobs]
    known_pods = [each for each in found if each is not None]
    return sum(known_pods) if len(known_pods) == len(found) or any(known_pods) else None


def latest_reports(observed: Observed) -> dict[str, SubJobTraining]:
    """Return the last progress of each sub-job of the first replicatedJob that has any.

    `status.training` has the progress of the same replicatedJob, by `combined`. There a sub-job
    whose progress is of an earlier attempt ceases to count with the first progress line of another
    one in the present attempt: the field shows the program that runs. Here it counts until the log
    of its later attempt has ended without a progress line, because all must have saved the step
    from which they start. After such an end it does not count: a launcher such as torchrun may
    start the process that prints the lines in another sub-job each time.
    """
    found: dict[str, SubJobTraining] = {}
    group = ""
    for name, record in observed.hyperjob.records.items():
        read, before = observed.trainings.get(name), record.training
        silent = read is not None and read.ended and not read.reported
        if silent and read is not None and before is not None and read.attempt > before.attempt:
            continue
        training = latest_training(read, before)
        if training is None or not training.reported or (group and record.replicated_job != group):
            continue
        group = record.replicated_job
        found[name] = training
    return found


def _progress_at_stop(
    observed: Observed,
    reports: Mapping[str, SubJobTraining],
    names: Collection[str],
    cause: StopCause,
) -> Object:
    """Return the status fields with the step that all have saved and the step that was reached.

    A second stop before any new progress line adds nothing to the first. A late line with the step
    from which the program resumed completes the record of the first.
    """
    settled = _settled(observed, reports)
    entry = checkpoint_of(observed.hyperjob.status | settled)
    saved = [each.saved_step for each in reports.values() if each.saved_step is not None]
    if saved:
        entry = replace(entry, resume_step=min(saved))
    stopped_reports = [reports[name] for name in names if name in reports]
    if stopped_reports and (observed.hyperjob.stop is not None or entry.stopped_step is None):
        furthest = max(stopped_reports, key=lambda each: (each.step, each.updated))
        entry = replace(
            entry,
            stopped_step=furthest.step,
            stopped_time=furthest.updated,
            kept_step=furthest.start_step if furthest.saved_step is None else furthest.saved_step,
            kept_time=furthest.kept_until,
            stop_cause=cause,
        )
    found = table.write(entry)
    return {**settled, "checkpoint": found} if found else settled


def _settled(observed: Observed, reports: Mapping[str, SubJobTraining]) -> Object:
    """Return the status fields with the cost of the last stop, after a program has resumed.

    They are empty before that. Afterwards `checkpoint` has `resumeStep` alone, and `lostWork` the
    steps between the step before the stop and the step from which the first program resumed.
    """
    status = observed.hyperjob.status
    entry = checkpoint_of(status)
    at, reached, cause = entry.stopped_time, entry.stopped_step, entry.stop_cause
    if at is None or reached is None or cause is None:
        return {}
    again = [each.start_step for each in reports.values() if each.started > at]
    if not again:
        return {}
    steps, took = max(0, reached - min(again)), timedelta()
    made, since = reached - (entry.kept_step or 0), entry.kept_time
    if since is not None and made > 0 and since < at:  # else the speed before the stop is unknown
        took = (at - since) * (steps / made)
    lost = {each.cause: each for each in table.read_all(LostWork, status.get("lostWork"))}
    before = lost.get(cause, LostWork(cause=cause))
    lost[cause] = replace(
        before,
        stops=before.stops + 1,
        steps=before.steps + steps,
        milliseconds=before.milliseconds + round(took / timedelta(milliseconds=1)),
    )
    rest = table.write(CheckpointStatus(resume_step=entry.resume_step))
    return {
        "checkpoint": rest or None,
        "lostWork": [table.write(lost[each]) for each in sorted(lost)],
    }


def may_run(observed: Observed, child: Child) -> bool:
    """Return whether pods of a sub-job may run, by Karmada's report or by its member.

    A member shows pods before Karmada reports that they run. A member that does not show them may
    be late, if Karmada reports pods or may still report some.
    """
    if not child.exists or child.is_terminal or child.phase in _ALIVE:
        return child.exists and not child.is_terminal
    left = observed.pods_left.get(child.name, 0)
    if left is not None:
        return left > 0
    if child.report is not None and child.report.pods.total > 0:
        return True
    created = child.job.created if child.job is not None else None
    binding = child.binding
    is_sent = binding is not None and (binding.applied or not binding.dispatching_suspended)
    return is_sent and created is not None and observed.now - created < _REPORTED_WITHIN


def is_left(observed: Observed, child: Child) -> bool:
    """Return whether the vcjob of a sub-job is there, or pods of it may run.

    What its member does not show ends with its grace period.
    """
    job, left = child.job, observed.pods_left.get(child.name)
    if job is not None and job.ownership is not Ownership.FOREIGN and not child.is_terminal:
        return True
    if left is not None:
        return left > 0
    until = observed.ending.get(child.name)
    return until is not None and observed.now < until


def _has_ended(observed: Observed, member: Member) -> bool:
    """Return whether a stopped sub-job has no pod left, and its last lines are read.

    Without knowledge of its pods, the end of its log counts if it has a single pod.
    """
    sub_job, child = member
    if child.is_terminal:
        return True
    if child.job is not None:
        return False  # its vcjob still exists
    training = observed.trainings.get(child.name)
    left = observed.pods_left.get(child.name)
    if left is not None:
        return not left and (training is None or training.ended)
    return sub_job.size.pods == 1 and training is not None and training.ended


_RETRY: Final = timedelta(seconds=5)
"""When a held stop is planned again, if no event of the claim's ResourceBinding causes it."""
_FIELD: Final = "persistentVolumeClaims"


def keeping(observed: Observed, plan: Plan) -> Plan:
    """Return a plan that keeps claims first, and holds the stops that would delete their copies."""
    if not observed.claims and _FIELD not in observed.hyperjob.status:
        return plan
    unkept = {claim.name: _unkept(observed, claim) for claim in observed.claims}
    users = frozenset(name for bindings in unkept.values() for name in bindings)
    lost = {name: sorted(frozenset().union(*each.values())) for name, each in unkept.items()}
    refused = {name for name, each in observed.refusals.items() if each.retry_at > observed.now}
    keeps = [
        KeepClaim(
            name=claim.name,
            uid=claim.uid,
            clusters=tuple(lost[claim.name]),
            by_user=claim.is_of_user,
        )
        for claim in observed.claims
        if lost[claim.name] and claim.name not in refused
    ]
    going = [action for action in plan.actions if not _is_held(action, users)]
    wait = plan.requeue_after
    if len(going) < len(plan.actions):
        wait = _RETRY if wait is None else min(wait, _RETRY)
    return replace(
        plan,
        actions=(*keeps, *going),
        status=_with_claims(observed, plan.status, lost),
        requeue_after=wait,
    )


def _unkept(observed: Observed, claim: Claim) -> Mapping[str, frozenset[str]]:
    """Return the unkept clusters of a claim, by the name of the ResourceBinding that needs it.

    A suspended ResourceBinding has no pods yet that could have written into the claim.
    """
    found = {}
    for name, binding in observed.bindings.items():
        lost = claim.needed.get(name, frozenset()) - claim.kept
        if lost and not binding.suspended:
            found[name] = lost
    return found


def _is_held(action: Action, users: frozenset[str]) -> bool:
    """Return whether an action removes the vcjob of an unkept copy from its cluster."""
    if isinstance(action, DeleteHyperJob):
        return bool(users)
    return isinstance(action, DeleteChild | Repin) and binding_name(action.name) in users


def _with_claims(
    observed: Observed, status: Object | None, lost: Mapping[str, Sequence[str]]
) -> Object | None:
    """Return a status with the copies of claims that stay, and why those of `lost` do not."""
    if status is None:
        return None
    entries = []
    for claim in sorted(observed.claims, key=lambda each: each.name):
        refusal, gone = observed.refusals.get(claim.name), lost[claim.name]
        why = unkept_text(gone, refusal.message) if refusal is not None and gone else ""
        if claim.kept or why:
            clusters = tuple(sorted(claim.kept))
            entries.append(
                table.write(ClaimStatus(name=claim.name, clusters=clusters, message=why))
            )
    if not entries and _FIELD not in observed.hyperjob.status:
        return status
    return {**status, _FIELD: entries or None}
