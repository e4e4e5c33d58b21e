"""What the pods of a sub-job say beyond the phase of its vcjob.

Volcano calls a vcjob Running whose head has failed, or whose containers crash again and again.
"""

from typing import Final

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import integer, objects, string
from hyperjob_engine.model.observed import Observed, ReportedStatus
from hyperjob_engine.reasons.podtrouble import (
    PodsTrouble,
    PodTrouble,
    TroubleKind,
    pods_trouble_text,
)
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.outlook import Outlook

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
        running = f"{report.pods.running} of {outlook.sub_job.size.pods} pods run"
        return trouble.reason, f"{text}; {running}"
    if report.phase is not JobPhase.RUNNING or trouble.kind > TroubleKind.BLOCKED:
        return None
    if trouble.kind is TroubleKind.ENDED:
        if not report.pods.running or _reacts(template, trouble):
            return None
        if _is_enough(template, trouble, found.pods, report):
            return report.reason, text
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
