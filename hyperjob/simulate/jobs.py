"""Build the HyperJob of a job with known size and times, from a trace or the generator."""

import re
from dataclasses import dataclass

from hyperjob.simulate.workload import Submission
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND

_UNUSUAL = re.compile(r"[^a-z0-9-]+")
_NAME_LIMIT = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The form of jobs as HyperJobs.

    A job of more than `per_pod` accelerators is an automatic split over at most `max_domains`
    clusters; `restarts`: sub-jobs that fail or lose their cluster are restarted.
    """

    accelerator: str = "nvidia.com/gpu"
    per_pod: int = 8
    max_domains: int | None = 4
    restarts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNumbers:
    """A job as numbers; `arrival`, `duration` and `estimate` are in seconds."""

    name: str
    arrival: float
    duration: float
    gpus: int
    queue: str = "default"
    namespace: str = "default"
    priority: str = ""
    estimate: float | None = None


def submission(job: JobNumbers, style: Style) -> Submission:
    """Return a job as a HyperJob with its times."""
    pods, each = divide(job.gpus, style.per_pod)
    request = {style.accelerator: str(each)} if each else {"cpu": "1"}
    container: Object = {
        "name": "main",
        "image": "simulated",
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
    spec: Object = {"replicatedJobs": [group]}
    if pods > 1:
        group["splitPolicy"] = {
            "mode": "auto",
            "accelerators": job.gpus,
            "acceleratorType": style.accelerator,
        }
        if style.max_domains is not None:
            spec["maxDomains"] = style.max_domains
    if style.restarts:
        spec["failurePolicy"] = {
            "maxRestarts": 0,
            "rules": [
                {"action": "RestartHyperJobAndIgnoreMaxRestarts", "onJobPhases": ["Failed"]},
                {"action": "RestartHyperJobAndIgnoreMaxRestarts", "onClusterLost": True},
            ],
        }
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
