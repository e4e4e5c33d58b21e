"""What Volcano's validating webhook refuses in a vcjob, in its own words.

Pure: "" admits, any other text is the reason of the refusal. The pod template is checked as far as
training jobs meet its rules; like the seed examples need it, a resource without a domain is no
error.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Final

from hyperjob.api.field import FieldError, Path, duplicate, invalid, required
from hyperjob.api.formats import qualified_name
from hyperjob.api.meta import Object
from hyperjob.api.quantity import Quantity

EVENTS: Final = (
    "*",
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)
ACTIONS: Final = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
PLUGINS: Final = frozenset({"ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray"})
_IMMUTABLE: Final = (
    "job updates may not change fields other than `minAvailable`, "
    "`tasks[*].replicas under spec` and `PriorityClassName`"
)


def validate_create(job: Object, *, queue: Object | None, child_queues: int = 0) -> str:
    """Return why a new vcjob is refused; `queue` is the one it names, None when there is none."""
    spec: Object = job.get("spec") or {}
    tasks: list[Object] = spec.get("tasks") or []
    if not tasks:
        return "No task specified in job spec"
    if "mpi" in (spec.get("plugins") or {}) and not _has_mpi_master(spec, tasks):
        return "The specified mpi master task was not found"
    parts = [_tasks(job, tasks)]
    name_errors = qualified_name(job["metadata"].get("name", ""))
    if name_errors:
        parts.append(
            f"create job with name {job['metadata'].get('name', '')} validate failed "
            f"{_go_list(name_errors)}"
        )
    if sum(int(task.get("replicas") or 0) for task in tasks) < int(spec.get("minAvailable") or 0):
        parts.append(" job 'minAvailable' should not be greater than total replicas in tasks;")
    parts.append(_policies(spec.get("policies") or (), Path("spec.policies")))
    parts += [
        f" unable to find job plugin: {name};"
        for name in spec.get("plugins") or {}
        if name not in PLUGINS
    ]
    parts.append(_volumes(spec.get("volumes") or ()))
    parts.append(_queue(str(spec.get("queue", "")), queue, child_queues))
    if any(task.get("dependsOn") for task in tasks) and not _is_dag(tasks):
        parts.append(
            " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"
        )
    return "".join(parts).strip()


def validate_update(new: Object, old: Object) -> str:
    """Return why a change of a vcjob is refused."""
    spec: Object = new.get("spec") or {}
    tasks: list[Object] = spec.get("tasks") or []
    total = 0
    for task in tasks:
        replicas, least = int(task.get("replicas") or 0), task.get("minAvailable")
        if replicas < 0:
            return f"'replicas' must be >= 0 in task: {task.get('name')}"
        if least is not None and least < 0:
            return f"'minAvailable' must be >= 0 in task: {task.get('name')}"
        if least is not None and least > replicas:
            return f"'minAvailable' must be <= 'replicas' in task: {task.get('name')}"
        total += replicas
    if int(spec.get("minAvailable") or 0) > total:
        return "job 'minAvailable' must not be greater than total replicas"
    if int(spec.get("minAvailable") or 0) < 0:
        return "job 'minAvailable' must be >= 0"
    if len(tasks) != len(old["spec"].get("tasks") or []):
        return "job updates may not add or remove tasks"
    return "" if _frozen(spec) == _frozen(old["spec"]) else _IMMUTABLE


def _tasks(job: Object, tasks: list[Object]) -> str:
    parts: list[str] = []
    seen: set[str] = set()
    job_name = job["metadata"].get("name", "")
    for index, task in enumerate(tasks):
        name = str(task.get("name", ""))
        least = task.get("minAvailable")
        if least is not None and int(least) > int(task.get("replicas") or 0):
            parts.append(
                f" 'minAvailable' is greater than 'replicas' in task: {name}, job: {job_name};"
            )
        if name in seen:
            parts.append(f" duplicated task name {name};")
            break  # Volcano stops here as well
        seen.add(name)
        parts.append(_policies(task.get("policies") or (), Path("spec.tasks.policies")))
        pod_name = f"{job_name}-{name}-{index}"
        errors = qualified_name(pod_name)
        if errors:
            parts.append(f"create pod with name {pod_name} validate failed {_go_list(errors)};")
        template_errors = list(_template(task.get("template") or {}))
        if template_errors:
            parts.append(
                f"spec.task[{index}]." + "".join(f"{error}. " for error in template_errors)
            )
    return "".join(parts)


def _template(template: Object) -> Iterable[FieldError]:
    pod: Object = template.get("spec") or {}
    base = Path("template.spec")
    if not pod.get("containers"):
        yield required(base.child("containers"))
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(field) or ()):
            path = base.child(field).index(index)
            name = container.get("name")
            if not name:
                yield required(path.child("name"))
            elif name in names:
                yield duplicate(path.child("name"), name)
            names.add(name)
            if not container.get("image"):
                yield required(path.child("image"))
            yield from _resources(container.get("resources") or {}, path.child("resources"))


def _resources(resources: Object, path: Path) -> Iterable[FieldError]:
    amounts: dict[str, dict[str, Quantity]] = {}
    for field in ("limits", "requests"):
        amounts[field] = {}
        for name, text in (resources.get(field) or {}).items():
            try:
                amounts[field][name] = Quantity.parse(text)
            except ValueError as error:
                yield invalid(path.child(field).key(name), text, str(error))
    limits = amounts["limits"]
    for name, amount in amounts["requests"].items():
        overcommit = "/" not in name and not name.startswith("hugepages-")
        if name not in limits:
            if not overcommit:
                yield required(
                    path.child("limits"), "Limit must be set for non overcommitable resources"
                )
        elif amount != limits[name] and not overcommit:
            yield invalid(
                path.child("requests"),
                str(amount),
                f"must be equal to {name} limit of {limits[name]}",
            )
        elif amount > limits[name]:
            yield invalid(
                path.child("requests"),
                str(amount),
                f"must be less than or equal to {name} limit of {limits[name]}",
            )


def _policies(policies: Sequence[Object], path: Path) -> str:
    error = _first_policy_error(policies, path)
    if not error:
        return ""
    return (
        f"1 error occurred:\n\t* {error}\n\n valid events are {_go_list(EVENTS)}, "
        f"valid actions are {_go_list(ACTIONS)};"
    )


def _first_policy_error(policies: Sequence[Object], path: Path) -> str:
    events: set[str] = set()
    codes: set[int] = set()
    for policy in policies:
        listed = list(policy.get("events") or ())
        listed += [policy["event"]] if policy.get("event") else []
        code = policy.get("exitCode")
        if listed and code is not None:
            return "must not specify event and exitCode simultaneously"
        if not listed and code is None:
            return "either event and exitCode should be specified"
        for event in dict.fromkeys(listed):
            if event not in EVENTS:
                return str(invalid(path, event, "invalid policy event"))
            if policy.get("action") not in ACTIONS:
                return str(invalid(path, policy.get("action", ""), "invalid policy action"))
            if event in events:
                return f"duplicate event {event}  across different policy"
            events.add(event)
        if code is not None:
            if code == 0:
                return "0 is not a valid error code"
            if code in codes:
                return f"duplicate exitCode {code}"
            codes.add(code)
    if "*" in events and len(events) > 1:
        return "if there's * here, no other policy should be here"
    return ""


def _volumes(volumes: Sequence[Object]) -> str:
    seen: set[str] = set()
    for volume in volumes:
        mount = volume.get("mountPath")
        if not mount:
            return " mountPath is required;"
        if mount in seen:
            return f" duplicated mountPath: {mount};"
        if volume.get("volumeClaim") is None and not volume.get("volumeClaimName"):
            return " either VolumeClaim or VolumeClaimName must be specified;"
        if volume.get("volumeClaim") is not None and volume.get("volumeClaimName"):
            return (
                "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
                "If you want to create a new PVC, you do not need to specify VolumeClaimName"
            )
        seen.add(mount)
    return ""


def _queue(name: str, queue: Object | None, child_queues: int) -> str:
    if queue is None:
        return f' unable to find job queue: queue.scheduling.volcano.sh "{name}" not found;'
    text = ""
    state = (queue.get("status") or {}).get("state", "")
    if state != "Open":
        text = (
            f" can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
        )
    if name == "root":
        return text + " can not submit job to root queue;"
    if child_queues:
        text += (
            f" can only submit job to leaf queue, queue `{name}` has {child_queues} child queues;"
        )
    return text


def _has_mpi_master(spec: Object, tasks: list[Object]) -> bool:
    master = "master"
    for argument in spec["plugins"]["mpi"] or ():
        flag, _, value = argument.lstrip("-").partition("=")
        if flag == "master" and value:
            master = value
    return any(task.get("name") == master for task in tasks)


def _is_dag(tasks: list[Object]) -> bool:
    waiting = {
        str(task.get("name")): list((task.get("dependsOn") or {}).get("name") or ())
        for task in tasks
    }
    if any(len(names) != len(set(names)) for names in waiting.values()):
        return False
    done: set[str] = set()
    while ready := [
        name for name, needs in waiting.items() if name not in done and done.issuperset(needs)
    ]:
        done.update(ready)
    return len(done) == len(waiting)


def _frozen(spec: Object) -> object:
    """Return what may not change of a spec, amounts by value and empty as absent."""
    kept = {
        key: value
        for key, value in deepcopy(spec).items()
        if key not in {"minAvailable", "priorityClassName"}
    }
    for task in kept.get("tasks") or ():
        task.pop("replicas", None)
        task.pop("minAvailable", None)
    for volume in kept.get("volumes") or ():
        if volume.get("volumeClaim") is not None:
            volume.pop("volumeClaimName", None)
    return _semantic(kept)


def _semantic(value: object, *, amounts: bool = False) -> object:
    if isinstance(value, dict):
        result = {
            key: _semantic(each, amounts=amounts or key in {"limits", "requests"})
            for key, each in value.items()
        }
        return {key: each for key, each in result.items() if each not in (None, {}, [], "", 0)}
    if isinstance(value, list):
        return [_semantic(each, amounts=amounts) for each in value]
    if amounts and isinstance(value, str | int | float):
        return Quantity.parse(value).nano
    return value


def _go_list(values: Iterable[str]) -> str:
    return f"[{' '.join(values)}]"
