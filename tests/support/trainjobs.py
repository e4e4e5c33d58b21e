"""TrainJobs and runtimes of Kubeflow Trainer for tests."""

from pathlib import Path
from typing import Any

import yaml

from hyperjob_core.api.trainer import (
    ANCESTOR,
    CLUSTER_RUNTIME_KIND,
    RUNS_AS,
    RUNS_AS_HYPERJOB,
    TRAINER_CONTROLLER,
    TRAINER_GROUP,
)
from hyperjob_core.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CRDS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    Resource,
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
        **CLUSTER_TRAINING_RUNTIMES.head,
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}} if policy is None else policy,
            "template": {"spec": {"replicatedJobs": list(jobs or [job("trainer")]), **template}},
        },
    }


def mpi_runtime(name: str = "mpi", *, numbers: Object | None = None, **policy: Any) -> Object:
    """Return a runtime with a launcher and a node that serves SSH; `policy` is `mlPolicy.mpi`."""
    node = job("trainer", name="node")
    del node["template"]["metadata"]
    container = node["template"]["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "sshd:1", "command": ["/usr/sbin/sshd", "-De"]}
    launcher = job("trainer", name="launcher")
    launcher["dependsOn"] = [{"name": "node", "status": "Ready"}]
    success = {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    given = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI", **policy}, **(numbers or {})}
    return runtime(name, node, launcher, policy=given, successPolicy=success)


def trainjob(
    name: str = "tj",
    namespace: str = "team",
    *,
    spread: str | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Return a TrainJob that runs as a HyperJob, as its author writes it."""
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "labels": {RUNS_AS: RUNS_AS_HYPERJOB} if labels is None else labels,
    }
    if spread is not None:
        metadata["annotations"] = {"training.volcano.sh/spread": spread}
    return {
        **TRAINJOBS.head,
        "metadata": metadata,
        "spec": {"runtimeRef": {"name": "torch"}, **spec},
    }


def stored(obj: Object, created: str = "2026-01-01T00:00:00Z") -> Object:
    """Return a TrainJob as the API server stores it."""
    metadata = obj["metadata"]
    known = {"uid": f"uid-{metadata['name']}", "creationTimestamp": created}
    return {**obj, "metadata": {**metadata, **known}}


def crds() -> list[Object]:
    """Return definitions of Trainer's three kinds: their names, their defaults, any fields."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    reference = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "apiGroup": {"type": "string", "default": TRAINER_GROUP},
            "kind": {"type": "string", "default": CLUSTER_RUNTIME_KIND},
        },
    }
    managed = {"type": "string", "default": TRAINER_CONTROLLER}
    suspend = {"type": "boolean", "default": False}
    spec = {
        **anything,
        "properties": {"runtimeRef": reference, "managedBy": managed, "suspend": suspend},
    }
    return [
        _crd(TRAINJOBS, {"spec": spec, "status": anything}),
        _crd(TRAINING_RUNTIMES, {"spec": anything}),
        _crd(CLUSTER_TRAINING_RUNTIMES, {"spec": anything}),
    ]


def definitions(folder: Path) -> list[Path]:
    """Write the definitions of Trainer's kinds to files of a folder, one for each kind."""
    folder.mkdir(parents=True)
    paths = []
    for crd in crds():
        paths.append(folder / f"{crd['metadata']['name']}.yaml")
        paths[-1].write_text(yaml.safe_dump(crd), encoding="utf-8")
    return paths


def _crd(resource: Resource, properties: Object) -> Object:
    version: Object = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    if "status" in properties:
        version["subresources"] = {"status": {}}
    return {
        **CRDS.head,
        "metadata": {"name": resource.group_resource},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
            },
            "versions": [version],
        },
    }
