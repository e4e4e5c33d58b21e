"""The defaults that Volcano's own webhook gives a vcjob on CREATE.

The webhook sets them in the template because no component sets them later: a sub-job must have them
at its first apply in a member cluster, and the user should read the values that run.
"""

from collections.abc import Callable
from operator import is_
from typing import Final, TypeGuard

from hyperjob_core.api.limits import MAX_REPLICATED_JOBS
from hyperjob_core.api.meta import Object
from hyperjob_rules.resourcenames import may_be_overcommitted

QUEUE: Final = "default"
SCHEDULER: Final = "volcano"
MAX_RETRY: Final = 3
MAX_COUNT: Final = 2**31 - 1

SVC_USERS: Final = frozenset({"mpi", "pytorch", "ray", "tensorflow"})
"""The vcjob plugins that work only together with the svc plugin."""


def default_job_spec(spec: Object) -> Object:
    """Return a vcjob template with its defaults."""
    added: Object = {}
    if _is_blank(spec.get("queue")):
        added["queue"] = QUEUE
    if _is_blank(spec.get("schedulerName")):
        added["schedulerName"] = SCHEDULER
    if _is_unset(spec.get("maxRetry")):
        added["maxRetry"] = MAX_RETRY
    plugins = _implied_plugins(spec.get("plugins"))
    if plugins is not None:
        added["plugins"] = plugins
    tasks = _default_tasks(spec.get("tasks"))
    if tasks is not None:
        added["tasks"] = tasks
    if _is_unset(spec.get("minAvailable")):
        total = _sum_of_tasks(tasks or spec.get("tasks"))
        if total:
            added["minAvailable"] = total
    if added:
        spec = {**spec, **added}
    return edit(spec, "networkTopology", _default_topology)


def _implied_plugins(plugins: object) -> Object | None:
    """Return the plugins with those that they need; None if none is missing."""
    if not isinstance(plugins, dict):
        return None
    implied: Object = {}
    if "svc" not in plugins and not SVC_USERS.isdisjoint(plugins):
        implied["svc"] = []
    if "mpi" in plugins and "ssh" not in plugins:
        implied["ssh"] = []
    return {**plugins, **implied} if implied else None


def _default_tasks(tasks: object) -> list[object] | None:
    """Return the tasks with their defaults; None if none is missing."""
    if not isinstance(tasks, list):
        return None
    after = [
        _default_task(task, i) if isinstance(task, dict) else task for i, task in enumerate(tasks)
    ]
    if all(map(is_, after, tasks)):
        return None
    return after


def _default_task(task: Object, index: int) -> Object:
    added: Object = {}
    if _is_blank(task.get("name")):
        added["name"] = f"default{index}"
    if task.get("minAvailable") is None:
        available = _task_min_available(task)
        if available is not None:
            added["minAvailable"] = available
    if _is_unset(task.get("maxRetry")):
        added["maxRetry"] = MAX_RETRY
    if added:
        task = {**task, **added}
    task = edit(task, "partitionPolicy", _default_partitions)
    return edit(task, "template", _default_template)


def _task_min_available(task: Object) -> int | None:
    """Return the gang size of a task; None if the template does not set it."""
    policy = task.get("partitionPolicy")
    if isinstance(policy, dict):
        partitions, size = policy.get("minPartitions"), policy.get("partitionSize")
        if _is_count(partitions) and _is_count(size) and partitions > 0:
            return partitions * size
    replicas = task.get("replicas")
    if replicas is None:
        return 0
    return replicas if _is_count(replicas) else None


def _sum_of_tasks(tasks: object) -> int:
    """Return the number of pods of the gang; 0 if a task does not set its own."""
    if not isinstance(tasks, list):
        return 0
    total = 0
    for task in tasks:
        available = task.get("minAvailable") if isinstance(task, dict) else None
        if not _is_count(available):
            return 0
        total += available
    return total


def _default_template(template: Object) -> Object:
    return edit(template, "spec", _default_pod_spec)


def _default_pod_spec(spec: Object) -> Object:
    if spec.get("hostNetwork") is True and _is_blank(spec.get("dnsPolicy")):
        spec = {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}
    return default_containers(spec)


def _default_topology(topology: Object) -> Object:
    return {**topology, "mode": "hard"} if _is_blank(topology.get("mode")) else topology


def _default_partitions(policy: Object) -> Object:
    if policy.get("minPartitions") is None:
        policy = {**policy, "minPartitions": 0}
    return edit(policy, "networkTopology", _default_topology)


def _is_blank(value: object) -> bool:
    return value is None or value == ""


def _is_unset(value: object) -> bool:
    """Return whether Volcano reads the number as absent, as it does with 0."""
    return value is None or (value == 0 and _is_count(value))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def default_containers(spec: Object) -> Object:
    """Set `limits := requests` for accelerators, and where a container reports why it failed.

    With `FallbackToLogsOnError` the kubelet reports the last lines of the log: no other trace of a
    traceback outlives the pod.
    """
    spec = edit_items(spec, "initContainers", _default_container)
    return edit_items(spec, "containers", _default_container)


def _default_container(container: Object) -> Object:
    if container.get("terminationMessagePolicy") is None:
        container = {**container, "terminationMessagePolicy": "FallbackToLogsOnError"}
    return edit(container, "resources", _default_resources)


def _default_resources(resources: Object) -> Object:
    resources = edit(resources, "requests", _as_text)
    return _default_limits(edit(resources, "limits", _as_text))


def _as_text(amounts: Object) -> Object:
    if float not in map(type, amounts.values()):
        return amounts
    return {name: str(each) if isinstance(each, float) else each for name, each in amounts.items()}


def _default_limits(resources: Object) -> Object:
    """Return the resources with a limit for each requested device, which Kubernetes demands."""
    requests = resources.get("requests")
    limits = resources.get("limits")
    if not isinstance(requests, dict) or not (limits is None or isinstance(limits, dict)):
        return resources
    missing = {
        name: amount
        for name, amount in requests.items()
        if (limits is None or limits.get(name) is None) and not may_be_overcommitted(name)
    }
    return {**resources, "limits": {**(limits or {}), **missing}} if missing else resources


MAX_EDITED: Final = MAX_REPLICATED_JOBS
"""The longest list with items to edit that the schema allows."""

Edit = Callable[[Object], Object]


def edit(parent: Object, name: str, change: Edit) -> Object:
    """Return `parent` with `change` applied to the object in field `name`.

    Without a change the result is `parent` itself.
    """
    before = parent.get(name)
    if not isinstance(before, dict):
        return parent
    after = change(before)
    return parent if after is before else {**parent, name: after}


def edit_items(parent: Object, name: str, change: Edit) -> Object:
    """Return `parent` with `change` applied to each object in list `name`.

    Without a change the result is `parent` itself. A list of more than MAX_EDITED items stays as
    it is: validation refuses it later.
    """
    before = parent.get(name)
    if not isinstance(before, list) or len(before) > MAX_EDITED:
        return parent
    after = [change(item) if isinstance(item, dict) else item for item in before]
    if all(map(is_, after, before)):
        return parent
    return {**parent, name: after}
