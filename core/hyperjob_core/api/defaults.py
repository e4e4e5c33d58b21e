"""The defaults of a HyperJob's templates, which are those of Volcano's own webhook. Pure.

The API server stores a HyperJob as its author wrote it: `kubectl apply` compares a list as a whole
and would replace one with a stored default at every apply. Sub-jobs are made from the completed
template, since no component completes them later: a vcjob must have its defaults at its first apply
in a member cluster. A value of an unexpected type and a list that is too long stay, which
validation reports. Only changed parts are copied: a complete object is returned as the same object.
"""

from collections.abc import Callable
from operator import is_
from typing import Final, TypeGuard

from hyperjob_core.api.limits import MAX_ALL_TASKS, MAX_REPLICATED_JOBS, count_tasks
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.quantity import COMPUTE, may_be_overcommitted

_QUEUE: Final = "default"
_SCHEDULER: Final = "volcano"
_MAX_RETRY: Final = 3
_MAX_COUNT: Final = 2**31 - 1

_SVC_USERS: Final = frozenset({"mpi", "pytorch", "ray", "tensorflow"})
"""The vcjob plugins that work only together with the svc plugin."""

_MAX_EDITED: Final = MAX_REPLICATED_JOBS
"""The longest list with items to edit that the schema allows."""

_Edit = Callable[[Object], Object]


def stored(raw: Object) -> Object:
    """Return the HyperJob as the API server can store it.

    A task without a name gets one, which is its key in the list, and an amount such as `cpu: 0.5`
    becomes text.
    """
    return _edit_templates(raw, _storable, _storable_alternatives)


def completed(raw: Object) -> Object:
    """Return the HyperJob with complete templates, from which its sub-jobs are made."""
    return _edit_templates(raw, complete_template, _complete_job)


def has_gaps(spec: Object) -> bool:
    """Return whether `completed` adds to a spec of valid shape what its rules look at.

    That are partitions of tasks, plugins, limits, and a gang above all numbers. For each rule an
    absent field counts as its default otherwise, and such a spec need not be copied.
    """
    pods = 0
    for job in spec.get("replicatedJobs") or ():
        template = job.get("templateSpec") or {}
        if _implied_plugins(template.get("plugins")):
            return True
        for task in template.get("tasks") or ():
            pods += task.get("replicas") or 0
            pod = (task.get("template") or {}).get("spec") or {}
            if task.get("partitionPolicy") or _lacks_limits(pod):
                return True
    return pods > _MAX_COUNT


def _lacks_limits(pod: Object) -> bool:
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests"), resources.get("limits") or {}
        if requests and not requests.keys() - limits.keys() <= COMPUTE:
            return True
    return False


def complete_template(spec: Object) -> Object:
    """Return a vcjob template with its defaults."""
    spec = _edit_items(with_names(spec), "tasks", _complete_task)
    added: Object = {}
    if _is_blank(spec.get("queue")):
        added["queue"] = _QUEUE
    if _is_blank(spec.get("schedulerName")):
        added["schedulerName"] = _SCHEDULER
    if _is_unset(spec.get("maxRetry")):
        added["maxRetry"] = _MAX_RETRY
    plugins = _implied_plugins(spec.get("plugins"))
    if plugins is not None:
        added["plugins"] = plugins
    if _is_unset(spec.get("minAvailable")):
        total = _sum_of_tasks(spec.get("tasks"))
        if total:
            added["minAvailable"] = total
    if added:
        spec = {**spec, **added}
    return _edit(spec, "networkTopology", _complete_topology)


def _edit_templates(raw: Object, change: _Edit, of_job: _Edit = lambda job: job) -> Object:
    if count_tasks(raw.get("spec")) > MAX_ALL_TASKS:
        return raw

    def of_spec(spec: Object) -> Object:
        return _edit_items(
            spec, "replicatedJobs", lambda job: of_job(_edit(job, "templateSpec", change))
        )

    return _edit(raw, "spec", of_spec)


def _complete_job(job: Object) -> Object:
    added: Object = {}
    if job.get("replicas") is None:
        added["replicas"] = 1
    if job.get("clusterPolicy") is None:
        added["clusterPolicy"] = "Preferred"
    return {**job, **added} if added else job


def _storable_alternatives(job: Object) -> Object:
    return _edit_items(job, "alternatives", lambda each: _edit(each, "templateSpec", _storable))


def _storable(spec: Object) -> Object:
    return _edit_items(with_names(spec), "tasks", _with_texts)


def with_names(spec: Object) -> Object:
    """Return a template whose nameless tasks have the names that Volcano gives them."""
    tasks = spec.get("tasks")
    if not isinstance(tasks, list):
        return spec
    named = [
        {**task, "name": task_name(task, index)}
        if isinstance(task, dict) and _is_blank(task.get("name"))
        else task
        for index, task in enumerate(tasks)
    ]
    return spec if all(map(is_, named, tasks)) else {**spec, "tasks": named}


def _with_texts(task: Object) -> Object:
    def changed(container: Object) -> Object:
        return _edit(container, "resources", _textual)

    return _edit_pod(task, lambda pod: _edit_containers(pod, changed))


def _implied_plugins(plugins: object) -> Object | None:
    """Return the plugins with those that they need; None if none is missing."""
    if not isinstance(plugins, dict):
        return None
    implied: Object = {}
    if "svc" not in plugins and not _SVC_USERS.isdisjoint(plugins):
        implied["svc"] = []
    if "mpi" in plugins and "ssh" not in plugins:
        implied["ssh"] = []
    return {**plugins, **implied} if implied else None


def _complete_task(task: Object) -> Object:
    added: Object = {}
    if task.get("minAvailable") is None:
        available = _task_min_available(task)
        if available is not None:
            added["minAvailable"] = available
    if _is_unset(task.get("maxRetry")):
        added["maxRetry"] = _MAX_RETRY
    if added:
        task = {**task, **added}
    task = _edit(task, "partitionPolicy", _complete_partitions)
    return _edit_pod(task, _complete_pod)


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


def _complete_topology(topology: Object) -> Object:
    return {**topology, "mode": "hard"} if _is_blank(topology.get("mode")) else topology


def _complete_partitions(policy: Object) -> Object:
    if policy.get("minPartitions") is None:
        policy = {**policy, "minPartitions": 0}
    return _edit(policy, "networkTopology", _complete_topology)


def _is_blank(value: object) -> bool:
    return value is None or value == ""


def _is_unset(value: object) -> bool:
    """Return whether Volcano reads the number as absent, as it does with 0."""
    return value is None or (value == 0 and _is_count(value))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT


def _complete_pod(spec: Object) -> Object:
    """Set `limits := requests` for accelerators, and where a container reports why it failed.

    With `FallbackToLogsOnError` the kubelet reports the last lines of the log: no other trace of a
    traceback outlives the pod.
    """
    if spec.get("hostNetwork") is True and _is_blank(spec.get("dnsPolicy")):
        spec = {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}
    return _edit_containers(spec, _complete_container)


def _complete_container(container: Object) -> Object:
    if container.get("terminationMessagePolicy") is None:
        container = {**container, "terminationMessagePolicy": "FallbackToLogsOnError"}
    return _edit(container, "resources", lambda resources: _with_limits(_textual(resources)))


def _textual(resources: Object) -> Object:
    return _edit(_edit(resources, "requests", _as_text), "limits", _as_text)


def _as_text(amounts: Object) -> Object:
    if float not in map(type, amounts.values()):
        return amounts
    return {name: str(each) if isinstance(each, float) else each for name, each in amounts.items()}


def _with_limits(resources: Object) -> Object:
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


def _edit_pod(task: Object, change: _Edit) -> Object:
    return _edit(task, "template", lambda template: _edit(template, "spec", change))


def _edit_containers(pod: Object, change: _Edit) -> Object:
    return _edit_items(_edit_items(pod, "initContainers", change), "containers", change)


def _edit(parent: Object, name: str, change: _Edit) -> Object:
    """Return `parent` with `change` applied to the object in field `name`.

    Without a change the result is `parent` itself.
    """
    before = parent.get(name)
    if not isinstance(before, dict):
        return parent
    after = change(before)
    return parent if after is before else {**parent, name: after}


def _edit_items(parent: Object, name: str, change: _Edit) -> Object:
    """Return `parent` with `change` applied to each object in list `name`.

    Without a change the result is `parent` itself. A list of more than _MAX_EDITED items stays as
    it is: validation refuses it later.
    """
    before = parent.get(name)
    if not isinstance(before, list) or len(before) > _MAX_EDITED:
        return parent
    after = [change(item) if isinstance(item, dict) else item for item in before]
    if all(map(is_, after, before)):
        return parent
    return {**parent, name: after}
