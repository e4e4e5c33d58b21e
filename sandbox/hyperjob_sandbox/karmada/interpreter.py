"""What Karmada's resource interpreter says of the kinds the sandbox propagates.

Pure. The built-in rules for a vcjob are Karmada's; a ResourceInterpreterCustomization switches a
hook on, and the sandbox answers it with the meaning the hook has for a vcjob (the script itself is
never run). Other kinds have a plain status or none.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.api.quantity import NANO, Quantity
from hyperjob_sandbox.member import resources

_VCJOB: Final = ("batch.volcano.sh/v1alpha1", "Job")
_QUEUE_KIND: Final = "Queue"
_STATUS_FIELDS: Final = (
    "minAvailable",
    "pending",
    "running",
    "succeeded",
    "failed",
    "terminating",
    "unknown",
    "version",
    "retryCount",
    "runningDuration",
    "taskStatusCount",
    "controlledResources",
    "state",
    "conditions",
)
_HEALTHY_PHASES: Final = frozenset(
    {
        "Running",
        "Completed",
        "Pending",
        "Aborting",
        "Aborted",
        "Restarting",
        "Completing",
        "Terminating",
        "Terminated",
    }
)
_ENDED: Final = frozenset({"Aborted", "Completed", "Failed", "Terminated"})
_MILLI: Final = NANO // 1000


def is_vcjob(obj: Object) -> bool:
    """Tell whether an object is a Volcano Job."""
    return (obj.get("apiVersion"), obj.get("kind")) == _VCJOB


def hooks(customizations: Iterable[Object]) -> frozenset[str]:
    """Return the names of the hooks that customizations define for the vcjob."""
    found: set[str] = set()
    for each in customizations:
        target = each["spec"].get("target") or {}
        if (target.get("apiVersion"), target.get("kind")) == _VCJOB:
            found.update(each["spec"].get("customizations") or {})
    return frozenset(found)


def replicas_of(template: Object, *, hooks: frozenset[str], components: bool) -> Object:
    """Return `replicas` with `replicaRequirements`, or `components`, or nothing, of a template.

    `components` is Karmada's gate MultiplePodTemplatesScheduling. Without it a vcjob has replicas
    only when a customization defines `replicaResource`: then the sum over all tasks, and the
    average request of a pod in milli-units. A vcjob that has ended requests nothing.
    """
    if not is_vcjob(template):
        return {}
    tasks: list[Object] = template["spec"].get("tasks") or []
    if components:
        return {"components": [_component(task, index) for index, task in enumerate(tasks)]}
    if "replicaResource" not in hooks:
        return {}
    pods = sum(_replicas(task) for task in tasks)
    if pods and ((template.get("status") or {}).get("state") or {}).get("phase") in _ENDED:
        return {"replicas": pods}
    needed = resources.total(
        resources.times(resources.pod_requests(_pod_spec(task)), _replicas(task)) for task in tasks
    )
    average = {
        name: f"{-(-amount.nano // (_MILLI * pods))}m"
        for name, amount in sorted(needed.items())
        if pods and amount
    }
    requirements: Object = {"resourceRequest": average}
    return {"replicas": pods, "replicaRequirements": requirements} if pods else {}


def reflect_status(obj: Object) -> Object | None:
    """Return the part of a member object's status that travels up, None when it has none."""
    status = obj.get("status")
    if is_vcjob(obj):
        return _drop_empty({key: (status or {}).get(key) for key in _STATUS_FIELDS})
    return deepcopy(status) if status is not None else None


def health(obj: Object) -> str:
    """Return Healthy, Unhealthy or Unknown of a member object."""
    if not is_vcjob(obj):
        return "Unknown" if obj.get("kind") == _QUEUE_KIND else "Healthy"
    phase = ((obj.get("status") or {}).get("state") or {}).get("phase")
    return "Healthy" if phase in _HEALTHY_PHASES else "Unhealthy"


def aggregate_status(template: Object, items: list[Object]) -> Object | None:
    """Return the template's status made of its clusters' statuses; None takes the status away.

    One item is copied as it is, with nothing left when it carries no status.
    """
    if template.get("kind") == _QUEUE_KIND:
        return _aggregate_queue(items)
    if len(items) == 1:
        return deepcopy(items[0].get("status"))
    return _aggregate_vcjobs(items)


def _component(task: Object, index: int) -> Object:
    needed = resources.wire(resources.pod_requests(_pod_spec(task)))
    component: Object = {
        "name": task.get("name") or f"task-{index}",
        "replicas": int(task.get("minAvailable") or 1),
    }
    if needed:
        component["replicaRequirements"] = {"resourceRequest": needed}
    return component


def _pod_spec(task: Object) -> Object:
    return (task.get("template") or {}).get("spec") or {}


def _replicas(task: Object) -> int:
    return int(task.get("replicas", 1))


def _drop_empty(status: Object) -> Object:
    return {key: deepcopy(value) for key, value in status.items() if value not in (None, {}, [])}


def _aggregate_queue(items: list[Object]) -> Object:
    statuses = [item["status"] for item in items if item.get("status")]
    status: Object = {
        field: sum(int(each.get(field) or 0) for each in statuses)
        for field in ("completed", "inqueue", "pending", "running", "unknown")
    }
    status = {field: count for field, count in status.items() if count}
    status.setdefault("running", 0)
    allocated = resources.total(resources.parse(each.get("allocated")) for each in statuses)
    allocated.setdefault("cpu", Quantity())
    allocated.setdefault("memory", Quantity())
    status["allocated"] = {
        name: str(amount)
        for name, amount in sorted(resources.normalise(allocated).items())
        if amount or name in {"cpu", "memory"}
    }
    states = [each["state"] for each in statuses if each.get("state")]
    if states:
        status["state"] = "Open" if "Open" in states else states[0]
    return status


def _aggregate_vcjobs(items: list[Object]) -> Object:
    statuses: list[Object] = [item.get("status") or {} for item in items]
    phases = [(status.get("state") or {}).get("phase") for status in statuses]
    result: Object = {
        field: sum(int(status.get(field) or 0) for status in statuses)
        for field in _STATUS_FIELDS[:7]
    }
    result["version"] = max((int(status.get("version") or 0) for status in statuses), default=0)
    counts: Object = {}
    for status in statuses:
        for task, state in (status.get("taskStatusCount") or {}).items():
            phase = counts.setdefault(task, {"phase": {}})["phase"]
            for name, count in (state.get("phase") or {}).items():
                phase[name] = phase.get(name, 0) + count
    result["taskStatusCount"] = counts
    failed = [
        item["clusterName"]
        for item, phase in zip(items, phases, strict=True)
        if phase in {"Failed", "Aborted"}
    ]
    if failed:
        result["state"] = {
            "phase": "Failed",
            "reason": "VolcanoJobFailed",
            "message": "Job failed in clusters: " + ",".join(failed),
        }
    elif items and all(phase == "Completed" for phase in phases):
        result["state"] = {
            "phase": "Completed",
            "reason": "Completed",
            "message": "Job completed successfully",
        }
    return {key: value for key, value in result.items() if value not in (0, {}, [])}
