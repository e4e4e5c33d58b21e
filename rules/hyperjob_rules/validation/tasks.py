"""Validation of the tasks of a vcjob: names, sizes, partitions, order, and their pods."""

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.quantity import NANO
from hyperjob_rules.validation.amounts import parse
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.partitions import validate_partitions
from hyperjob_rules.validation.podtemplate import validate_pod_template
from hyperjob_rules.validation.podwarnings import warn_as_of_pod
from hyperjob_rules.validation.policies import validate_policies
from hyperjob_rules.validation.priority import validate_priority_class
from hyperjob_rules.validation.rules import (
    DUPLICATE,
    INVALID,
    REQUIRED,
    WARNING,
    Report,
    rule,
)
from hyperjob_rules.validation.surprises import warn_of_task
from hyperjob_rules.validation.taskorder import validate_task_order

NAME_TWICE = rule(
    "V5", DUPLICATE, "", "two tasks of a template have the same name", "rename one of them"
)
MIN_AVAILABLE = rule(
    "V4.min-available",
    INVALID,
    "must be less than or equal to `replicas` ({replicas})",
    "more pods of a task must start together than there are, so none ever starts",
    "lower minAvailable, raise replicas, or leave minAvailable out for all pods",
)
NUMA_CPU = rule(
    "V9.numa-cpu",
    INVALID,
    "must be a whole number of CPUs of at least 1 when `topologyPolicy` is {policy}",
    "pods are placed on NUMA nodes by whole CPUs, and a container has a part of one, or none",
    "request whole CPUs in every container, or remove topologyPolicy",
)
NUMA_NO_CPU = rule(
    "V9.numa-no-cpu",
    REQUIRED,
    "must be a whole number of CPUs when `topologyPolicy` is {policy}",
    "pods are placed on NUMA nodes by whole CPUs, and a container requests none",
    "request whole CPUs in every container, or remove topologyPolicy",
)
NO_TEMPLATE = rule(
    "V8.PodTemplateSpec.required",
    REQUIRED,
    "",
    "a task has no pods",
    "add template.spec.containers",
)
NO_PODS = rule(
    "V4.no-pods",
    WARNING,
    "is 0: the task has no pods",
    "a task has no replicas",
    "set replicas; it is 0 where it is left out",
)


def validate_tasks(tasks: list[Object], path: Path, report: Report) -> None:
    """Validate the tasks of one template, each by itself and all together."""
    names: dict[str, int] = {}
    for index, task in enumerate(tasks):
        at = path.index(index)
        name = task_name(task, index)
        if name in names:
            report.add(NAME_TWICE, at.child("name"), name)
        names.setdefault(name, index)
        if task.get("name"):
            check(formats.dns1123_label, name, at, report, "name")
        _validate_task(task, at, report)
    validate_task_order(tasks, path, report)


def _validate_task(task: Object, path: Path, report: Report) -> None:
    """Validate one task without regard to the others, with its pod template."""
    replicas = task.get("replicas") or 0
    available = task.get("minAvailable")
    if available is not None and available > replicas:
        report.add(MIN_AVAILABLE, path.child("minAvailable"), available, replicas=replicas)
    if replicas == 0:
        report.warn(NO_PODS, path.child("replicas"))
    if task.get("policies"):
        validate_policies(task["policies"], path.child("policies"), report)
    if task.get("partitionPolicy"):
        validate_partitions(task, path, report)
    template = task.get("template")
    if not template:
        report.add(NO_TEMPLATE, path.child("template"))
        return
    validate_pod_template(template, path.child("template"), report)
    warn_as_of_pod(template, path.child("template"), report)
    warn_of_task(task, path, report)
    priority = (template.get("spec") or {}).get("priorityClassName")
    if priority:
        at = path.child("template", "spec", "priorityClassName")
        validate_priority_class(priority, at, report)
    policy = task.get("topologyPolicy")
    if policy and policy != "none":
        _validate_numa(template.get("spec") or {}, policy, path.child("template", "spec"), report)


def _validate_numa(spec: Object, policy: str, path: Path, report: Report) -> None:
    """Check that every container has whole CPUs, as Volcano demands for NUMA placement."""
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            resources = container.get("resources") or {}
            cpu = (resources.get("requests") or resources.get("limits") or {}).get("cpu")
            at = path.child(kind).index(index).child("resources", "requests").key("cpu")
            if cpu is None:
                report.add(NUMA_NO_CPU, at, policy=policy)
            elif not _is_whole(cpu):
                report.add(NUMA_CPU, at, cpu, policy=policy)


def _is_whole(cpu: str | int) -> bool:
    try:
        nano = parse(cpu).nano
    except ValueError:
        return True  # the check of the quantity reports it
    return nano > 0 and nano % NANO == 0
