"""Sort each sub-job of the spec: ended, existing, blocked, or missing. It places no sub-job."""

from datetime import timedelta
from typing import Final

from hyperjob_engine.expansion.adopt import adoptions, conflict
from hyperjob_engine.expansion.auto import is_admitted
from hyperjob_engine.expansion.growth import grown_name, growth
from hyperjob_engine.expansion.resize import resize
from hyperjob_engine.gang.giveback import backs_off, gave_back
from hyperjob_engine.gang.places import pinned_place_of
from hyperjob_engine.gang.rejections import check_rejection
from hyperjob_engine.lifecycle.delete import deletion
from hyperjob_engine.lifecycle.outage import gives_back
from hyperjob_engine.lifecycle.silence import check_silence
from hyperjob_engine.lifecycle.stops import pods_of_stop
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Job, QueueAdmission
from hyperjob_engine.model.planned import AskAgain, DeletionCause, Look
from hyperjob_engine.model.subjobs import SubJob, queue_of
from hyperjob_engine.reasons.detail import (
    BindingTaken,
    Delayed,
    Dependencies,
    Detail,
    Leaving,
    NotAdmitted,
    Plain,
    PodsLeft,
    Quoted,
    ServerRefused,
    SilenceCode,
    SilenceStep,
    StopGoesOn,
    WaitsToGrow,
)
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.steps.draft import Draft
from hyperjob_engine.steps.requeue import until_look

_SILENT: Final = {
    SilenceCode.NOTHING: DeletionCause.NOTHING_REPORTED,
    SilenceCode.NO_WORK: DeletionCause.NOTHING_REPORTED,
    SilenceCode.NO_PODS: DeletionCause.NO_PODS,
    SilenceCode.NO_PROGRESS: DeletionCause.NO_PROGRESS,
}


def sort(draft: Draft, sub_job: SubJob, child: Child) -> None:
    """Sort one wanted sub-job: the draft then has it in exactly one way.

    The sub-job has ended or exists (`secured`, with its cluster in `standing` or `pinned_places`),
    is blocked with a reason, or is missing. Of several reasons the first in the order of the checks
    counts. An existing sub-job that lacks its PropagationPolicy is missing, too.
    """
    hyperjob, name, record = draft.observed.hyperjob, child.name, child.record
    if child.is_outdated:
        draft.actions += adoptions(hyperjob, sub_job, child)
        draft.actions += deletion(child)
        draft.blocked[name] = Reason.RESTARTING, Quoted(record.message) if record else None
        return
    if child.is_terminal:
        draft.secured += 1
        draft.standing.append((sub_job.group.name, child.cluster))
        return
    in_the_way = conflict(child, hyperjob.name)
    if in_the_way is not None:
        passing = in_the_way.of_predecessor
        reason = Reason.BEING_DELETED if passing else Reason.NAME_CONFLICT
        draft.blocked[name] = reason, in_the_way
        if not passing:
            draft.actions += deletion(child, why=DeletionCause.WOULD_TAKE_JOB)
        return
    draft.actions += adoptions(hyperjob, sub_job, child)
    if hyperjob.suspend:
        draft.actions += deletion(child)
        draft.blocked[name] = Reason.SUSPENDED, Plain.SUSPENDED
        return
    if held_back := _held_back(draft, child):
        draft.blocked[name] = held_back
        return
    draft.rejection_checks[name] = check_rejection(child, now=draft.observed.now)
    refused = _is_refused(draft, name)
    draft.silence_checks[name] = silence_check = check_silence(
        draft.observed, child, counts=draft.silent_counts
    )
    if silence_check.step is SilenceStep.MAKE_AGAIN:
        draft.actions += deletion(
            child, why=_SILENT[silence_check.silent.code] if silence_check.silent else None
        )
        reason = Reason.NOTHING_REPORTED if child.report is None else Reason.PODS_PENDING
        draft.blocked[name] = reason, silence_check.silent
        return
    if child.job is None or not child.exists:
        _sort_missing(draft, sub_job, child, refused=refused)
        return
    if silence_check.step is SilenceStep.ASK and silence_check.record is not None:
        mark = str(silence_check.record.times)
        draft.actions.append(AskAgain(name=name, uid=child.job.uid, mark=mark))
    _sort_standing(draft, sub_job, child)
    if not refused:
        _complete(draft, sub_job, child, child.job)


def _complete(draft: Draft, sub_job: SubJob, child: Child, job: Job) -> None:
    """Give an existing sub-job the size of the spec, and the PropagationPolicy that it lacks."""
    change = resize(job, sub_job.size.template)
    if change is not None and not _waits_to_grow(draft, sub_job, child):
        draft.actions.append(change)
    if child.policy is None and not backs_off(draft.observed):
        draft.missing[child.name] = sub_job, child


def _waits_to_grow(draft: Draft, sub_job: SubJob, child: Child) -> bool:
    """Return whether a running sub-job waits for its queue to admit its growth."""
    verdict = draft.observed.verdict
    if verdict is None or growth(draft.observed, sub_job, child) is None:
        return False
    if grown_name(child.name) in verdict.admitted:
        return False
    grows = WaitsToGrow(sub_job.size.pods, verdict.wait)
    draft.blocked[child.name] = Reason.WAITING_FOR_QUEUE, grows
    return True


def _held_back(draft: Draft, child: Child) -> tuple[Reason, Detail] | None:
    """Return why the controller must not create a missing sub-job yet; None if it may."""
    if child.exists:
        return None
    stop = draft.observed.hyperjob.stop
    if stop is not None:
        return Reason.RESTARTING, StopGoesOn(stop.until, pods_of_stop(draft.observed, stop))
    left = draft.observed.pods_left.get(child.name)
    if left and child.job is None:
        return Reason.BEING_DELETED, PodsLeft(left)
    if child.name in draft.waiting.for_what:
        return Reason.WAITING_FOR_DEPENDENCY, Dependencies(draft.waiting.for_what[child.name])
    record, now = child.record, draft.observed.now
    if record is not None and record.retry_time is not None and now < record.retry_time:
        return Reason.RESTARTING, Delayed(record.message, record.retry_time)
    return None


def _is_refused(draft: Draft, name: str) -> bool:
    """Return whether the API server refused a sub-job's object and the retry is not due yet."""
    refusal = draft.observed.refusals.get(name)
    if refusal is None or draft.observed.now >= refusal.retry_at:
        return False
    draft.blocked[name] = (
        Reason.REFUSED if refusal.gives_back_at is None else Reason.FAILED_CREATE,
        ServerRefused(refusal.reason, refusal.message, gives_back=gives_back(draft.observed)),
    )
    return True


def _sort_standing(draft: Draft, sub_job: SubJob, child: Child) -> None:
    """Record the cluster of an existing sub-job, and whether it may move."""
    draft.secured += 1
    pinned = pinned_place_of(draft.observed, sub_job, child, draft.excluded(child))
    if pinned is not None:
        draft.pinned_places[child.name] = pinned, sub_job, child
    elif child.cluster:
        draft.standing.append((sub_job.group.name, child.cluster))


def _not_admitted(draft: Draft, sub_job: SubJob) -> tuple[Reason, Detail | None]:
    """Return why a sub-job that is not admitted waits: for room, or for its queue."""
    observed, verdict = draft.observed, draft.observed.verdict
    lacks = verdict.unplaced.get(sub_job.name) if verdict is not None else None
    if observed.admission is not QueueAdmission.NONE or verdict is None:
        return Reason.WAITING_FOR_QUEUE, NotAdmitted(queue_of(sub_job.size.template), lacks)
    split = draft.split.waiting.get(sub_job.group.name)
    return split or (Reason.INSUFFICIENT_CAPACITY, lacks or verdict.wait)


def _sort_missing(draft: Draft, sub_job: SubJob, child: Child, *, refused: bool) -> None:
    """Record a sub-job as missing, or as blocked with the reason.

    The first reason that applies is recorded. The reason of a refused creation is recorded before
    this step: such a sub-job becomes neither missing nor blocked here.
    """
    observed, name = draft.observed, child.name
    leaving = [
        Leaving(kind)
        for kind, item in (("Job", child.job), ("PropagationPolicy", child.policy))
        if item is not None and item.deleting
    ]
    if child.job is None and child.left_behind:
        leaving.append(Leaving("ResourceBinding", child.left_behind))
    if until_look(child, now=observed.now) == timedelta():
        draft.actions.append(Look(name=name))
    if child.job is None and child.stranger:
        taken = BindingTaken(child.left_behind, child.stranger)
        draft.blocked[name] = Reason.NAME_CONFLICT, taken
    elif leaving:
        draft.blocked[name] = Reason.BEING_DELETED, leaving[0]
    elif refused:
        return
    elif backs_off(observed):
        left = child.record.excluded(observed.now) if child.record is not None else ()
        draft.blocked[name] = Reason.GANG_BACK_OFF, gave_back(observed, left, name=name)
    elif observed.verdict is not None and not is_admitted(
        observed.hyperjob.name, sub_job, observed.verdict
    ):
        draft.blocked[name] = _not_admitted(draft, sub_job)
    else:
        draft.missing[name] = sub_job, child
