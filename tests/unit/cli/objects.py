"""Builders of what the commands read."""

from typing import Any

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
NOW = "2026-01-01T01:00:00Z"
CREATED = "2026-01-01T00:00:00Z"


def sub_job(index: int = 0, **fields: Any) -> Object:
    return {
        "name": f"llm-trainer-{index}",
        "replicatedJob": "trainer",
        "index": index,
        "pods": 2,
        "accelerators": 8,
        **fields,
    }


def hyperjob(phase: str = "", *jobs: Object, queue: str = "default", **status: Any) -> Object:
    """Build HyperJob ml/llm; without a phase it has no status at all."""
    container = {"name": "main", "resources": {"limits": {GPU: "4"}}}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    state = {
        "phase": phase,
        "reason": status.pop("reason", ""),
        "message": status.pop("message", ""),
        "lastTransitionTime": CREATED,
    }
    metadata = {
        "name": "llm",
        "namespace": "ml",
        "uid": "1",
        "generation": status.pop("generation", 1),
        "creationTimestamp": CREATED,
        **status.pop("metadata", {}),
    }
    spec = {
        "replicatedJobs": [
            {
                "name": "trainer",
                "replicas": 2,
                "templateSpec": {
                    "queue": queue,
                    "tasks": [task],
                    "priorityClassName": status.pop("priority", ""),
                },
            }
        ],
        **status.pop("spec", {}),
    }
    found: Object = {"metadata": metadata, "spec": spec}
    if phase:
        found["status"] = {
            "observedGeneration": 1,
            "state": state,
            "jobs": list(jobs),
            "queue": queue,
            **status,
        }
    return found


def cluster(name: str, *, gpus: int = 32, used: int = 0, ready: bool = True) -> Object:
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "ClusterNotReachable",
        "message": "cluster is not reachable",
    }
    return {
        "metadata": {"name": name},
        "status": {
            "conditions": [condition],
            "apiEnablements": [
                {"groupVersion": "batch.volcano.sh/v1alpha1", "resources": [{"kind": "Job"}]}
            ],
            "resourceSummary": {
                "allocatable": {GPU: str(gpus), "cpu": "64", "pods": "99"},
                "allocated": {GPU: str(used)},
            },
        },
    }


def queue(name: str = "default", state: str = "Open", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": spec, "status": {"state": state} if state else {}}


def binding(name: str, *, cluster: str = "", **more: Any) -> Object:
    return {
        "metadata": {"name": f"{name}-job", "annotations": more.pop("annotations", {})},
        "spec": {
            "clusters": [{"name": cluster}] if cluster else [],
            "suspension": more.pop("suspension", {}),
        },
        "status": more,
    }


def pod(name: str, phase: str = "Pending", **status: Any) -> Object:
    return {
        "metadata": {
            "name": name,
            "uid": status.pop("uid", ""),
            "labels": {"volcano.sh/task-spec": "worker"},
            "annotations": status.pop("annotations", {}),
        },
        "spec": {"containers": [{"name": "main"}, {"name": "side"}]},
        "status": {"phase": phase, **status},
    }
