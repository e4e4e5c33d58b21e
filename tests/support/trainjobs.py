"""TrainJobs and runtimes of Kubeflow Trainer for tests."""

from typing import Any

from hyperjob_core.api.trainer import (
    ANCESTOR,
    CLUSTER_RUNTIME_KIND,
    RUNS_AS,
    RUNS_AS_HYPERJOB,
    TRAINJOB_API_VERSION,
    TRAINJOB_KIND,
)

Object = dict[str, Any]


def job(step: str, name: str = "", **pod: Any) -> Object:
    """Return a replicatedJob of a step, with one container of the step's name."""
    container = {"name": "node" if step == "trainer" else step, "image": f"{step}:1"}
    spec = {"containers": [container], **pod}
    return {
        "name": name or ("node" if step == "trainer" else step),
        "template": {
            "metadata": {"labels": {ANCESTOR: step}},
            "spec": {"template": {"spec": spec}},
        },
    }


def runtime(
    name: str = "torch", *jobs: Object, policy: Object | None = None, **template: Any
) -> Object:
    """Return a ClusterTrainingRuntime; without jobs it has only a trainer."""
    return {
        "apiVersion": TRAINJOB_API_VERSION,
        "kind": CLUSTER_RUNTIME_KIND,
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}} if policy is None else policy,
            "template": {"spec": {"replicatedJobs": list(jobs or [job("trainer")]), **template}},
        },
    }


def trainjob(
    name: str = "tj",
    namespace: str = "team",
    *,
    spread: str | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Return a TrainJob that runs as a HyperJob."""
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {RUNS_AS: RUNS_AS_HYPERJOB} if labels is None else labels,
    }
    if spread is not None:
        metadata["annotations"] = {"training.volcano.sh/spread": spread}
    return {
        "apiVersion": TRAINJOB_API_VERSION,
        "kind": TRAINJOB_KIND,
        "metadata": metadata,
        "spec": {"runtimeRef": {"name": "torch"}, **spec},
    }
