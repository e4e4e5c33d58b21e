"""Sort each sub-job of the spec: ended, existing, blocked, or missing. It places no sub-job."""

from datetime import timedelta

from hyperjob_core.api.wire import rfc3339, timestamp
from hyperjob_core.text import listed
from hyperjob_engine.expansion.auto import is_admitted
from hyperjob_engine.expansion.members import adoptions, conflict, grown_name, growth, resize
from hyperjob_engine.gang.gang import check_rejection, pinned_place_of
from hyperjob_engine.gang.giveback import backs_off, gave_back, gives_back
from hyperjob_engine.lifecycle.decisions import deletion
from hyperjob_engine.lifecycle.silence import SilenceStep, check_silence
from hyperjob_engine.lifecycle.stops import pods_of_stop
from hyperjob_engine.model.observed import Job, QueueAdmission
from hyperjob_engine.model.planned import AskAgain, DeleteWork, DeletionCause, Look
from hyperjob_engine.model.subjobs import Child, SubJob, queue_of
from hyperjob_engine.reasons.reason import Blocked, Reason
from hyperjob_engine.steps.draft import Draft
from hyperjob_engine.steps.requeue import until_look


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
        draft.blocked[name] = Blocked(Reason.RESTARTING, record.message if record else "")
        return
    if child.is_terminal:
        draft.secured += 1
        draft.standing.append((sub_job.group.name, child.cluster))
        return
    in_the_way = conflict(child, hyperjob.name)
    if in_the_way is not None:
        draft.blocked[name] = in_the_way
        if in_the_way.reason is Reason.NAME_CONFLICT:
            draft.actions += deletion(child, why=DeletionCause.WOULD_TAKE_JOB)
        return
    draft.actions += adoptions(hyperjob, sub_job, child)
    draft.actions += _forgotten(draft, child)
    if hyperjob.suspend:
        draft.actions += deletion(child)
        draft.blocked[name] = Blocked(Reason.SUSPENDED, "suspended")
        return
    # Before the pods: those that are left may be of a vcjob that no cache has.
    if until_look(child, now=draft.observed.now) == timedelta():
        draft.actions.append(Look(name=name))
    if held_back := _held_back(draft, child):
        draft.blocked[name] = held_back
        return
    draft.rejection_checks[name] = check_rejection(child, now=draft.observed.now)
    refused = _is_refused(draft, name)
    draft.silence_checks[name] = silence_check = check_silence(
        draft.observed, child, counts=draft.silent_counts
    )
    if silence_check.step is SilenceStep.MAKE_AGAIN:
        draft.actions += deletion(child, why=silence_check.lacks)
        reason = Reason.NOTHING_REPORTED if child.report is None else Reason.PODS_PENDING
        draft.blocked[name] = Blocked(reason, silence_check.message)
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
    """Return whether a running sub-job waits for its queue to admit its growth.

    The trouble of its cluster, if any, is the message instead.
    """
    verdict = draft.observed.verdict
    if verdict is None or growth(draft.observed, sub_job, child) is None:
        return False
    if grown_name(child.name) in verdict.admitted:
        return False
    if child.name not in draft.losses:
        text = f"waits to grow to {sub_job.size.pods} pods: {verdict.message}"
        draft.blocked[child.name] = Blocked(Reason.WAITING_FOR_QUEUE, text)
    return True


def _forgotten(draft: Draft, child: Child) -> list[DeleteWork]:
    """Delete the Work of a sub-job that Karmada has forgotten, with the vcjob of its member.

    Seen with Karmada 1.19: where a vcjob is deleted within a second after its creation, Karmada's
    binding controller writes the Work again after it has deleted it with the ResourceBinding.
    """
    clusters = _keeping(draft, child, draft.observed.limits.silence)
    return [DeleteWork(name=child.name, clusters=clusters)] if clusters else []


def _keeping(draft: Draft, child: Child, time: timedelta) -> tuple[str, ...]:
    """Return the members that have not deleted the pods of a sub-job without a vcjob for `time`."""
    since = timestamp(child.record.last_transition_time) if child.record is not None else None
    if child.exists or child.policy is not None or child.left_behind or since is None:
        return ()
    is_due = draft.observed.now - since >= time
    return draft.observed.pods_staying.get(child.name, ()) if is_due else ()


def _held_back(draft: Draft, child: Child) -> Blocked | None:
    """Return why the controller must not create a missing sub-job yet; None if it may."""
    if child.exists:
        return None
    stop = draft.observed.hyperjob.stop
    if stop is not None:
        left, text = pods_of_stop(draft.observed, stop), "waits until all sub-jobs that are stopped"
        if left is None:  # the controller does not know the pods
            text = f"{text} have ended, until {rfc3339(stop.until)} at the latest"
            return Blocked(Reason.RESTARTING, text)
        return Blocked(Reason.RESTARTING, f"{text} have ended: {left} of their pods are left")
    left = draft.observed.pods_left.get(child.name)
    if left and child.job is None:
        text = f"waits until the pods of its earlier attempt have ended: {left} left"
        # Also without a Work: its Cluster was deleted while it did not answer, and joined again.
        if where := _keeping(draft, child, 2 * draft.observed.limits.silence):
            text += (
                f", and {listed(where)} has a vcjob that Karmada does not know: hyperjob"
                " after-restore --apply lets Karmada have it and its pods again"
            )
        return Blocked(Reason.BEING_DELETED, text)
    if child.name in draft.waiting.for_what:
        return Blocked(Reason.WAITING_FOR_DEPENDENCY, draft.waiting.for_what[child.name])
    record, now = child.record, draft.observed.now
    if record is not None and record.retry_time is not None and now < record.retry_time:
        return Blocked(Reason.RESTARTING, record.message, record.retry_time)
    return None


def _is_refused(draft: Draft, name: str) -> bool:
    """Return whether the API server refused a sub-job's object and the retry is not due yet."""
    refusal = draft.observed.refusals.get(name)
    if refusal is None or draft.observed.now >= refusal.retry_at:
        return False
    text = f"{refusal.reason}: {refusal.message}"
    if gives_back(draft.observed):
        text = f"{text}; others may use its room meanwhile"
    known = refusal.gives_back_at is None
    draft.blocked[name] = Blocked(Reason.REFUSED if known else Reason.FAILED_CREATE, text)
    return True


def _sort_standing(draft: Draft, sub_job: SubJob, child: Child) -> None:
    """Record the cluster of an existing sub-job, and whether it may move."""
    draft.secured += 1
    pinned = pinned_place_of(draft.observed, sub_job, child, draft.excluded(child))
    if pinned is not None:
        draft.pinned_places[child.name] = pinned, sub_job, child
    elif child.cluster:
        draft.standing.append((sub_job.group.name, child.cluster))


def _not_admitted(draft: Draft, sub_job: SubJob) -> Blocked:
    """Return why a sub-job that is not admitted waits: for room, or for its queue."""
    observed, verdict = draft.observed, draft.observed.verdict
    lacks = verdict.unplaced.get(sub_job.name, "") if verdict is not None else ""
    if observed.admission is not QueueAdmission.NONE or verdict is None:
        text = f"waits for queue {queue_of(sub_job.size.template)}"
        return Blocked(Reason.WAITING_FOR_QUEUE, f"{text}: {lacks}" if lacks else text)
    split = draft.split.waiting.get(sub_job.group.name)
    return split or Blocked(Reason.INSUFFICIENT_CAPACITY, lacks or verdict.message)


def _sort_missing(draft: Draft, sub_job: SubJob, child: Child, *, refused: bool) -> None:
    """Record a sub-job as missing, or as blocked with the reason.

    The first reason that applies is recorded. The reason of a refused creation is recorded before
    this step: such a sub-job becomes neither missing nor blocked here.
    """
    observed, name = draft.observed, child.name
    leaving = [
        kind
        for kind, item in (("Job", child.job), ("PropagationPolicy", child.policy))
        if item is not None and item.deleting
    ]
    if child.job is None and child.left_behind:
        leaving.append(f"ResourceBinding {child.left_behind}")
    if child.job is None and child.stranger:
        text = (
            f"ResourceBinding {child.left_behind} belongs to {child.stranger}, and Karmada would"
            f" use it for both; delete {child.stranger}, or give the HyperJob another name"
        )
        draft.blocked[name] = Blocked(Reason.NAME_CONFLICT, text)
    elif leaving:
        text = f"waits until its old {leaving[0]} is gone"
        draft.blocked[name] = Blocked(Reason.BEING_DELETED, text)
    elif refused:
        return
    elif backs_off(observed):
        left = child.record.excluded(observed.now) if child.record is not None else ()
        text = gave_back(observed, left, name=name)
        draft.blocked[name] = Blocked(Reason.GANG_BACK_OFF, text)
    elif observed.verdict is not None and not is_admitted(
        observed.hyperjob.name, sub_job, observed.verdict
    ):
        draft.blocked[name] = _not_admitted(draft, sub_job)
    else:
        draft.missing[name] = sub_job, child
