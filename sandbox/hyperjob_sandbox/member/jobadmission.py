"""What Volcano's webhooks make of a new vcjob, and what they refuse, in their own words.

Pure. Defaults fill in what is missing, on CREATE alone: Volcano never defaults an UPDATE. Of a
validation "" admits, any other text is the reason of the refusal. Checked is what a vcjob that this
project's webhook let through can still meet in a member: its queue, its sizes, its plugins, what
its containers ask for, and changes. Volcano itself checks policies, volumes and names, too.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Final

from hyperjob.api.field import FieldError, Path, invalid, required
from hyperjob.api.meta import Object
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.member.jobpods import replicas_of, task_minimum

_MAX_RETRY: Final = 3
_NEEDS_SVC: Final = ("tensorflow", "mpi", "pytorch", "ray")


def default_job(job: Object) -> Object:
    """Return the vcjob as Volcano's webhook makes it."""
    job = deepcopy(job)
    spec: Object = job.setdefault("spec", {})
    spec["queue"] = spec.get("queue") or "default"
    spec["schedulerName"] = spec.get("schedulerName") or "volcano"
    spec["maxRetry"] = spec.get("maxRetry") or _MAX_RETRY
    for index, task in enumerate(spec.get("tasks") or ()):
        _default_task(task, index)
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(int(task["minAvailable"]) for task in spec.get("tasks") or ())
    plugins: Object | None = spec.get("plugins")
    if plugins is not None:
        if any(name in plugins for name in _NEEDS_SVC):
            plugins.setdefault("svc", [])
        if "mpi" in plugins:
            plugins.setdefault("ssh", [])
    return job


def _default_task(task: Object, index: int) -> None:
    task["name"] = task.get("name") or f"default{index}"
    pod: Object = (task.get("template") or {}).get("spec") or {}
    if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"
    if task.get("minAvailable") is None:
        partition: Object = task.get("partitionPolicy") or {}
        smallest = int(partition.get("minPartitions") or 0) * int(
            partition.get("partitionSize") or 0
        )
        task["minAvailable"] = smallest or int(task.get("replicas") or 0)
    task["maxRetry"] = task.get("maxRetry") or _MAX_RETRY


PLUGINS: Final = frozenset({"ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray"})
_IMMUTABLE: Final = (
    "job updates may not change fields other than `minAvailable`, "
    "`tasks[*].replicas under spec` and `PriorityClassName`"
)
_SIZES: Final = frozenset({"minAvailable", "replicas", "priorityClassName"})


def validate_create(job: Object, *, queue: Object | None, child_queues: int = 0) -> str:
    """Return why a new vcjob is refused; `queue` is the one it names, None when there is none."""
    spec: Object = job.get("spec") or {}
    tasks: list[Object] = spec.get("tasks") or []
    if not tasks:
        return "No task specified in job spec"
    parts = list(_tasks(job, tasks))
    if sum(map(replicas_of, tasks)) < int(spec.get("minAvailable") or 0):
        parts.append(" job 'minAvailable' should not be greater than total replicas in tasks;")
    unknown = [name for name in spec.get("plugins") or {} if name not in PLUGINS]
    parts += [f" unable to find job plugin: {name};" for name in unknown]
    parts += _queue(str(spec.get("queue", "")), queue, child_queues)
    return "".join(parts).strip()


def validate_update(new: Object, old: Object) -> str:
    """Return why a change of a vcjob is refused."""
    spec, before = new.get("spec") or {}, old["spec"]
    tasks: list[Object] = spec.get("tasks") or []
    for task in tasks:
        if task_minimum(task) > replicas_of(task):
            return f"'minAvailable' must be <= 'replicas' in task: {task.get('name')}"
    if int(spec.get("minAvailable") or 0) > sum(map(replicas_of, tasks)):
        return "job 'minAvailable' must not be greater than total replicas"
    if len(tasks) != len(before.get("tasks") or []):
        return "job updates may not add or remove tasks"
    return "" if _frozen(spec) == _frozen(before) else _IMMUTABLE


def _tasks(job: Object, tasks: list[Object]) -> Iterator[str]:
    seen: set[str] = set()
    for index, task in enumerate(tasks):
        name = str(task.get("name", ""))
        if task_minimum(task) > replicas_of(task):
            yield (
                f" 'minAvailable' is greater than 'replicas' in task: {name},"
                f" job: {job['metadata'].get('name', '')};"
            )
        if name in seen:
            yield f" duplicated task name {name};"
            return  # Volcano stops here as well
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
            yield f"spec.task[{index}]." + "".join(f"{error}. " for error in errors)


def _resources(declared: Object, path: Path) -> Iterable[FieldError]:
    limits, requests = declared.get("limits") or {}, declared.get("requests") or {}
    most = resources.parse(limits)
    for name, amount in resources.parse(requests).items():
        exact = "/" in name or name.startswith("hugepages-")
        if name not in limits and exact:
            detail = "Limit must be set for non overcommitable resources"
            yield required(path.child("limits"), detail)
        elif name in limits and (amount != most[name] if exact else amount > most[name]):
            relation = "equal to" if exact else "less than or equal to"
            detail = f"must be {relation} {name} limit of {limits[name]}"
            yield invalid(path.child("requests"), str(requests[name]), detail)


def _queue(name: str, queue: Object | None, children: int) -> Iterator[str]:
    if queue is None:
        yield f' unable to find job queue: queue.scheduling.volcano.sh "{name}" not found;'
        return
    state = (queue.get("status") or {}).get("state", "")
    if state != "Open":
        yield (
            f" can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
        )
    if name == "root":
        yield " can not submit job to root queue;"
    elif children:
        yield f" can only submit job to leaf queue, queue `{name}` has {children} child queues;"


def _frozen(spec: Object) -> Object:
    """Return what may not change of a spec; a claim that Volcano made gets its name later."""

    def without(part: Object, *names: str) -> Object:
        return {key: value for key, value in part.items() if key not in {*_SIZES, *names}}

    return {
        **without(spec),
        "tasks": [without(task) for task in spec.get("tasks") or ()],
        "volumes": [
            without(each, "volumeClaimName" if each.get("volumeClaim") is not None else "")
            for each in spec.get("volumes") or ()
        ],
    }
