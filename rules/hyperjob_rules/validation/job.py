"""Validation of a vcjob template and its tasks, with the rules of Volcano's webhook.

An absent number counts with Volcano's default. Volcano's webhook only reports that the tasks form
no directed acyclic graph (`dependsOn`); these rules report the cycle or the missing task.
"""

from collections.abc import Mapping
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.quantity import NANO
from hyperjob_rules.validation.forms import check, parse_amount, task_names, written
from hyperjob_rules.validation.plugins import validate_plugins
from hyperjob_rules.validation.podtemplate.spec import validate_pod_template
from hyperjob_rules.validation.podwarnings import (
    warn_as_of_pod,
    warn_of_order,
    warn_of_policies,
    warn_of_task,
)
from hyperjob_rules.validation.policies import validate_duration, validate_policies
from hyperjob_rules.validation.rules import Report, bounded
from hyperjob_rules.validation.volumes import validate_volumes


def validate_topology(topology: Object, path: Path, report: Report) -> None:
    """Validate the network topology of a vcjob or of a partition."""
    tier, name = topology.get("highestTierAllowed"), topology.get("highestTierName")
    if tier is not None and name:
        report.add("V3.two-tiers", path.child("highestTierName"))
    if name:
        report.warn("X13.topology-version", path.child("highestTierName"), version="1.14")
    else:
        report.warn("X13.topology-version", path, version="1.11")


def validate_partitions(task: Object, path: Path, report: Report) -> None:
    """Check the partitions of a task against its size."""
    policy, at = task["partitionPolicy"], path.child("partitionPolicy")
    total, size = policy.get("totalPartitions") or 0, policy.get("partitionSize") or 0
    least = policy.get("minPartitions") or 0
    replicas, available = task.get("replicas") or 0, task.get("minAvailable")
    if total > 0 and size > 0:
        if replicas != total * size:
            report.add("V10.replicas", path.child("replicas"), replicas, product=total * size)
        if least > total:
            report.add("V10.too-many", at.child("minPartitions"), least, total=total)
        elif least > 0 and available is not None and available != least * size:
            at_available = path.child("minAvailable")
            report.add("V10.min-available", at_available, available, product=least * size)
    report.warn("X13.partitions-version", at)
    if policy.get("networkTopology"):
        validate_topology(policy["networkTopology"], at.child("networkTopology"), report)


SYSTEM: Final = "system-"

bounded("V8.priority-system", system=SYSTEM)


def validate_priority_class(name: str, path: Path, report: Report) -> None:
    """Report a PriorityClass that Kubernetes reserves for system pods."""
    if name.startswith(SYSTEM):
        report.add("V8.priority-system", path)


Edges = Mapping[str, tuple[str, ...]]


def validate_task_order(tasks: list[Object], path: Path, report: Report) -> None:
    """Validate the dependencies between tasks."""
    names = {name: index for index, name in enumerate(task_names(tasks))}
    edges: dict[str, tuple[str, ...]] = {}
    for index, task in enumerate(tasks):
        name = task_name(task, index)
        at = path.index(index).child("dependsOn")
        wanted = task.get("dependsOn") or {}
        edges[name] = _validate_dependencies(name, wanted.get("name") or [], names, at, report)
    for cycle in _cycles(edges):
        at = path.index(names[cycle[0]]).child("dependsOn", "name")
        report.add("V17.cycle", at, cycle[0], cycle=" -> ".join((*cycle, cycle[0])))


def _validate_dependencies(
    name: str, wanted: list[str], names: Mapping[str, int], path: Path, report: Report
) -> tuple[str, ...]:
    """Validate the dependencies of one task; return the valid ones."""
    known: dict[str, None] = {}
    for index, other in enumerate(wanted):
        at = path.child("name").index(index)
        if other == name:
            report.add("X10.itself", at)
        elif other not in names:
            report.missing("X10.unknown", at, other, names)
        elif other in known:
            report.add("X10.twice", at, other)
        else:
            known[other] = None
    return tuple(known)


def _cycles(edges: Edges) -> list[list[str]]:
    """Return the cycles; no task is in two of them."""
    done: set[str] = set()
    found: list[list[str]] = []
    for start in edges:
        trail: dict[str, int] = {}
        stack = [(start, iter(edges[start]))] if start not in done else []
        while stack:
            name, rest = stack[-1]
            trail.setdefault(name, len(stack) - 1)
            following = next(rest, None)
            if following is None:
                stack.pop()
                trail.pop(name)
                done.add(name)
            elif following in done:
                continue
            elif following in trail:
                found.append([step for step, _ in stack[trail[following] :]])
                done.update(found[-1])
            else:
                stack.append((following, iter(edges.get(following, ()))))
    return found


def validate_tasks(tasks: list[Object], path: Path, report: Report) -> None:
    """Validate the tasks of one template, each by itself and all together."""
    names: dict[str, int] = {}
    for index, task in enumerate(tasks):
        at = path.index(index)
        name = task_name(task, index)
        if name in names:
            report.add("V5.name-twice", at.child("name"), name)
        names.setdefault(name, index)
        if task.get("name"):
            check(formats.dns1123_label, name, at, report, "name")
        _validate_task(task, at, report)


def _validate_task(task: Object, path: Path, report: Report) -> None:
    """Validate one task without regard to the others, with its pod template."""
    replicas = task.get("replicas") or 0
    available = task.get("minAvailable")
    if available is not None and available > replicas:
        report.add("V4.min-available", path.child("minAvailable"), available, replicas=replicas)
    if replicas == 0:
        report.warn("V4.no-pods", path.child("replicas"))
    if task.get("policies"):
        validate_policies(task["policies"], path.child("policies"), report)
    if task.get("partitionPolicy"):
        validate_partitions(task, path, report)
    template = task.get("template")
    if not template:
        report.add("V8.PodTemplateSpec.required", path.child("template"))
        return
    _validate_pods(template, path.child("template"), report)
    warn_of_task(task, path, report)
    priority = (template.get("spec") or {}).get("priorityClassName")
    if priority:
        at = path.child("template", "spec", "priorityClassName")
        validate_priority_class(priority, at, report)
    policy = task.get("topologyPolicy")
    if policy and policy != "none":
        _validate_numa(template.get("spec") or {}, policy, path.child("template", "spec"), report)


def _validate_pods(template: Object, path: Path, report: Report) -> None:
    """Validate a pod template, unless an equal one had no error and no warning: most are alike."""
    text, known = written(template), report.count
    if text in report.flawless:
        return
    validate_pod_template(template, path, report)
    warn_as_of_pod(template, path, report)
    if text and report.count == known:
        report.flawless.add(text)


def _validate_numa(spec: Object, policy: str, path: Path, report: Report) -> None:
    """Check that every container has whole CPUs, as Volcano demands for NUMA placement."""
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            resources = container.get("resources") or {}
            cpu = (resources.get("requests") or resources.get("limits") or {}).get("cpu")
            at = path.child(kind).index(index).child("resources", "requests").key("cpu")
            if cpu is None:
                report.add("V9.numa-no-cpu", at, policy=policy)
            elif not _is_whole(cpu):
                report.add("V9.numa-cpu", at, cpu, policy=policy)


def _is_whole(cpu: str | int) -> bool:
    try:
        nano = parse_amount(cpu).nano
    except ValueError:
        return True  # the check of the quantity reports it
    return nano > 0 and nano % NANO == 0


ROOT_QUEUE: Final = "root"


def validate_job_spec(spec: Object, path: Path, report: Report) -> None:
    """Check the vcjob template of one replicatedJob."""
    tasks: list[Object] = spec.get("tasks") or []
    if not tasks:
        report.add("V1.no-tasks", path.child("tasks"))
    else:
        validate_tasks(tasks, path.child("tasks"), report)
        if any(task.get("dependsOn") for task in tasks):
            validate_task_order(tasks, path.child("tasks"), report)
            warn_of_order(spec, path, report)
    _validate_numbers(spec, tasks, path, report)
    if spec.get("policies"):
        validate_policies(spec["policies"], path.child("policies"), report)
        warn_of_policies(spec["policies"], tasks, path.child("policies"), report)
    if spec.get("plugins"):
        validate_plugins(spec, path, report)
    if spec.get("volumes"):
        validate_volumes(spec["volumes"], path.child("volumes"), report)
    if spec.get("networkTopology"):
        validate_topology(spec["networkTopology"], path.child("networkTopology"), report)
    _validate_names(spec, path, report)
    if spec.get("runningEstimate") is not None:
        validate_duration(spec["runningEstimate"], path.child("runningEstimate"), report)


def _validate_numbers(spec: Object, tasks: list[Object], path: Path, report: Report) -> None:
    """Check minAvailable and minSuccess of a vcjob against the pods of all its tasks."""
    total = sum([task.get("replicas") or 0 for task in tasks])
    available, success = spec.get("minAvailable") or 0, spec.get("minSuccess")
    # If the gang of a task is too large, the error at the task is enough.
    told = any((task.get("minAvailable") or 0) > (task.get("replicas") or 0) for task in tasks)
    if tasks and available > total and not told:
        report.add("V12.min-available", path.child("minAvailable"), available, total=total)
    if success is not None and tasks and success > total:
        report.add("V12.min-success", path.child("minSuccess"), success, total=total)
    if spec.get("ttlSecondsAfterFinished") is not None:
        report.warn("X17.ttl-ignored", path.child("ttlSecondsAfterFinished"))


def _validate_names(spec: Object, path: Path, report: Report) -> None:
    """Check the names of other objects in a vcjob: its queue, PriorityClass and scheduler."""
    queue = spec.get("queue")
    if queue == ROOT_QUEUE:
        report.add("V16.root", path.child("queue"), queue)
    priority = spec.get("priorityClassName")
    if priority:
        validate_priority_class(priority, path.child("priorityClassName"), report)
    scheduler = spec.get("schedulerName")
    if scheduler and scheduler != "volcano":
        report.warn("V11.other-scheduler", path.child("schedulerName"))
