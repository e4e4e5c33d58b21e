"""The defaults that Volcano's mutating webhook gives a new vcjob.

Pure; it only fills in what is missing, on CREATE. An UPDATE must never be defaulted: Volcano does
not either.
"""

from copy import deepcopy
from typing import Final

from hyperjob.api.meta import Object

DEFAULT_QUEUE: Final = "default"
DEFAULT_SCHEDULER: Final = "volcano"
DEFAULT_MAX_RETRY: Final = 3

_NEEDS_SVC: Final = ("tensorflow", "mpi", "pytorch", "ray")


def default_job(job: Object) -> Object:
    """Return the vcjob as Volcano's webhook makes it."""
    job = deepcopy(job)
    spec: Object = job.setdefault("spec", {})
    spec["queue"] = spec.get("queue") or DEFAULT_QUEUE
    spec["schedulerName"] = spec.get("schedulerName") or DEFAULT_SCHEDULER
    spec["maxRetry"] = spec.get("maxRetry") or DEFAULT_MAX_RETRY
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
    task["maxRetry"] = task.get("maxRetry") or DEFAULT_MAX_RETRY
