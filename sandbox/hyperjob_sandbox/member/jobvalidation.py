"""What Volcano's validating webhook refuses in a vcjob, in its own words.

Pure: "" admits, any other text is the reason of the refusal. Checked is what a vcjob that this
project's webhook let through can still meet in a member: its queue, its sizes, its plugins, what
its containers ask for, and changes. Volcano itself checks policies, volumes and names, too.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Final

from hyperjob.api.field import FieldError, Path, invalid, required
from hyperjob.api.meta import Object
from hyperjob.api.quantity import Quantity

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
    parts = [_tasks(job, tasks)]
    if sum(int(task.get("replicas") or 0) for task in tasks) < int(spec.get("minAvailable") or 0):
        parts.append(" job 'minAvailable' should not be greater than total replicas in tasks;")
    parts += [
        f" unable to find job plugin: {name};"
        for name in spec.get("plugins") or {}
        if name not in PLUGINS
    ]
    parts.append(_queue(str(spec.get("queue", "")), queue, child_queues))
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
    for index, task in enumerate(tasks):
        name, least = str(task.get("name", "")), task.get("minAvailable")
        if least is not None and int(least) > int(task.get("replicas") or 0):
            parts.append(
                f" 'minAvailable' is greater than 'replicas' in task: {name},"
                f" job: {job['metadata'].get('name', '')};"
            )
        if name in seen:
            parts.append(f" duplicated task name {name};")
            break  # Volcano stops here as well
        seen.add(name)
        pod: Object = (task.get("template") or {}).get("spec") or {}
        errors = [
            error
            for field in ("initContainers", "containers")
            for i, container in enumerate(pod.get(field) or ())
            for error in _resources(
                container.get("resources") or {},
                Path("template.spec").child(field).index(i).child("resources"),
            )
        ]
        if errors:
            parts.append(f"spec.task[{index}]." + "".join(f"{error}. " for error in errors))
    return "".join(parts)


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
