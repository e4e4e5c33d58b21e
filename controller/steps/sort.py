"""Each wanted sub-job by itself: ended, standing, blocked, or missing.

Places nothing.
"""

from datetime import timedelta

from controller.expansion.adopt import adoptions, conflict, predecessor
from controller.expansion.auto import is_admitted
from controller.expansion.growth import grown_name, growth
from controller.expansion.resize import resize
from controller.gang.giveback import backs_off, describe_wait
from controller.gang.places import seat_of
from controller.gang.rejections import learn
from controller.lifecycle.delete import deletion
from controller.lifecycle.silence import Step, listen
from controller.model.child import Child
from controller.model.detail import Delayed, Detail
from controller.model.observed import QueueAdmission
from controller.model.planned import AskAgain, Look
from controller.model.reasons import Reason
from controller.model.subjobs import SubJob, queue_of
from controller.model.wire import rfc3339
from controller.status.detail import detail_text
from controller.status.waiting import wait_text
from controller.steps.again import until_look
from controller.steps.draft import Draft


def sort(draft: Draft, sub_job: SubJob, child: Child) -> None:
    """Sort one wanted sub-job."""
    hyperjob, name, record = draft.observed.hyperjob, child.name, child.record
    if child.is_outdated:
        draft.actions += adoptions(hyperjob, sub_job, child)
        draft.actions += deletion(child)
        draft.blocked[name] = Reason.RESTARTING, record.message if record is not None else ""
        return
    if child.is_terminal:
        draft.secured += 1
        draft.standing.append((sub_job.group.name, child.cluster))
        return
    in_the_way = conflict(child, hyperjob.name)
    if in_the_way:
        passing = predecessor(child, hyperjob.name)
        reason = Reason.BEING_DELETED if passing else Reason.NAME_CONFLICT
        draft.blocked[name] = reason, in_the_way
        if not passing:
            draft.actions += deletion(child, why="which would take a Job that is another's")
        return
    draft.actions += adoptions(hyperjob, sub_job, child)
    if hyperjob.suspend:
        draft.actions += deletion(child)
        draft.blocked[name] = Reason.SUSPENDED, "suspended"
        return
    if held_back := _held_back(draft, child):
        draft.blocked[name] = held_back
        return
    draft.lessons[name] = learn(child, now=draft.observed.now)
    refused = _is_refused(draft, name)
    draft.hushes[name] = hush = listen(draft.observed, child, quiet=draft.quiet)
    if hush.step is Step.MAKE_AGAIN:
        draft.actions += deletion(child, why=hush.why)
        reason = Reason.NOTHING_REPORTED if child.report is None else Reason.PODS_PENDING
        draft.blocked[name] = reason, hush.message
        return
    if child.exists and child.job is not None:
        if hush.step is Step.ASK and hush.record is not None:
            mark = str(hush.record.times)
            draft.actions.append(AskAgain(name=name, uid=child.job.uid, mark=mark))
        _sort_standing(draft, sub_job, child)
        if refused:
            return
        change = resize(child.job, sub_job.size.template)
        if change is not None and not _waits_to_grow(draft, sub_job, child):
            draft.actions.append(change)
        if child.policy is None and not backs_off(draft.observed):
            draft.missing[name] = sub_job, child
    else:
        _sort_missing(draft, sub_job, child, refused=refused)


def _waits_to_grow(draft: Draft, sub_job: SubJob, child: Child) -> bool:
    """Tell whether a sub-job that runs is to be larger than its queue admits now."""
    verdict = draft.observed.verdict
    if verdict is None or growth(sub_job, child) is None:
        return False
    if grown_name(child.name) in verdict.admitted:
        return False
    text = f"runs, and waits to grow to {sub_job.size.pods} pods: {wait_text(verdict.wait)}"
    draft.blocked[child.name] = Reason.WAITING_FOR_QUEUE, text
    return True


def _held_back(draft: Draft, child: Child) -> tuple[Reason, Detail] | None:
    """Say why a sub-job that there is none of must not be made yet."""
    if child.exists:
        return None
    stop = draft.observed.hyperjob.stop
    if stop is not None:
        text = f"waits until all sub-jobs that are stopped have ended, until {rfc3339(stop.until)}"
        return Reason.RESTARTING, f"{text} at the latest"
    if child.name in draft.waiting.for_what:
        return Reason.WAITING_FOR_DEPENDENCY, draft.waiting.for_what[child.name]
    record, now = child.record, draft.observed.now
    if record is not None and record.retry_time is not None and now < record.retry_time:
        return Reason.RESTARTING, Delayed(record.message, record.retry_time)
    return None


def _is_refused(draft: Draft, name: str) -> bool:
    """Tell whether the API server refused a sub-job's object and is not to be asked again yet."""
    refusal = draft.observed.refusals.get(name)
    if refusal is None or draft.observed.now >= refusal.retry_at:
        return False
    draft.blocked[name] = Reason.REFUSED, f"{refusal.reason}: {refusal.message}"
    return True


def _sort_standing(draft: Draft, sub_job: SubJob, child: Child) -> None:
    """Note the cluster of a sub-job, and whether it may move."""
    draft.secured += 1
    seat = seat_of(draft.observed, sub_job, child, draft.excluded(child))
    if seat is not None:
        draft.seats[child.name] = seat, sub_job, child
    elif child.cluster:
        draft.standing.append((sub_job.group.name, child.cluster))


def _waits(draft: Draft, sub_job: SubJob) -> tuple[Reason, Detail]:
    """Say what a sub-job that is not admitted waits for: a place, or its queue."""
    observed, verdict = draft.observed, draft.observed.verdict
    lacks = verdict.unplaced.get(sub_job.name) if verdict is not None else None
    if observed.admission is not QueueAdmission.NONE or verdict is None:
        text = f"waits for queue {queue_of(sub_job.size.template)}"
        return Reason.WAITING_FOR_QUEUE, f"{text}: {detail_text(lacks)}" if lacks else text
    told = lacks or verdict.wait or ""
    split = draft.split.waiting.get(sub_job.group.name)
    return split or (Reason.INSUFFICIENT_CAPACITY, told)


def _sort_missing(draft: Draft, sub_job: SubJob, child: Child, *, refused: bool) -> None:
    """Note a sub-job that is to be made, or why it must wait."""
    observed, name = draft.observed, child.name
    leaving = [
        kind
        for kind, item in (("Job", child.job), ("PropagationPolicy", child.policy))
        if item is not None and item.deleting
    ]
    if child.job is None and child.left_behind:
        leaving.append(f"ResourceBinding {child.left_behind}")
    if until_look(child, now=observed.now) == timedelta():
        draft.actions.append(Look(name=name))
    if child.job is None and child.stranger:
        told = f"ResourceBinding {child.left_behind} is that of {child.stranger}, and Karmada has"
        told = f"{told} one of this name for both; delete that, or give the HyperJob another name"
        draft.blocked[name] = Reason.NAME_CONFLICT, told
    elif leaving:
        draft.blocked[name] = Reason.BEING_DELETED, f"waits until its old {leaving[0]} is gone"
    elif refused:
        return
    elif backs_off(observed):
        left = ", ".join(child.record.excluded_clusters) if child.record is not None else ""
        text = describe_wait(observed) + (f"; not on {left} again" if left else "")
        draft.blocked[name] = Reason.GANG_BACK_OFF, text
    elif observed.verdict is not None and not is_admitted(
        observed.hyperjob.name, sub_job, observed.verdict
    ):
        draft.blocked[name] = _waits(draft, sub_job)
    else:
        draft.missing[name] = sub_job, child
