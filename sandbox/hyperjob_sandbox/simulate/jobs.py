"""Build the HyperJob of a job with known size and times, from a trace or the generator."""

import re
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND
from hyperjob_sandbox.simulate.workload import Submission

_UNUSUAL = re.compile(r"[^a-z0-9-]+")
_NAME_LIMIT = 40
_ACCELERATOR = "nvidia.com/gpu"
_PER_POD = 8
PARTS = 4
"""An elastic job can train with one of so many sub-jobs, and use so many times more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNumbers:
    """A job as numbers; `arrival`, `duration` and `estimate` are in seconds.

    Jobs with the same `template`, size, queue and namespace are runs of one template; by default
    each has its own.
    """

    name: str
    arrival: float
    duration: float
    gpus: int
    queue: str = "default"
    namespace: str = "default"
    priority: str = ""
    estimate: float | None = None
    template: str = ""
    elastic: bool = False


def submission(job: JobNumbers, *, max_domains: int = 4, checkpoint: float = 1800.0) -> Submission:
    """Return a job as a HyperJob with its times, which saves every `checkpoint` seconds; 0: never.

    A job of several pods is an automatic split over at most `max_domains` clusters. A sub-job that
    fails or loses its cluster restarts the HyperJob. An `elastic` one has sub-jobs of one pod, of
    which a quarter can train, and four times as many.
    """
    pods, each = divide(job.gpus, _PER_POD)
    request = {_ACCELERATOR: str(each)} if each else {"cpu": "1"}
    container: Object = {
        "name": "main",
        "image": f"simulated:{job.template or job.name}",
        "resources": {"requests": request, "limits": request},
    }
    task: Object = {
        "name": "worker",
        "replicas": pods,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    template: Object = {"queue": job.queue, "minAvailable": pods, "tasks": [task]}
    if job.priority:
        template["priorityClassName"] = job.priority
    if job.estimate is not None:
        template["runningEstimate"] = f"{max(1, round(job.estimate))}s"
    group: Object = {"name": "train", "replicas": 1, "templateSpec": template}
    spec: Object = {
        "replicatedJobs": [group],
        "failurePolicy": {
            "maxRestarts": 0,
            "rules": [
                {"action": "RestartHyperJobAndIgnoreMaxRestarts", "onJobPhases": ["Failed"]},
                {"action": "RestartHyperJobAndIgnoreMaxRestarts", "onClusterLost": True},
            ],
        },
    }
    if checkpoint:
        every = max(1, round(checkpoint))
        spec["checkpoint"] = {"directory": "simulated", "intervalSeconds": every}
    _spread(spec, job, pods, max_domains)
    return Submission(
        arrival=job.arrival,
        duration=max(1.0, job.duration),
        gpus=job.gpus,
        queue=job.queue,
        hyperjob={
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"namespace": job.namespace, "name": job.name},
            "spec": spec,
        },
    )


def _spread(spec: Object, job: JobNumbers, pods: int, max_domains: int) -> None:
    """Let a job be several sub-jobs: of any number if it is elastic, else of an automatic split."""
    (group,) = spec["replicatedJobs"]
    if job.elastic:
        template = group["templateSpec"]
        template["minAvailable"] = template["tasks"][0]["replicas"] = 1
        group |= {"minReplicas": max(1, pods // PARTS), "replicas": pods}
        group["maxReplicas"] = PARTS * pods
        spec["quorum"] = group["minReplicas"]
    elif pods > 1:
        group["splitPolicy"] = {
            "mode": "auto",
            "accelerators": job.gpus,
            "acceleratorType": _ACCELERATOR,
        }
        spec["maxDomains"] = max_domains


def divide(gpus: int, per_pod: int) -> tuple[int, int]:
    """Return the number of pods and the accelerators of each: the fewest pods that fill nodes.

    Pods of 6 or 5 of a node's 8 would leave accelerators that no pod of the job can use.
    """
    if gpus <= per_pod:
        return 1, gpus
    fitting = (size for size in range(per_pod, 0, -1) if per_pod % size == 0)
    each = next(size for size in fitting if gpus % size == 0)
    return gpus // each, each


def name_of(text: str) -> str:
    """Return a text as a valid name of a Kubernetes object."""
    return _UNUSUAL.sub("-", text.lower()).strip("-")[:_NAME_LIMIT].strip("-") or "job"
