"""The HyperJob of a TrainJob: one sub-job for each cluster, one task for each node.

A task of one pod has its rank, its labels and its variables in its template, as each pod of
Trainer's indexed Job has. The launcher and the nodes of an MPI training are one sub-job. What
cannot be carried over is refused by field.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.field import METADATA, FieldError
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND
from hyperjob_core.api.trainer import (
    KUEUE_QUEUE_NAME,
    LABEL_TRAINJOB,
    NODE,
    PORT,
    QUEUE_NAME,
    SPREAD,
    TRAINER_STEP,
    TTL,
)
from hyperjob_core.api.wire import at, decoded, integer, mapping, objects, string, string_map
from hyperjob_core.kube.resources import TRAINJOBS
from hyperjob_trainjobs.checks import Refusals, check
from hyperjob_trainjobs.pods import MpiTraining, Training, patched, pod_template, step_of


class SpreadError(ValueError):
    """The annotation cannot be used; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The clusters of a TrainJob: how many, which, and the queue of its sub-jobs."""

    parts: int = 1
    """Number of sub-jobs, and the greatest number of clusters."""
    names: tuple[str, ...] = ()
    """The only allowed clusters; empty: all."""
    split: tuple[int, ...] = ()
    """Nodes of each sub-job; empty: equal shares, the first ones greater by one."""
    queue: str = ""
    quorum: int | None = None

    def sizes(self, nodes: int) -> tuple[int, ...]:
        """Return the nodes of each sub-job; raises SpreadError."""
        if self.split and (len(self.split) != self.parts or sum(self.split) != nodes):
            raise SpreadError(
                f"split must have {self.parts} numbers with the sum {nodes}, the number of nodes"
            )
        if self.split:
            return self.split
        if self.parts > nodes:
            raise SpreadError(f"clusters must not be more than the {nodes} nodes of the TrainJob")
        share, more = divmod(nodes, self.parts)
        return tuple(share + (part < more) for part in range(self.parts))


def spread_of(trainjob: object, runtime: object) -> Spread:
    """Return the annotation's values; those of the TrainJob have precedence over its runtime's.

    Raises SpreadError.
    """
    return _spread({**_values(runtime), **_values(trainjob)})


_KEYS: Final = ("clusters", "split", "queue", "quorum")


def _values(obj: object) -> Mapping[str, object]:
    """Return the keys of an object's annotation; raises SpreadError for an unknown one."""
    text = string_map(at(obj, "metadata", "annotations")).get(SPREAD, "")
    if not text:
        return {}
    try:
        values = decoded(text)
    except ValueError:
        raise SpreadError("must be a JSON object") from None
    if not isinstance(values, dict):
        raise SpreadError("must be a JSON object")
    for key in values:
        if key not in _KEYS:
            raise SpreadError(f"has the unknown key {key[:63]!r}; there are {', '.join(_KEYS)}")
    return mapping(values)


def _spread(values: Mapping[str, object]) -> Spread:
    """Return the spread; raises SpreadError that names the first wrong key.

    `clusters` is the number of sub-jobs, or a list with the cluster of each.
    """
    clusters = values.get("clusters", 1)
    names = tuple(string(each) for each in clusters) if isinstance(clusters, list) else ()
    parts = len(names) if isinstance(clusters, list) else integer(clusters)
    if parts is None or not 1 <= parts <= 100 or not all(names):
        raise SpreadError("clusters must be a number from 1 to 100, or a list of cluster names")
    split = values.get("split", [])
    sizes = tuple(integer(each) or 0 for each in split) if isinstance(split, list) else (0,)
    if any(size < 1 for size in sizes):
        raise SpreadError("split must be a list of positive numbers")
    queue, quorum = values.get("queue", ""), values.get("quorum")
    if not isinstance(queue, str):
        raise SpreadError("queue must be the name of a Queue")
    if quorum is not None and (integer(quorum) is None or not 1 <= (integer(quorum) or 0) <= parts):
        raise SpreadError(f"quorum must be a number from 1 to {parts}, the number of sub-jobs")
    return Spread(parts=parts, names=names, split=sizes, queue=queue, quorum=integer(quorum))


BACKOFF_LIMIT: Final = 6
"""Restarts of failed pods that a Job allows where its spec has no backoffLimit."""
_MOST_RESTARTS: Final = 1_000_000
_SPREAD: Final = METADATA.child("annotations").key(SPREAD)
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The HyperJob of a TrainJob, or why there is none."""

    hyperjob: Object | None = None
    refusals: tuple[FieldError, ...] = ()


def convert(trainjob: Object, runtime: Object) -> Converted:
    """Return the HyperJob of a TrainJob with the runtime that it refers to."""
    refusals = Refusals(trainjob)
    template = patched(runtime, trainjob)
    mpi = mpi_of(trainjob, runtime, template)
    nodes = nodes_of(trainjob, runtime, template) if mpi is None else mpi.pods
    check(trainjob, runtime, template, nodes, refusals)
    if KUEUE_QUEUE_NAME in string_map(at(trainjob, "metadata", "labels")):
        refusals.field(
            METADATA.child("labels").key(KUEUE_QUEUE_NAME),
            f"Kueue does not admit HyperJobs: name a queue in the annotation {SPREAD}",
        )
    spread = Spread()
    sizes: tuple[int, ...] = (1,)
    try:
        spread = spread_of(trainjob, runtime)
        sizes = spread.sizes(max(nodes, 1))
    except SpreadError as error:
        refusals.field(_SPREAD, str(error))
    if mpi is not None and len(sizes) > 1:
        refusals.field(_SPREAD, "clusters must be 1 for MPI: one sub-job has the SSH keys")
    if refusals.errors:
        return Converted(refusals=tuple(refusals.errors))
    return Converted(hyperjob=_hyperjob(trainjob, runtime, template, spread, sizes, mpi))


def nodes_of(trainjob: Object, runtime: Object, template: Object) -> int:
    """Return the number of nodes: of the TrainJob, else of the runtime, else 1."""
    asked = integer(at(trainjob, "spec", "trainer", "numNodes"))
    if asked is not None:
        return asked
    policy = at(runtime, "spec", "mlPolicy")
    if policy is not None:
        found = integer(at(policy, "numNodes"))
    else:
        found = integer(at(trainer_of(template), "template", "spec", "parallelism"))
    return 1 if found is None else found


def trainer_of(template: Object) -> Object:
    """Return the replicatedJob that trains."""
    jobs = objects(at(template, "spec", "replicatedJobs"))
    return next((job for job in jobs if step_of(job) == TRAINER_STEP), {})


def mpi_of(trainjob: Object, runtime: Object, template: Object) -> MpiTraining | None:
    """Return the launcher and the nodes of an MPI training; None for another runtime."""
    policy = mapping(at(runtime, "spec", "mlPolicy"))
    if "mpi" not in policy:
        return None
    jobs = objects(at(template, "spec", "replicatedJobs"))
    node = next((job for job in jobs if job.get("name") == NODE), {})
    return MpiTraining.of(trainjob, policy, trainer_of(template), node)


def _hyperjob(
    trainjob: Object,
    runtime: Object,
    template: Object,
    spread: Spread,
    sizes: tuple[int, ...],
    mpi: MpiTraining | None,
) -> Object:
    """Return the HyperJob: a replicatedJob for each of `sizes`, the nodes of each sub-job.

    `mpi` is the shape of an MPI training, which has one size.
    """
    metadata, job = mapping(trainjob.get("metadata")), trainer_of(template)
    name = string(metadata.get("name"))
    training = Training(
        name=name,
        job=string(job.get("name")),
        nodes=sum(sizes),
        policy=mapping(at(runtime, "spec", "mlPolicy")),
        trainer=mapping(at(trainjob, "spec", "trainer")),
        initializer=mapping(at(trainjob, "spec", "initializer")),
    )
    topology = at(runtime, "spec", "podGroupPolicy", "volcano", "networkTopology")
    labels = string_map(at(template, "metadata", "labels"))
    annotations = string_map(at(template, "metadata", "annotations"))
    annotations = {key: text for key, text in annotations.items() if key not in (_APPLIED, SPREAD)}
    ttl = integer(at(template, "spec", "ttlSecondsAfterFinished"))
    if ttl is not None:
        annotations[TTL] = str(ttl)
    spec: Object = {
        "maxDomains": spread.parts,
        "plugins": _plugins(training, alone=len(sizes) == 1),
        "failurePolicy": {"maxRestarts": _max_restarts(template, job)},
        "replicatedJobs": [
            _job_of_cluster(template, job, training, spread, part, sizes, topology, mpi)
            for part in range(len(sizes))
        ],
    }
    if at(trainjob, "spec", "suspend") is True:
        spec["suspend"] = True
    if spread.quorum is not None:
        spec["quorum"] = spread.quorum
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": string(metadata.get("namespace")),
            "labels": {**labels, LABEL_TRAINJOB: name},
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner_reference(trainjob)],
        },
        "spec": spec,
    }


def owner_reference(trainjob: Object) -> Object:
    """Return the reference that makes a TrainJob the controller of its HyperJob."""
    return {
        **TRAINJOBS.head,
        "name": string(at(trainjob, "metadata", "name")),
        "uid": string(at(trainjob, "metadata", "uid")),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _plugins(training: Training, *, alone: bool) -> Mapping[str, list[str]]:
    """Return the plugins; the pods of a single sub-job need no Service over clusters."""
    framework = {"torch": "pytorch", "jax": "jax"}.get(training.framework)
    if framework is None:
        return {}
    plugins = {framework: [f"--port={PORT}"]}
    return plugins | ({"svc": ["--export=false"]} if alone else {})


def _max_restarts(template: Object, job: Object) -> int:
    """Return the restarts after which JobSet would give up: those of the Job, again each time."""
    limit = integer(at(job, "template", "spec", "backoffLimit"))
    again = integer(at(template, "spec", "failurePolicy", "maxRestarts")) or 0
    each = (BACKOFF_LIMIT if limit is None else limit) + 1
    return min(each * (again + 1) - 1, _MOST_RESTARTS)


def _job_of_cluster(
    template: Object,
    job: Object,
    training: Training,
    spread: Spread,
    part: int,
    sizes: tuple[int, ...],
    topology: object,
    mpi: MpiTraining | None,
) -> Object:
    """Return one replicatedJob of one sub-job: the nodes of one cluster."""
    first = sum(sizes[:part])
    pods = range(first, first + sizes[part])
    jobs = (job,) if mpi is None else (mpi.node, job)
    kept = {
        field: {
            name: value
            for each in jobs
            for name, value in string_map(at(each, "template", "metadata", field)).items()
        }
        for field in ("labels", "annotations")
    }
    tasks = _node_tasks(template, training, pods) if mpi is None else mpi.tasks(template, training)
    found: Object = {
        "name": training.job if len(sizes) == 1 else f"{training.job}-{part}",
        "replicas": 1,
        "templateSpec": {
            # Volcano fails the sub-job at its first failed pod; the failurePolicy starts it again.
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "maxRetry": 1,
            "minAvailable": len(pods),
            **_scheduling(template, job, topology, spread),
            "tasks": list(tasks),
            **({} if mpi is None else {"plugins": mpi.plugins()}),
        },
    }
    if any(kept.values()):
        found["templateMetadata"] = {field: values for field, values in kept.items() if values}
    if spread.names:
        found |= {"clusterNames": list(spread.names), "clusterPolicy": "Required"}
    return found


def _scheduling(template: Object, job: Object, topology: object, spread: Spread) -> Object:
    """Return queue, priority class and network topology of a sub-job, where they are set."""
    queue = string_map(at(template, "metadata", "annotations")).get(QUEUE_NAME, "")
    priority = at(job, "template", "spec", "template", "spec", "priorityClassName")
    found: Object = {
        "queue": spread.queue or queue,
        "priorityClassName": string(priority),
        "networkTopology": topology,
    }
    return {field: value for field, value in found.items() if value}


def _node_tasks(template: Object, training: Training, ranks: range) -> Iterator[Object]:
    for rank in ranks:
        pod = pod_template(template, trainer_of(template), training, rank)
        yield {"name": f"{training.job}-{rank}", "replicas": 1, "minAvailable": 1, "template": pod}
