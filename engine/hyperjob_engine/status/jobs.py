"""The entry of one sub-job in `status.jobs`: its cluster, its phase and why it does not run yet.

`Outlook` has the decisions of a plan from which it is derived. An empty status of its vcjob keeps
the last known phase. Its pods may say more than this phase: Volcano calls a vcjob Running whose
head has failed, or whose containers crash again and again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import GangStatus, JobStatus
from hyperjob_core.api.wire import integer, objects, rfc3339, string
from hyperjob_core.text import listed, shortened
from hyperjob_engine.gang.gang import RejectionCheck, is_held, is_opened, is_released, is_through
from hyperjob_engine.lifecycle.decisions import End, Loss, loss_text, reason_of_loss
from hyperjob_engine.lifecycle.dependencies import READY
from hyperjob_engine.lifecycle.records import UNPLACED, failure_of, next_attempt, present_run
from hyperjob_engine.lifecycle.silence import SilenceCheck
from hyperjob_engine.lifecycle.stops import is_left
from hyperjob_engine.lifecycle.unstarted import (
    closed_in,
    lacks_pods,
    refusal_of,
    unreported,
    unschedulable_in,
    waits_for_itself,
)
from hyperjob_engine.model.observed import Observed, QueueAdmission, ReportedStatus
from hyperjob_engine.model.subjobs import Child, SubJob, queue_of
from hyperjob_engine.model.training import latest_training
from hyperjob_engine.reasons.pods import (
    PodsTrouble,
    PodTrouble,
    TroubleKind,
    apply_failure,
    bounded,
    container_text,
    no_pod_text,
    pods_trouble_text,
    refused_text,
    unschedulable_text,
)
from hyperjob_engine.reasons.reason import Blocked, Reason, queue_closed_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A sub-job, its objects, and why the controller does not create it, if it does not.

    `no_room` is why its cluster has no room any more; `loss` is the trouble of its cluster; `ended`
    is the end of the HyperJob that ended it too.
    """

    sub_job: SubJob
    child: Child
    cluster: str = ""
    blocked: Blocked | None = None
    opening: bool = False
    admitted: bool = False
    loss: Loss | None = None
    ended: End | None = None
    no_room: str = ""
    rejection_check: RejectionCheck = field(default_factory=RejectionCheck)
    silence_check: SilenceCheck = field(default_factory=SilenceCheck)

    @property
    def lost(self) -> bool:
        """Whether the cluster of the sub-job counts as lost."""
        return self.loss is not None and self.loss.is_lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlooks:
    """All sub-jobs of a HyperJob in the order of its spec, and how many must run together.

    `never`: even empty clusters have no room for the `needed` sub-jobs. `late`: they are stopped,
    since the deadline has passed.
    """

    items: Sequence[Outlook]
    minimum: int
    room_for: int = 0
    needed: int = 0
    never: bool = False
    late: str = ""
    end: End | None = None
    gang: GangStatus | None = None


STUCK: Final = frozenset({Reason.TASKS_FAILED, Reason.CRASH_LOOP})
"""Reasons of a running sub-job that cannot train on."""
_SOON: Final = 10 * 10**9  # nanoseconds
_ON_FAILURE: Final = frozenset({"*", "PodFailed"})


def told_by_pods(
    observed: Observed, outlook: Outlook, report: ReportedStatus
) -> tuple[str, str] | None:
    """Return reason and message of a sub-job by its pods; None where they say no more than Volcano.

    The reason stays that of Volcano where others decide whether the training goes on: the quorum of
    the HyperJob, or a vcjob whose other pods are as many as it needs.
    """
    template = outlook.sub_job.size.template
    found = observed.pod_troubles.get(outlook.child.name)
    if report.phase is JobPhase.COMPLETED:
        return _completed(outlook, report, found)
    trouble = None if found is None else found.trouble
    if found is None or trouble is None:
        return None
    text = pods_trouble_text(found)
    if report.phase is JobPhase.PENDING:
        running = pods_text(report.pods.running, outlook.sub_job.size.pods)
        return trouble.reason, f"{text}; {running}"
    if report.phase is not JobPhase.RUNNING or trouble.kind > TroubleKind.BLOCKED:
        return None
    if trouble.kind is TroubleKind.ENDED:
        if not report.pods.running or _reacts(template, trouble):
            return None
        if _is_enough(template, trouble, found.pods, report):
            return report.reason, text
    elif report.pods.running >= outlook.sub_job.size.fewest and (
        part := part_text(outlook.sub_job, report)
    ):
        return report.reason, f"{part}; {text}"
    stays = trouble.reason not in STUCK or observed.hyperjob.quorum is not None
    return report.reason if stays else trouble.reason, text


def _completed(
    outlook: Outlook, report: ReportedStatus, found: PodsTrouble | None
) -> tuple[str, str] | None:
    """Return how many pods of a completed sub-job failed; what was said before once they are gone.

    Volcano completes a vcjob as soon as `minAvailable` pods have succeeded.
    """
    record = outlook.child.record
    if found is not None and found.failed:
        return report.reason, f"{found.failed} of {outlook.sub_job.size.pods} pods failed"
    if record is not None and record.phase == JobPhase.COMPLETED:
        return report.reason, record.message
    return None


def _reacts(template: Object, trouble: PodTrouble) -> bool:
    """Return whether a policy of the vcjob is about to act on the end of a pod."""
    if not trouble.failed:
        return False
    tasks = [each for each in _tasks(template) if each.get("name") == trouble.task]
    policies = (each for part in (*tasks, template) for each in objects(part.get("policies")))
    return any(_matches(each, trouble.exit_code) for each in policies)


def _matches(policy: Object, code: int | None) -> bool:
    events = policy.get("events")
    every = events if isinstance(events, list) else []
    named = {string(each) for each in (policy.get("event"), *every)}
    try:
        soon = nanoseconds(string(policy.get("timeout")) or "0") <= _SOON
    except ValueError:
        soon = True
    return soon and (
        bool(named & _ON_FAILURE) or (code is not None and policy.get("exitCode") == code)
    )


def _is_enough(template: Object, failed: PodTrouble, pods: int, report: ReportedStatus) -> bool:
    """Return whether a vcjob has as many pods as it needs without failed ones of a task.

    A task without any other pod, such as a head, is missing for all others.
    """
    sizes = {
        string(each.get("name")): integer(each.get("replicas")) or 1 for each in _tasks(template)
    }
    minimum = integer(template.get("minAvailable"))
    if minimum is None or minimum >= sum(sizes.values()) or pods >= sizes.get(failed.task, pods):
        return False
    return report.pods.running + report.pods.succeeded >= minimum


def _tasks(template: Object) -> list[Object]:
    return objects(template.get("tasks"))


QUEUED: Final = "Queued"
PLACED: Final = "Placed"
_MESSAGE_LIMIT: Final = 400
_LACKS_ROOM: Final = frozenset({Reason.INSUFFICIENT_CAPACITY, Reason.WAITING_FOR_QUEUE})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState(JobStatus):
    """A sub-job's entry in the status, and what other fields of the status need beside it.

    `is_next`: the sub-job waited for a dependency and has not run yet. `is_dispatched`: nothing
    keeps Karmada from delivering it. `is_left`: its vcjob is there, or pods of it may run.
    `is_part`: it runs with fewer than all of its pods, as its minAvailable allows.
    `starts_again` is when the controller recreates it. Its message is `left`, why it left the last
    cluster while it lacks room, and `said`.
    """

    queue: str
    job_phase: JobPhase
    report: ReportedStatus | None
    lost: bool
    is_next: bool = False
    is_dispatched: bool = False
    is_left: bool = False
    is_part: bool = False
    starts_again: str = ""
    left: str = ""
    said: str = ""

    @property
    def is_ready(self) -> bool:
        """Return whether the sub-job runs on a cluster that is not lost, or has completed."""
        return self.job_phase in READY and not self.lost

    @property
    def never_ran(self) -> bool:
        """Return whether no run of the sub-job has begun."""
        ended = self.is_terminal or self.lost
        return not (ended or self.is_ready or self.start_time or self.history or self.attempt)

    @property
    def can_train(self) -> bool:
        """Return whether the sub-job is ready, and no pod has ended its training."""
        return self.is_ready and self.reason not in STUCK

    @property
    def is_terminal(self) -> bool:
        """Return whether the sub-job has ended."""
        return self.job_phase.is_terminal

    @property
    def is_placed(self) -> bool:
        """Return whether the sub-job is on a cluster, or was on one until its end."""
        return self.phase != UNPLACED and (bool(self.cluster) or self.is_terminal)


def job_state(observed: Observed, outlook: Outlook) -> JobState:
    """Return the state of one sub-job."""
    child, record = outlook.child, outlook.child.record
    report = None if outlook.ended else child.report
    phase, reason, message = _situation(observed, outlook)
    left = _left_text(record, observed.now) if record is not None and reason in _LACKS_ROOM else ""
    excluded = record.excluded(observed.now) if record is not None else ()
    until = record.exclusion_end(observed.now) if record is not None and excluded else None
    silence = outlook.silence_check.record
    run = present_run(observed, child, reason=reason, message=message)
    training = latest_training(
        observed.trainings.get(child.name), record.training if record is not None else None
    )
    return JobState(
        name=child.name,
        replicated_job=outlook.sub_job.group.name,
        index=outlook.sub_job.index,
        cluster=outlook.cluster or child.cluster,
        queue=queue_of(outlook.sub_job.size.template),
        accelerators=outlook.sub_job.size.accelerators or None,
        alternative=outlook.sub_job.alternative,
        phase=phase,
        job_phase=JobPhase(phase) if outlook.ended else child.phase,
        reason=reason,
        message=shortened(" ".join(f"{left}{message}".split()), _MESSAGE_LIMIT),
        attempt=next_attempt(child),
        admitted=outlook.admitted,
        running=0 if child.is_terminal or outlook.ended else child.running_pods,
        pods=outlook.sub_job.size.pods,
        report=report,
        last_transition_time=_since(report, record, phase) or rfc3339(observed.now),
        lost=outlook.lost,
        is_next=bool(outlook.sub_job.group.depends_on)
        and (record is None or JobPhase(record.phase) not in READY),
        is_dispatched=report is not None or is_through(child),
        is_left=is_left(observed, child),
        is_part=bool(part_text(outlook.sub_job, report)),
        starts_again=_again(outlook),
        left=left,
        said=message,
        retry_time=record.retry_time if record is not None else None,
        excluded_clusters=excluded,
        excluded_until=until,
        excluded_message=record.excluded_message if record is not None and excluded else "",
        excluded_for_good=record.excluded_for_good if record is not None and until else (),
        rejections=outlook.rejection_check.rejections,
        silence=silence if silence and silence.retry_time else None,
        start_time=run.start,
        failure=None if run.failure is None else bounded(run.failure),
        history=run.history,
        training=training if training is not None and training.reported else None,
    )


def _left_text(record: JobStatus, now: datetime) -> str:
    """Return why, and until when, a sub-job left its last cluster, to begin a message."""
    if not record.excluded_message or not record.excluded(now):
        return ""
    until = record.exclusion_end(now)
    again = "" if until is None else f" (tried again at {until:%H:%M:%S}Z)"
    return f"{record.excluded_message}{again}; "


def _since(report: ReportedStatus | None, record: JobStatus | None, phase: str) -> str:
    if report is not None:
        return report.last_transition
    return record.last_transition_time if record is not None and record.phase == phase else ""


def _again(outlook: Outlook) -> str:
    again = outlook.blocked.until if outlook.blocked is not None else None
    return rfc3339(again) if again is not None else ""


def _situation(observed: Observed, outlook: Outlook) -> tuple[str, str, str]:
    """Return phase, reason and message; the first source that has them decides.

    They are, in order: the end of the HyperJob, the report of the cluster, the recorded end of the
    sub-job, why it is not created, the trouble of its cluster, its last known phase, and the way of
    its ResourceBinding.
    """
    child = outlook.child
    if outlook.ended:
        why = f": {outlook.ended.why}" if outlook.ended.why else ""
        return JobPhase.TERMINATED, Reason.ENDED, f"ended with the HyperJob{why}"
    report, record = child.report, child.record
    if report is not None:
        return report.phase_text, *_reported(observed, outlook, report)
    if child.is_terminal and record is not None:
        return record.phase, record.reason, record.message
    if outlook.blocked:
        why, message, _ = outlook.blocked
        return QUEUED if why is Reason.WAITING_FOR_QUEUE else UNPLACED, why, message
    last = child.phase
    if outlook.loss is not None and last is JobPhase.UNKNOWN:
        return PLACED, reason_of_loss(outlook.loss), loss_text(outlook.loss)
    if last is not JobPhase.UNKNOWN and record is not None:
        return record.phase, *_without_report(outlook, record)
    phase, reason, message = _not_started(observed, outlook)
    left_out = [
        f"Karmada could not schedule it on {each.cluster}, left out until"
        f" {each.retry_time:%H:%M:%S}Z"
        for each in outlook.rejection_check.left_out
    ]
    return phase, reason, "; ".join([message, *left_out])


def _reported(observed: Observed, outlook: Outlook, report: ReportedStatus) -> tuple[str, str]:
    """Return reason and message of a sub-job whose cluster reports its vcjob.

    Volcano's words stay, except where the controller knows more: a block, a lost cluster, the first
    failed container, refused pods, a closed queue, pods that fail or cannot start.
    """
    if outlook.blocked:
        return outlook.blocked.reason, outlook.blocked.message
    if outlook.loss is not None:
        return reason_of_loss(outlook.loss), loss_text(outlook.loss)
    if report.phase.is_failed:
        failure = failure_of(observed, outlook.child)
        return report.reason, report.message if failure is None else container_text(failure)
    told = told_by_pods(observed, outlook, report)
    if report.phase is not JobPhase.PENDING:
        return told or (report.reason, report.message or part_text(outlook.sub_job, report))
    refused = refusal_of(observed, outlook.child)
    if refused is not None:
        return Reason.PODS_REFUSED, refused_text(outlook.child.cluster, refused.message)
    if queue := closed_in(observed, outlook.sub_job, outlook.child):
        return Reason.QUEUE_NOT_OPEN, queue_closed_text(outlook.child.cluster, queue)
    text = pods_text(report.pods.running, outlook.sub_job.size.pods)
    if (said := unschedulable_in(observed, outlook.child)) is not None:
        why = waits_for_itself(outlook.sub_job)
        why = why or unschedulable_text(outlook.child.cluster, said.message)
        return Reason.PODS_PENDING, f"{why}; {text}"
    if told is not None:
        return told
    why = report.message or outlook.silence_check.message
    if not why and lacks_pods(observed, outlook.child):
        why = no_pod_text(outlook.child.cluster, observed.hyperjob.name)
    text = f"{text}: {why}" if why else text
    return report.reason or Reason.PODS_PENDING, text


def part_text(sub_job: SubJob, report: ReportedStatus | None) -> str:
    """Return with how many pods a sub-job runs that may run with fewer than all; empty with all."""
    size = sub_job.size
    if report is None or report.phase is not JobPhase.RUNNING or size.fewest >= size.pods:
        return ""
    number = report.pods.running + report.pods.succeeded
    return f"runs with {number} of {size.pods} pods" if number < size.pods else ""


def pods_text(running: int, pods: int) -> str:
    """Return the message of a sub-job whose pods are pending by no known cause."""
    return f"{running} of {pods} pods run"


def _without_report(outlook: Outlook, record: JobStatus) -> tuple[str, str]:
    """Return why the cluster of a sub-job that had a phase reports none now."""
    binding = outlook.child.binding
    if outlook.loss is not None:
        return reason_of_loss(outlook.loss), loss_text(outlook.loss)
    if binding is not None and binding.apply_error:
        return apply_failure(binding.cluster, binding.apply_error)
    if outlook.silence_check.message:
        return Reason.NOTHING_REPORTED, outlook.silence_check.message
    return record.reason, record.message


def _unanswered(template: Object) -> str:
    """Return that Volcano Global has not released a sub-job, and what to check.

    Its dispatcher passes over a PriorityClass that does not exist, without a word.
    """
    named = string(template.get("priorityClassName"))
    exists = f"PriorityClass {named} exists and " if named else ""
    return (
        f"queue {queue_of(template)} has the quota for it, and Volcano Global has not released it"
        f" for 30 s: check that {exists}its dispatcher runs, and read the dispatcher's log (kubectl"
        " get pods -n volcano-global, in the host cluster)"
    )


def _not_started(observed: Observed, outlook: Outlook) -> tuple[str, str, str]:
    """Return phase, reason and message of a sub-job that no member has reported.

    The checks follow its ResourceBinding: not there, kept by the queue, refused by the member or by
    Karmada's scheduler, without its place, behind the gate of its gang, on its way.
    """
    child, binding = outlook.child, outlook.child.binding
    queue = queue_of(outlook.sub_job.size.template)
    if binding is None and observed.admission is QueueAdmission.VOLCANO_GLOBAL:
        return QUEUED, Reason.WAITING_FOR_QUEUE, f"waits for Karmada and queue {queue}"
    if binding is None:
        return PLACED, Reason.DISPATCHING, "waits for Karmada"
    if binding.scheduling_suspended:
        return QUEUED, *_queued(observed, child, outlook.sub_job)
    if binding.apply_error:
        return PLACED, *apply_failure(binding.cluster, binding.apply_error)
    if binding.unscheduled_reason:
        return PLACED, binding.unscheduled_reason, f"Karmada: {binding.unscheduled_message}"
    if outlook.no_room and is_released(child):
        text = f"queue {queue} has admitted it, but its place is gone: {outlook.no_room}"
        return QUEUED, Reason.INSUFFICIENT_CAPACITY, text
    if is_held(child) and not binding.cluster:
        return (
            PLACED,
            Reason.WAITING_FOR_GANG,
            "admitted, waits for Karmada and the rest of the gang",
        )
    if is_held(child) and not outlook.opening:
        return PLACED, Reason.WAITING_FOR_GANG, "admitted, waits for the rest of the gang"
    if binding.dispatching_suspended and not is_held(child) and not is_opened(child):
        return PLACED, Reason.SUSPENDED_BY_POLICY, "its policy suspends dispatching"
    if outlook.silence_check.message:
        return PLACED, Reason.NOTHING_REPORTED, outlook.silence_check.message
    return PLACED, Reason.DISPATCHING, "is being dispatched"


def _queued(observed: Observed, child: Child, sub_job: SubJob) -> tuple[Reason, str]:
    """Return why Volcano Global has not admitted a sub-job."""
    template = sub_job.size.template
    queue = queue_of(template)
    if observed.queues is not None:
        state = observed.queues.get(queue)
        if state is None:
            return Reason.INVALID_QUEUE, f"queue {queue} does not exist"
        if state != "Open":
            return Reason.QUEUE_NOT_OPEN, f"queue {queue} is {state or 'not Open yet'}"
    left_out = child.job.uncounted if child.job is not None else ()
    if unknown := [each for each in unreported(observed, sub_job) if each not in left_out]:
        why = f"Volcano Global admits no sub-job that requests {listed(unknown)}, which no cluster"
        return Reason.INSUFFICIENT_CAPACITY, f"{why} reports"
    if child.name in observed.unanswered:
        return Reason.DISPATCHER_SILENT, _unanswered(template)
    return Reason.WAITING_FOR_QUEUE, f"queue {queue} has not admitted it yet"
