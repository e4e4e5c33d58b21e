"""The pods, the PodGroup and the plugin objects that Volcano makes for a vcjob.

Pure builders; nothing here decides when they are made.
"""

from copy import deepcopy
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.member import resources

JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
QUEUE_NAME: Final = "volcano.sh/queue-name"
TASK_SPEC: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
POD_TEMPLATE: Final = "volcano.sh/template-uid"
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
POD_GROUP_API_VERSION: Final = "scheduling.volcano.sh/v1beta1"

_DEFAULT_PORT: Final = {"pytorch": "23456", "mpi": "22", "tensorflow": "2222"}


def pod_name(job: str, task: str, index: int) -> str:
    """Return the name of a pod."""
    return f"{job}-{task}-{index}"


def pod_group_name(job: Object) -> str:
    """Return the name of the PodGroup of a vcjob."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def owner(job: Object) -> Object:
    """Return the owner reference that ties an object to its vcjob."""
    return {
        "apiVersion": job["apiVersion"],
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
    }


def build_pod(job: Object, task: Object, index: int) -> Object:
    """Build pod `index` of a task, with Volcano's marks and what the job's plugins inject."""
    meta: Object = job["metadata"]
    spec: Object = job["spec"]
    status: Object = job.get("status") or {}
    template: Object = task.get("template") or {}
    template_meta: Object = template.get("metadata") or {}
    name, task_name = meta["name"], task["name"]
    queue = spec.get("queue", "default")
    pod_spec: Object = deepcopy(template.get("spec") or {})
    if not pod_spec.get("schedulerName"):
        pod_spec["schedulerName"] = spec.get("schedulerName", "volcano")
    if spec.get("priorityClassName"):
        pod_spec.setdefault("priorityClassName", spec["priorityClassName"])
    pod_spec.setdefault("restartPolicy", "Always")
    for container in [*pod_spec.get("containers", ()), *pod_spec.get("initContainers", ())]:
        # what the API server's own defaulting does to every pod
        limits = (container.get("resources") or {}).get("limits")
        if limits:
            requests = container["resources"].get("requests") or {}
            container["resources"]["requests"] = {**limits, **requests}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(name, task_name, index),
            "namespace": meta["namespace"],
            "ownerReferences": [owner(job)],
            "labels": {
                **(template_meta.get("labels") or {}),
                TASK_INDEX: str(index),
                JOB_NAME: name,
                TASK_SPEC: task_name,
                JOB_NAMESPACE: meta["namespace"],
                QUEUE_NAME: queue,
            },
            "annotations": {
                **(template_meta.get("annotations") or {}),
                TASK_INDEX: str(index),
                TASK_SPEC: task_name,
                GROUP_NAME: pod_group_name(job),
                JOB_NAME: name,
                QUEUE_NAME: queue,
                JOB_VERSION: str(status.get("version") or 0),
                POD_TEMPLATE: f"{name}-{task_name}",
                JOB_RETRY_COUNT: str(status.get("retryCount") or 0),
            },
        },
        "spec": pod_spec,
    }
    _plug_in(job, task, index, pod_spec)
    return pod


def build_pod_group(job: Object) -> Object:
    """Build the PodGroup that gates a vcjob."""
    spec: Object = job["spec"]
    group: Object = {
        "apiVersion": POD_GROUP_API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": pod_group_name(job),
            "namespace": job["metadata"]["namespace"],
            "ownerReferences": [owner(job)],
        },
        "spec": {
            "minMember": int(spec.get("minAvailable") or 0),
            "minResources": resources.wire(min_resources(job)),
            "minTaskMember": {task["name"]: task_minimum(task) for task in spec["tasks"]},
            "queue": spec.get("queue", "default"),
        },
    }
    for field in ("labels", "annotations"):
        if job["metadata"].get(field):
            group["metadata"][field] = dict(job["metadata"][field])
    if spec.get("priorityClassName"):
        group["spec"]["priorityClassName"] = spec["priorityClassName"]
    if spec.get("networkTopology"):
        group["spec"]["networkTopology"] = deepcopy(spec["networkTopology"])
    return group


def task_minimum(task: Object) -> int:
    """Return how many pods of a task must run at least."""
    least = task.get("minAvailable")
    return int(task.get("replicas") or 0) if least is None else int(least)


def min_resources(job: Object) -> resources.Resources:
    """Return what the smallest gang of a vcjob needs."""
    spec: Object = job["spec"]
    left = int(spec.get("minAvailable") or 0)
    needed: list[resources.Resources] = []
    for minimum in (True, False):  # first every task's minimum, then what is missing to the job's
        for task in spec["tasks"]:
            least = task_minimum(task)
            count = least if minimum else int(task.get("replicas") or 0) - least
            count = max(0, min(count, left))
            left -= count
            pod = (task.get("template") or {}).get("spec") or {}
            needed.append(resources.times(resources.pod_requests(pod), count))
    return resources.total(needed)


def controlled_resources(job: Object) -> dict[str, str]:
    """Return `status.controlledResources`: one entry per plugin."""
    return {f"plugin-{name}": name for name in sorted(job["spec"].get("plugins") or {})}


def build_plugin_objects(job: Object) -> list[Object]:
    """Build the ConfigMap of hosts and the headless Service of the svc plugin."""
    if "svc" not in (job["spec"].get("plugins") or {}):
        return []
    meta: Object = job["metadata"]
    name = meta["name"]
    base: Object = {"namespace": meta["namespace"], "ownerReferences": [owner(job)]}
    hosts = {
        f"{task['name']}.host": "\n".join(task_hosts(job, task)) for task in job["spec"]["tasks"]
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**base, "name": f"{name}-svc"},
            "data": hosts,
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**base, "name": name},
            "spec": {
                "clusterIP": "None",
                "selector": {JOB_NAME: name, JOB_NAMESPACE: meta["namespace"]},
                "ports": [{"name": "placeholder-volcano", "port": 1, "protocol": "TCP"}],
                "publishNotReadyAddresses": True,
            },
        },
    ]


def task_hosts(job: Object, task: Object) -> list[str]:
    """Return the host names of a task's pods behind the svc plugin's Service."""
    name = job["metadata"]["name"]
    return [
        f"{pod_name(name, task['name'], index)}.{name}"
        for index in range(int(task.get("replicas") or 0))
    ]


def _plug_in(job: Object, task: Object, index: int, pod: Object) -> None:
    plugins: Object = job["spec"].get("plugins") or {}
    variables: dict[str, str] = {}
    if "env" in plugins:
        variables.update({"VK_TASK_INDEX": str(index), "VC_TASK_INDEX": str(index)})
    if "svc" in plugins:
        pod.setdefault("hostname", pod_name(job["metadata"]["name"], task["name"], index))
        pod.setdefault("subdomain", job["metadata"]["name"])
    if "pytorch" in plugins:
        variables.update(_pytorch(job, task, index, plugins["pytorch"] or []))
    if "mpi" in plugins:
        variables.update(_mpi(job, task, plugins["mpi"] or []))
    if variables:
        for container in pod.get("containers") or ():
            present = {each["name"] for each in container.get("env") or ()}
            container["env"] = list(container.get("env") or ()) + [
                {"name": name, "value": value}
                for name, value in variables.items()
                if name not in present
            ]


def _pytorch(job: Object, task: Object, index: int, arguments: list[str]) -> dict[str, str]:
    master = _argument(arguments, "master", "master")
    worker = _argument(arguments, "worker", "worker")
    sizes = {each["name"]: int(each.get("replicas") or 0) for each in job["spec"]["tasks"]}
    if task["name"] not in {master, worker} or master not in sizes:
        return {}
    name = job["metadata"]["name"]
    rank = index if task["name"] == master else sizes[master] + index
    return {
        "MASTER_ADDR": f"{pod_name(name, master, 0)}.{name}",
        "MASTER_PORT": _argument(arguments, "port", _DEFAULT_PORT["pytorch"]),
        "WORLD_SIZE": str(sizes[master] + sizes.get(worker, 0)),
        "RANK": str(rank),
    }


def _mpi(job: Object, task: Object, arguments: list[str]) -> dict[str, str]:
    if task["name"] != _argument(arguments, "master", "master"):
        return {}
    worker = _argument(arguments, "worker", "worker")
    hosts = [
        host
        for each in job["spec"]["tasks"]
        if each["name"] == worker
        for host in task_hosts(job, each)
    ]
    return {"MPI_HOST": ",".join(hosts)}


def _argument(arguments: list[str], name: str, default: str) -> str:
    for argument in arguments:
        flag, _, value = argument.lstrip("-").partition("=")
        if flag == name and value:
            return value
    return default
