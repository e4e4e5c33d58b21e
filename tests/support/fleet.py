"""A large fleet in memory: HyperJobs of every phase over many clusters and queues."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, QUEUES
from tests.support.apiserver import ApiServer

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
PHASES = ("Running",) * 6 + ("Queued",) * 2 + ("Completed",) * 3 + ("Failed", "Suspended")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
QUEUE_COUNT = 12


def fill(server: ApiServer, *, hyperjobs: int, clusters: int) -> None:
    """Store a fleet in an API server."""
    for number in range(QUEUE_COUNT):
        server.put(QUEUES, _queue(number))
    for number in range(clusters):
        server.put(CLUSTERS, _cluster(number))
    for number in range(hyperjobs):
        server.put(HYPERJOBS, hyperjob(number, clusters=clusters))


def hyperjob(number: int, *, clusters: int, phase: str = "", message: str = "") -> Object:
    """Return the HyperJob of a number; equal numbers give equal HyperJobs."""
    phase = phase or PHASES[number % len(PHASES)]
    placed = phase in ("Running", "Completed", "Failed")
    created = (BEGIN + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    container = {"name": "main", "image": "train:1", "resources": {"requests": {GPU: "8"}}}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    jobs = [
        {
            "name": f"train-{number}-trainer-{index}",
            "replicatedJob": "trainer",
            "index": index,
            "phase": phase if placed else "Queued",
            "cluster": f"cluster-{(number + index * 7) % clusters:03}" if placed else "",
            "running": 2 if phase == "Running" else 0,
            "pods": 2,
            "accelerators": 16,
            "lastTransitionTime": created,
        }
        for index in range(4)
    ]
    return {
        "metadata": {
            "name": f"train-{number}",
            "namespace": f"team-{number % 40}",
            "uid": f"uid-of-{number}",
            "resourceVersion": "1",
            "creationTimestamp": created,
            "labels": {"team": f"team-{number % 40}", "model": f"model-{number % 200}"},
        },
        "spec": {
            "replicatedJobs": [
                {
                    "name": "trainer",
                    "replicas": 4,
                    "templateSpec": {"queue": f"queue-{number % QUEUE_COUNT}", "tasks": [task]},
                }
            ]
        },
        "status": {
            "observedGeneration": 1,
            "state": {
                "phase": phase,
                "reason": "JobsRunning" if phase == "Running" else "WaitingForQueue",
                "message": message
                or f"{'4 of 4' if phase == 'Running' else '0 of 4'} sub-jobs run",
                "lastTransitionTime": created,
            },
            "jobs": jobs,
            "jobsReady": "4/4" if phase == "Running" else "0/4",
            "startTime": created if placed else None,
        },
    }


def _queue(number: int) -> Object:
    return {
        "metadata": {
            "name": f"queue-{number}",
            "creationTimestamp": (BEGIN + timedelta(seconds=number)).isoformat(),
        },
        "spec": {"weight": number % 4 + 1},
        "status": {"state": "Open"},
    }


def _cluster(number: int) -> Object:
    return {
        "metadata": {"name": f"cluster-{number:03}"},
        "spec": {"provider": "example", "region": f"region-{number % 5}"},
        "status": {
            "conditions": [{"type": "Ready", "status": "False" if number % 50 == 49 else "True"}],
            "resourceSummary": {"allocatable": {GPU: "4096"}, "allocated": {GPU: "3000"}},
        },
    }
