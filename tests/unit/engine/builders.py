"""Small documents for the controller's tests, each with only what a test says about it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hyperjob_core.api.names import binding_name
from hyperjob_engine.model.observed import Cluster, Observed, QueueAdmission, Refusal
from hyperjob_engine.model.parse import parse_binding, parse_hyperjob, parse_job, parse_policy
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement import place as placement
from hyperjob_engine.placement.room import Room
from hyperjob_engine.reasons.reason import ClusterTrouble, Trouble
from hyperjob_engine.resources import parse_resources

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = "hj-uid"


def pod(gpus: int = 1, **requests: str) -> Object:
    resources = {GPU: str(gpus), **requests} if gpus else dict(requests)
    return {"containers": [{"name": "main", "image": "i", "resources": {"requests": resources}}]}


def task(name: str = "worker", replicas: int = 1, gpus: int = 1, **fields: Any) -> Object:
    return {"name": name, "replicas": replicas, "template": {"spec": pod(gpus)}, **fields}


def template(*tasks: Object, **fields: Any) -> Object:
    return {"tasks": list(tasks) or [task()], **fields}


def group(name: str = "trainer", *, replicas: int = 2, gpus: int = 8, **fields: Any) -> Object:
    """One replicatedJob whose sub-jobs have `gpus` pods with one GPU each."""
    spec = fields.pop("templateSpec", None) or template(task(replicas=gpus))
    return {"name": name, "replicas": replicas, "templateSpec": spec, **fields}


def hyperjob(
    *groups: Object, name: str = "hj", status: Object | None = None, **spec: Any
) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": UID,
        "generation": 1,
        "creationTimestamp": "2026-01-02T03:00:00Z",
    }
    if "deletionTimestamp" in spec:
        metadata["deletionTimestamp"] = spec.pop("deletionTimestamp")
    if "generation" in spec:
        metadata["generation"] = spec.pop("generation")
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": metadata,
        "spec": {"replicatedJobs": list(groups) or [group()], **spec},
        "status": status or {},
    }


def job_status(index: int = 0, **fields: Any) -> Object:
    """Give what the status of a HyperJob records of a sub-job."""
    return {"name": f"hj-trainer-{index}", "replicatedJob": "trainer", "index": index, **fields}


def owner(uid: str = UID, name: str = "hj") -> list[Object]:
    return [
        {
            "apiVersion": "training.volcano.sh/v1alpha1",
            "kind": "HyperJob",
            "name": name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def labels(hj: str = "hj", rj: str = "trainer") -> dict[str, str]:
    return {"volcano.sh/hyperjob-name": hj, "volcano.sh/replicatedjob-name": rj}


def job(
    name: str = "hj-trainer-0",
    *,
    phase: str = "",
    gpus: int = 8,
    pods: Mapping[str, int] | None = None,
    spec: Object | None = None,
    owners: list[Object] | None = None,
    marked: Mapping[str, str] | None = None,
    deleting: bool = False,
    since: str = "2026-01-02T03:00:30Z",
) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "generation": 1,
        "labels": dict(labels() if marked is None else marked),
        "ownerReferences": owner() if owners is None else owners,
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-02T03:04:00Z"
    document: Object = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": spec if spec is not None else template(task(replicas=gpus)),
    }
    if phase:
        document["status"] = vcjob_status(phase, pods, since=since)
    return document


def vcjob_status(
    phase: str, pods: Mapping[str, int] | None = None, *, since: str = "2026-01-02T03:00:30Z"
) -> Object:
    return {"state": {"phase": phase, "lastTransitionTime": since}, **(pods or {})}


def policy(
    name: str = "hj-trainer-0",
    *,
    cluster: str = "a",
    suspended: bool = False,
    owners: list[Object] | None = None,
    deleting: bool = False,
) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"pp-{name}",
        "labels": labels(),
        "ownerReferences": owner() if owners is None else owners,
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-02T03:04:00Z"
    spec: Object = {
        "placement": {
            "clusterAffinities": [{"affinityName": "hyperjob", "clusterNames": [cluster]}]
        }
    }
    if suspended:
        spec["suspension"] = {"dispatching": True}
    return {"kind": "PropagationPolicy", "metadata": metadata, "spec": spec}


def binding(
    name: str = "hj-trainer-0",
    *,
    cluster: str = "",
    gate: str = "",
    suspension: Object | None = None,
    unscheduled: tuple[str, str] | None = None,
    status: Object | None = None,
    apply_error: str = "",
    requests: Mapping[str, str] | None = None,
) -> Object:
    """Build the binding of a vcjob; `status` is the vcjob's status as its cluster reported it."""
    document: Object = {
        "kind": "ResourceBinding",
        "metadata": {
            "name": binding_name(name),
            "namespace": "default",
            "uid": f"rb-{name}",
            "annotations": {"training.volcano.sh/gate": gate} if gate else {},
            "ownerReferences": [
                {"kind": "Job", "name": name, "uid": f"uid-{name}", "controller": True}
            ],
        },
        "spec": {
            "resource": {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "namespace": "default",
                "name": name,
            }
        },
    }
    if cluster:
        document["spec"]["clusters"] = [{"name": cluster}]
    if requests is not None:
        document["spec"]["replicaRequirements"] = {"resourceRequest": dict(requests)}
    if suspension is not None:
        document["spec"]["suspension"] = suspension
    if unscheduled is not None:
        reason, message = unscheduled
        document["status"] = {
            "conditions": [
                {"type": "Scheduled", "status": "False", "reason": reason, "message": message}
            ]
        }
    if status is not None or apply_error:
        item: Object = {"clusterName": cluster, "health": "Unknown"}
        if status is not None:
            item |= {"applied": True, "status": status}
        if apply_error:
            item["appliedMessage"] = apply_error
        document["status"] = {"aggregatedStatus": [item]}
    return document


def child(
    which: int | str = 0,
    phase: str = "",
    *,
    on: str = "a",
    gpus: int = 8,
    pods: Mapping[str, int] | None = None,
    attempt: int = 0,
    since: str = "2026-01-02T03:00:30Z",
    suspended: bool = False,
    **bound: Any,
) -> list[Object]:
    """Build vcjob, policy and binding of a sub-job, which its cluster reports in `phase`, if any.

    Where nothing else is said all pods of a sub-job that is Running run.
    """
    name = f"hj-trainer-{which}" if isinstance(which, int) else which
    if pods is None:
        pods = {"running": gpus} if phase == "Running" else {}
    report = vcjob_status(phase, pods, since=since) if phase else None
    marked = labels(rj=name.removeprefix("hj-").rpartition("-")[0])
    made = [job(name, gpus=gpus, marked=marked), policy(name, cluster=on, suspended=suspended)]
    for each in made if attempt else ():
        each["metadata"]["labels"]["training.volcano.sh/attempt"] = str(attempt)
    return [*made, binding(name, **{"cluster": on, "status": report, **bound})]


def gated(
    index: int,
    *,
    gate: str = "held",
    released: bool = True,
    suspended: bool | None = None,
    **bound: Any,
) -> list[Object]:
    """Build vcjob, policy and binding of a sub-job of a gang, which the queue released or not."""
    held = gate == "held"
    return child(
        index,
        suspended=held if suspended is None else suspended,
        gate=gate,
        suspension={"dispatching": held, "scheduling": not released},
        **{"cluster": "a" if released else "", **bound},
    )


def cluster(name: str, gpus: int = 100, *, unusable: str = "", **fields: Any) -> Cluster:
    """A candidate with `gpus` free GPUs and plenty of everything else."""
    free = parse_resources({GPU: str(gpus), "cpu": "1000", "memory": "1Ti", "pods": "1000"})
    total = parse_resources({GPU: str(fields.pop("total", gpus)), "cpu": "1k", "pods": "1000"})
    return Cluster(
        name=name,
        usable=not unusable,
        trouble=Trouble(ClusterTrouble.NOT_READY) if unusable else None,
        free=free,
        allocatable=total,
        **fields,
    )


def request(name: str, gpus: int = 1, *, group: str = "trainer", **fields: Any) -> PlacementRequest:
    demand = parse_resources({GPU: str(gpus), "pods": str(gpus)})
    if "preferred" in fields:
        fields["preferred"] = tuple(fields["preferred"])
    return PlacementRequest(name=name, group=group, demand=demand, **fields)


def observed(
    raw: Object | None = None,
    *objects: Object,
    clusters: tuple[Cluster, ...] = (),
    admission: QueueAdmission = QueueAdmission.NONE,
    refusals: Mapping[str, Refusal] | None = None,
    now: datetime = NOW,
    queues: Mapping[str, str] | None = None,
    capacity_changes_in: timedelta | None = None,
    followers: Collection[str] = (),
) -> Observed:
    """Put documents together as the observer would."""
    owner_ = parse_hyperjob(raw or hyperjob())
    by_kind: dict[str, list[Object]] = {}
    for item in objects:
        by_kind.setdefault(item["kind"], []).append(item)
    jobs = [parse_job(item, owner=owner_) for item in by_kind.get("Job", [])]
    policies = [parse_policy(item, owner=owner_) for item in by_kind.get("PropagationPolicy", [])]
    bindings = [parse_binding(item) for item in by_kind.get("ResourceBinding", [])]
    return Observed(
        hyperjob=owner_,
        jobs={item.name: item for item in jobs},
        policies={item.name: item for item in policies},
        bindings={item.name: item for item in bindings},
        clusters=clusters,
        refusals=refusals or {},
        admission=admission,
        now=now,
        queues=queues,
        capacity_changes_in=capacity_changes_in,
        followers=followers,
    )


def ends(status: Object) -> list[str]:
    """The types of the conditions that say that a HyperJob has ended."""
    types = [each["type"] for each in status["conditions"] if each["status"] == "True"]
    return [each for each in types if each in ("Completed", "Failed")]


def place(
    requests: Sequence[PlacementRequest],
    clusters: Iterable[Cluster],
    *,
    standing: Iterable[tuple[str, str]] = (),
    **limits: Any,
) -> placement.Placement:
    """Place requests in the room of these clusters."""
    return placement.place(requests, Room(clusters, standing), **limits)
