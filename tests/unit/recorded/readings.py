"""What is read of objects in which any one field is absent or something else."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping
from hyperjob_core.text import shortened
from hyperjob_engine.expansion.expand import SpecError, expand
from hyperjob_engine.model.clusterusage import room_of
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.model.parse import (
    parse_binding,
    parse_hyperjob,
    parse_job,
    parse_policy,
)
from hyperjob_engine.placement.capacity import summarise
from hyperjob_engine.queueing.queues import parse_queue
from hyperjob_engine.resources import pod_request
from hyperjob_engine.status.goodput import parse_account
from tests.unit.controller.builders import GPU, binding, hyperjob, job, labels, owner, policy
from tests.unit.recorded.recording import Case, changes, line, plain

OTHERS: Final[tuple[Any, ...]] = (
    None, "", "x", 0, -1, 3, 1.5, True, False, [], ["b", "", 3, "b"], {},
)  # fmt: skip
SHOWN: Final = 400
GONE: Final = object()

POD: Final[Object] = {
    "containers": [
        {
            "name": "main",
            "resources": {"requests": {GPU: "2", "cpu": "500m"}, "limits": {GPU: "2"}},
        },
        {"name": "side", "resources": {"limits": {"memory": "1Gi", "cpu": 2}}},
    ],
    "initContainers": [
        {"name": "once", "resources": {"requests": {"cpu": "9", "memory": "512Mi"}}},
        {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "last", "resources": {"requests": {"memory": "2Gi"}}},
    ],
    "resources": {"requests": {"hugepages-2Mi": "4Mi"}},
    "overhead": {"cpu": "100m"},
}
HYPERJOB: Final[Object] = hyperjob(
    {
        "name": "g0",
        "replicas": 2,
        "templateSpec": {
            "tasks": [
                {"name": "master", "replicas": 1, "minAvailable": 1, "template": {"spec": POD}},
                {"name": "worker", "replicas": 3, "template": {"spec": POD}},
            ],
            "minAvailable": 3,
            "queue": "q0",
        },
        "templateMetadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}},
        "clusterNames": ["a", "b", "a"],
        "clusterPolicy": "Required",
    },
    {
        "name": "g1",
        "templateSpec": {"tasks": [{"name": "worker", "replicas": 4, "template": {"spec": POD}}]},
        "splitPolicy": {"mode": "static", "accelerators": 8, "acceleratorType": GPU},
        "dependsOn": [{"name": "g0", "status": "Ready"}],
    },
    minAvailable=2,
    maxDomains=2,
    suspend=True,
    quorum=1,
    ttlSecondsAfterFinished=60,
    plugins={"svc": ["--a=b", "", 3], "env": []},
    failurePolicy={
        "maxRestarts": 3,
        "rules": [
            {
                "action": "RestartJob",
                "onJobPhases": ["Failed", "Odd"],
                "onClusterLost": True,
                "targetReplicatedJobs": ["g0"],
            }
        ],
    },
    successPolicy={"operator": "Any", "targetReplicatedJobs": ["g0"]},
    checkpoint={
        "directory": "/d",
        "persistentVolumeClaim": "claim",
        "path": "/p",
        "gracePeriodSeconds": 120,
    },
    status={
        "jobs": [
            {
                "name": "hj-g0-0",
                "replicatedJob": "g0",
                "index": 0,
                "cluster": "a",
                "accelerators": 8,
                "phase": "Running",
                "reason": "R",
                "message": "m",
                "attempt": 2,
                "running": 3,
                "pods": 4,
                "excludedClusters": ["b"],
                "admitted": True,
                "retryTime": "2026-01-02T03:05:00Z",
                "rejections": [
                    {
                        "cluster": "b",
                        "times": 2,
                        "since": "2026-01-02T03:01:00Z",
                        "retryTime": "2026-01-02T03:06:00Z",
                    }
                ],
                "silence": {"times": 1, "retryTime": "2026-01-02T03:07:00+01:00"},
                "startTime": "2026-01-02T03:00:00Z",
                "failure": {
                    "pod": "p",
                    "task": "t",
                    "container": "c",
                    "exitCode": 0,
                    "reason": "Error",
                    "message": "words",
                    "time": "2026-01-02T03:00:30Z",
                },
                "history": [
                    {
                        "attempt": 1,
                        "cluster": "b",
                        "startTime": "2026-01-02T02:00:00Z",
                        "endTime": "2026-01-02T02:30:00Z",
                        "phase": "Failed",
                        "reason": "JobFailed",
                        "message": "words",
                        "failure": {"pod": "p"},
                    }
                ],
                "training": {
                    "step": 40,
                    "updateTime": "2026-01-02T03:02:00.5Z",
                    "startStep": 10,
                    "startTime": "2026-01-02T03:01:00",
                    "savedStep": 30,
                    "savedTime": "2026-01-02T03:01:30Z",
                    "attempt": 2,
                    "uid": "u",
                },
                "lastTransitionTime": "2026-01-02T03:00:01Z",
            }
        ],
        "stop": {"cause": "Suspended", "until": "2026-01-02T03:09:00Z", "jobs": ["hj-g0-0"]},
        "checkpoint": {"resumeStep": 30},
        "gang": {
            "incompleteSince": "2026-01-02T03:03:00Z",
            "admitted": 1,
            "attempts": 2,
            "retryTime": "2026-01-02T03:08:00Z",
        },
        "conditions": [{"type": "Completed", "status": "True"}],
    },
)
REPORTED: Final[Object] = {
    "state": {
        "phase": "Pending",
        "reason": "R",
        "message": "m",
        "lastTransitionTime": "2026-01-02T03:00:30Z",
    },
    "pending": 2,
    "running": 0,
    "retryCount": 0,
    "taskStatusCount": {"worker": {"phase": {"Pending": 2, "Running": 1, "Failed": 1}}},
    "conditions": [
        {"status": "Pending", "lastTransitionTime": "2026-01-02T03:00:20Z"},
        {"status": "Running", "lastTransitionTime": "2026-01-02T03:00:25Z"},
    ],
}
WAITS: Final[Object] = job(phase="Pending", pods={"pending": 1})
WAITS["status"]["conditions"] = [{"status": "Pending"}]
CLUSTER: Final[Object] = {
    "metadata": {"name": "a"},
    "spec": {
        "provider": "p",
        "region": "r",
        "zone": "z",
        "zones": ["z1", "z2"],
        "taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}],
        "resourceModels": [
            {"grade": 0, "ranges": [{"name": GPU, "min": "0", "max": "4"}]},
            {"grade": 1, "ranges": [{"name": GPU, "min": "4", "max": "9"}]},
        ],
    },
    "status": {
        "conditions": [
            {"type": "Other", "status": "False"},
            {
                "type": "Ready",
                "status": "True",
                "reason": "ClusterReady",
                "lastTransitionTime": "2026-01-02T03:00:00Z",
            },
        ],
        "apiEnablements": [
            {
                "groupVersion": "batch.volcano.sh/v1alpha1",
                "resources": [{"kind": "JobFlow"}, {"kind": "Job"}],
            }
        ],
        "nodeSummary": {"totalNum": 3, "readyNum": 2},
        "resourceSummary": {
            "allocatable": {GPU: "16", "cpu": "100", "memory": "1Ti"},
            "allocated": {GPU: "3", "cpu": "7500m"},
            "allocating": {GPU: "1"},
            "allocatableModelings": [{"grade": 0, "count": 1}, {"grade": 1, "count": 2}],
        },
    },
}
LOST: Final[Object] = copy.deepcopy(CLUSTER)
LOST["status"]["conditions"][1]["status"] = "False"
TAINTED: Final[Object] = copy.deepcopy(CLUSTER)
TAINTED["spec"]["taints"].append({"key": "k2", "effect": "NoExecute"})
QUEUE: Final[Object] = {
    "metadata": {
        "name": "q",
        "annotations": {
            "training.volcano.sh/preemption": "disabled",
            "training.volcano.sh/running-estimate": "90m",
        },
    },
    "spec": {
        "parent": "p",
        "weight": 3,
        "priority": 2,
        "dequeueStrategy": "fifo",
        "reclaimable": True,
        "capability": {GPU: "8", "cpu": "1.5"},
        "guarantee": {"resource": {GPU: "2"}},
        "deserved": {GPU: 4},
    },
    "status": {"state": "Closed"},
}
ACCOUNT: Final[Object] = {
    "since": "2026-01-02T03:01:00.000000Z",
    "state": "degraded",
    "milliseconds": {"productive": 60000, "starting": 5},
    "share": "0.5",
    "stopped": {
        "step": 40,
        "updateTime": "2026-01-02T03:00:30.5Z",
        "startStep": 10,
        "startTime": "2026-01-02T03:00:00Z",
        "time": "2026-01-02T03:00:40Z",
        "since": "2026-01-02T03:00:10Z",
        "keptUntil": "2026-01-02T03:00:20Z",
        "cause": "lostToFailures",
    },
}
OWNER: Final = parse_hyperjob(hyperjob())


def _job() -> Object:
    raw = job(owners=[{"kind": "Other"}, *owner()], marked={**labels(), "more": "x"})
    raw["metadata"]["annotations"] = {
        "training.volcano.sh/attempt": "2",
        "training.volcano.sh/world": "w1",
    }
    raw["metadata"]["labels"]["training.volcano.sh/attempt"] = "2"
    raw["metadata"]["creationTimestamp"] = "2026-01-02T03:00:00Z"
    raw["spec"] |= {"minAvailable": 8, "priorityClassName": "high", "queue": "q0"}
    raw["spec"]["tasks"][0]["minAvailable"] = 7
    raw["status"] = copy.deepcopy(REPORTED)
    return raw


def _binding() -> Object:
    raw = binding(
        cluster="a",
        gate="held",
        suspension={"scheduling": True, "dispatching": True},
        unscheduled=("Unschedulable", "0/1 clusters"),
        requests={GPU: "1"},
    )
    raw["spec"]["placement"] = {"clusterAffinity": {"clusterNames": ["a", "b"]}}
    raw["spec"]["resource"]["uid"] = "uid-hj-trainer-0"
    raw["status"]["conditions"].append(
        {"type": "FullyApplied", "status": "True", "lastTransitionTime": "2026-01-02T03:01:00Z"}
    )
    raw["status"]["aggregatedStatus"] = [
        {"clusterName": "b", "applied": False, "appliedMessage": "of another"},
        {"clusterName": "a", "applied": True, "appliedMessage": "m", "status": REPORTED},
    ]
    return raw


def _hyperjob(raw: Object) -> HyperJob:
    """Read a HyperJob, and leave out what it has as it is in the object."""
    found = parse_hyperjob(raw)
    groups = tuple(
        replace(each, template=dict.fromkeys(each.template, "")) for each in found.replicated_jobs
    )
    return replace(found, status={}, replicated_jobs=groups)


def _sizes(raw: Object) -> Any:
    try:
        groups = expand(parse_hyperjob(raw))
    except SpecError as error:
        return str(error)
    return [
        [(each.demand, each.accelerators, each.pods, len(each.pod_groups)) for each in group.sizes]
        for group in groups
    ]


READ: Final[dict[str, tuple[Object, Callable[[Object], Any]]]] = {
    "HyperJob": (HYPERJOB, _hyperjob),
    "sizes of a HyperJob": (HYPERJOB, _sizes),
    "vcjob that waits": (WAITS, lambda raw: parse_job(raw, owner=OWNER)),
    "vcjob": (_job(), lambda raw: parse_job(raw, owner=OWNER)),
    "policy": (policy(suspended=True), lambda raw: parse_policy(raw, owner=OWNER)),
    "binding": (_binding(), parse_binding),
    "Cluster": (CLUSTER, summarise),
    "Cluster that is lost": (LOST, summarise),
    "Cluster with a taint": (TAINTED, summarise),
    "usage of a Cluster": (CLUSTER, room_of),
    "Queue": (QUEUE, parse_queue),
    "pod": (POD, pod_request),
    "goodput": (ACCOUNT, parse_account),
}


def reading_cases(kind: str) -> Iterator[Case]:
    whole, read = READ[kind]
    known = plain(read(copy.deepcopy(whole)))
    known = known if isinstance(known, dict) else {"is": known}
    yield kind, [f"{name} = {line(value)}" for name, value in sorted(_one(known).items())]
    for path in _paths(whole):
        rows: dict[str, list[str]] = {}
        for other in (GONE, *OTHERS):
            raw = copy.deepcopy(whole)
            if not _set(raw, path, other):
                continue
            found = plain(read(raw))
            found = found if isinstance(found, dict) else {"is": found}
            differs = shortened("; ".join(changes(_one(known), _one(found))) or "the same", SHOWN)
            rows.setdefault(differs, []).append("gone" if other is GONE else line(other))
        if set(rows) != {"the same"}:
            where = ".".join(map(str, path))
            yield (
                f"{kind}: {where}",
                [f"{', '.join(others)}: {differs}" for differs, others in rows.items()],
            )


def _one(document: Object) -> Object:
    """Leave out the name of the only dataclass around a document."""
    inner = [*document.values()]
    return mapping(inner[0]) if len(inner) == 1 and isinstance(inner[0], dict) else document


def _paths(document: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    for key, value in items:
        yield (*at, key)
        yield from _paths(value, (*at, key))


def _set(document: Any, path: tuple[str | int, ...], other: Any) -> bool:
    """Change one field; return whether it is another one now."""
    for key in path[:-1]:
        document = document[key]
    before = document[path[-1]]
    if other is GONE:
        del document[path[-1]]
        return True
    document[path[-1]] = copy.deepcopy(other)
    return before != other or type(before) is not type(other)
