"""Validation of a replicatedJob's vcjob template, with the rules of Volcano's webhook.

An absent number counts with Volcano's default.
"""

from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.durations import validate_duration
from hyperjob_rules.validation.plugins import validate_plugins
from hyperjob_rules.validation.policies import validate_policies
from hyperjob_rules.validation.priority import validate_priority_class
from hyperjob_rules.validation.rules import INVALID, REQUIRED, WARNING, Report, rule
from hyperjob_rules.validation.surprises import warn_of_policies
from hyperjob_rules.validation.tasks import validate_tasks
from hyperjob_rules.validation.topology import validate_topology
from hyperjob_rules.validation.volumes import validate_volumes

ROOT_QUEUE: Final = "root"

NO_TASKS = rule(
    "V1",
    REQUIRED,
    "must have at least one task",
    "a vcjob without tasks is refused by Volcano",
    "add a task",
)
MIN_AVAILABLE = rule(
    "V12.min-available",
    INVALID,
    "must be less than or equal to the replicas of all tasks ({total})",
    "more pods must start together than there are, so none ever starts",
    "lower minAvailable, raise the replicas, or leave minAvailable out for all pods",
)
MIN_SUCCESS = rule(
    "V12.min-success",
    INVALID,
    "must be less than or equal to the replicas of all tasks ({total})",
    "more pods must succeed than there are, so the sub-job never completes",
    "lower minSuccess, or raise the replicas",
)
ROOT = rule(
    "V16.root",
    INVALID,
    "must not be the root queue: Volcano takes jobs only into leaf queues",
    "the queue is the root of all queues",
    "use another queue, or leave it out for `default`",
)
OTHER_SCHEDULER = rule(
    "V11.other-scheduler",
    WARNING,
    'is not "volcano": pods start one by one unless that scheduler knows gangs',
    "the template names another scheduler",
    "leave schedulerName out, unless the scheduler is Volcano under another name",
)
TTL_IGNORED = rule(
    "X17",
    WARNING,
    "has no effect in a template: Karmada removes it; use spec.ttlSecondsAfterFinished",
    "the template sets the time until the deletion of a finished sub-job",
    "remove it from the template",
)


def validate_job_spec(spec: Object, path: Path, report: Report) -> None:
    """Check the vcjob template of one replicatedJob."""
    tasks: list[Object] = spec.get("tasks") or []
    if not tasks:
        report.add(NO_TASKS, path.child("tasks"))
    else:
        validate_tasks(tasks, path.child("tasks"), report)
    _validate_numbers(spec, tasks, path, report)
    if spec.get("policies"):
        validate_policies(spec["policies"], path.child("policies"), report)
        warn_of_policies(spec["policies"], tasks, path.child("policies"), report)
    if spec.get("plugins"):
        validate_plugins(spec["plugins"], tasks, path.child("plugins"), report)
    if spec.get("volumes"):
        validate_volumes(spec["volumes"], path.child("volumes"), report)
    if spec.get("networkTopology"):
        validate_topology(spec["networkTopology"], path.child("networkTopology"), report)
    _validate_names(spec, path, report)
    if spec.get("runningEstimate") is not None:
        validate_duration(spec["runningEstimate"], path.child("runningEstimate"), report)


def _validate_numbers(spec: Object, tasks: list[Object], path: Path, report: Report) -> None:
    """Check minAvailable and minSuccess of a vcjob against the pods of all its tasks."""
    total = sum(task.get("replicas") or 0 for task in tasks)
    available, success = spec.get("minAvailable") or 0, spec.get("minSuccess")
    # If the gang of a task is too large, the error at the task is enough.
    told = any((task.get("minAvailable") or 0) > (task.get("replicas") or 0) for task in tasks)
    if tasks and available > total and not told:
        report.add(MIN_AVAILABLE, path.child("minAvailable"), available, total=total)
    if success is not None and tasks and success > total:
        report.add(MIN_SUCCESS, path.child("minSuccess"), success, total=total)
    if spec.get("ttlSecondsAfterFinished") is not None:
        report.warn(TTL_IGNORED, path.child("ttlSecondsAfterFinished"))


def _validate_names(spec: Object, path: Path, report: Report) -> None:
    """Check the names of other objects in a vcjob: its queue, PriorityClass and scheduler."""
    queue = spec.get("queue")
    if queue == ROOT_QUEUE:
        report.add(ROOT, path.child("queue"), queue)
    priority = spec.get("priorityClassName")
    if priority:
        validate_priority_class(priority, path.child("priorityClassName"), report)
    scheduler = spec.get("schedulerName")
    if scheduler and scheduler != "volcano":
        report.warn(OTHER_SCHEDULER, path.child("schedulerName"))
