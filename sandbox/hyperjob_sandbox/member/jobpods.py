"""The pods and the PodGroup that Volcano makes for a vcjob."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.plugins import PLUGINS, values_of
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.objects import annotations_of, labels_of, owner_reference

JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
QUEUE_NAME: Final = "volcano.sh/queue-name"
TASK_SPEC: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
POD_TEMPLATE: Final = "volcano.sh/template-uid"
GROUP_NAME: Final = "scheduling.k8s.io/group-name"

_PYTORCH_PORT: Final = "23456"


def pod_name(job: str, task: str, index: int) -> str:
    """Return the name of a pod."""
    return f"{job}-{task}-{index}"


def pod_group_name(job: Object) -> str:
    """Return the name of the PodGroup of a vcjob."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def replicas_of(task: Object) -> int:
    """Return how many pods a task has."""
    return int(task.get("replicas") or 0)


def task_minimum(task: Object) -> int:
    """Return how many pods of a task must run at least."""
    least = task.get("minAvailable")
    return replicas_of(task) if least is None else int(least)


def build_pod(job: Object, task: Object, index: int) -> Object:
    """Build pod `index` of a task, with Volcano's marks and what the job's plugins inject."""
    meta, spec = job["metadata"], job["spec"]
    status: Object = job.get("status") or {}
    template: Object = {"metadata": {}, **(task.get("template") or {})}
    shared = {
        TASK_INDEX: str(index),
        TASK_SPEC: task["name"],
        JOB_NAME: meta["name"],
        QUEUE_NAME: spec.get("queue", "default"),
    }
    annotations = {
        GROUP_NAME: pod_group_name(job),
        JOB_VERSION: str(status.get("version") or 0),
        JOB_RETRY_COUNT: str(status.get("retryCount") or 0),
        POD_TEMPLATE: f"{meta['name']}-{task['name']}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(meta["name"], task["name"], index),
            "namespace": meta["namespace"],
            "ownerReferences": [owner_reference(job)],
            "labels": {**labels_of(template), **shared, JOB_NAMESPACE: meta["namespace"]},
            "annotations": {**annotations_of(template), **shared, **annotations},
        },
        "spec": _pod_spec(job, task, index),
    }


def build_pod_group(job: Object) -> Object:
    """Build the PodGroup that gates a vcjob."""
    spec: Object = job["spec"]
    group: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": pod_group_name(job),
            "namespace": job["metadata"]["namespace"],
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "minMember": int(spec.get("minAvailable") or 0),
            "minResources": resources.wire(min_resources(job)),
            "minTaskMember": {task["name"]: task_minimum(task) for task in spec["tasks"]},
            "queue": spec.get("queue", "default"),
        },
    }
    for part, fields in (
        ("metadata", ("labels", "annotations")),
        ("spec", ("priorityClassName", "networkTopology")),
    ):
        group[part] |= deepcopy({each: job[part][each] for each in fields if job[part].get(each)})
    return group


def min_resources(job: Object) -> resources.Amounts:
    """Return what the smallest gang of a vcjob needs."""
    tasks: list[Object] = job["spec"]["tasks"]
    least = [*map(task_minimum, tasks)]
    wanted = int(job["spec"].get("minAvailable") or 0)
    first = least if wanted >= sum(least) else [*map(replicas_of, tasks)]
    return requests_of(tasks, starting_pods(tasks, first, wanted))


def starting_pods(tasks: Sequence[Object], first: Sequence[int], wanted: int) -> list[int]:
    """Return the number of pods of each task: up to `first` of each, then the rest."""
    rest = [replicas_of(task) - each for task, each in zip(tasks, first, strict=True)]
    taken = [0] * len(tasks)
    for counts in (first, rest):
        for index, most in enumerate(counts):
            count = max(0, min(most, wanted))
            wanted -= count
            taken[index] += count
    return taken


def requests_of(tasks: Sequence[Object], numbers: Sequence[int]) -> resources.Amounts:
    """Return what so many pods of each task request."""
    return resources.total(
        resources.times(
            resources.pod_requests((task.get("template") or {}).get("spec") or {}), number
        )
        for task, number in zip(tasks, numbers, strict=True)
    )


def controlled_resources(job: Object) -> dict[str, str]:
    """Return `status.controlledResources`: one entry per plugin."""
    return {f"plugin-{name}": name for name in sorted(job["spec"].get("plugins") or {})}


def _hosts(job: Object, task: Object) -> list[str]:
    """Return the host names that the svc plugin gives the pods of a task."""
    name = job["metadata"]["name"]
    return [f"{pod_name(name, task['name'], index)}.{name}" for index in range(replicas_of(task))]


def _pod_spec(job: Object, task: Object, index: int) -> Object:
    spec: Object = job["spec"]
    pod: Object = deepcopy((task.get("template") or {}).get("spec") or {})
    pod["schedulerName"] = pod.get("schedulerName") or spec.get("schedulerName", "volcano")
    pod.setdefault("restartPolicy", "Always")
    if spec.get("priorityClassName"):
        pod.setdefault("priorityClassName", spec["priorityClassName"])
    if "svc" in (spec.get("plugins") or {}):
        pod.setdefault("hostname", pod_name(job["metadata"]["name"], task["name"], index))
        pod.setdefault("subdomain", job["metadata"]["name"])
    variables = _variables(job, task, index)
    for container in pod.get("containers") or ():
        own = list(container.get("env") or ())
        present = {each["name"] for each in own}
        own += [
            {"name": name, "value": value}
            for name, value in variables.items()
            if name not in present
        ]
        if own:
            container["env"] = own
    for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
        # what the API server's own defaulting does to every pod
        declared: Object = container.get("resources") or {}
        if declared.get("limits"):
            declared["requests"] = {**declared["limits"], **(declared.get("requests") or {})}
    return pod


def _variables(job: Object, task: Object, index: int) -> dict[str, str]:
    """Return the environment that the plugins give the containers of a pod."""
    plugins: Object = job["spec"].get("plugins") or {}
    variables: dict[str, str] = {}
    if "env" in plugins:
        variables |= {"VK_TASK_INDEX": str(index), "VC_TASK_INDEX": str(index)}
    tasks = {each["name"]: each for each in job["spec"]["tasks"]}
    for plugin in ("pytorch", "mpi"):
        if plugin not in plugins:
            continue
        given = values_of(plugins[plugin] or (), PLUGINS[plugin].flags)
        master, worker = (given.get(role) or role for role in ("master", "worker"))
        workers = _hosts(job, tasks[worker]) if worker in tasks else []
        if plugin == "mpi" and task["name"] == master:
            variables["MPI_HOST"] = ",".join(workers)
        if plugin == "pytorch" and task["name"] in {master, worker} and master in tasks:
            masters = _hosts(job, tasks[master])
            variables |= {
                "MASTER_ADDR": masters[0],
                "MASTER_PORT": given.get("port") or _PYTORCH_PORT,
                "WORLD_SIZE": str(len(masters) + len(workers)),
                "RANK": str(index if task["name"] == master else len(masters) + index),
            }
    return variables
