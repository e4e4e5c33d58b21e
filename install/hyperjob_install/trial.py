"""The trial objects of `install` and `preflight`: only dry runs send them to the API server."""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import WEBHOOK_VERSION
from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS
from hyperjob_install.policies import DEFAULT_QUEUE

TRIAL_NAME: Final = "hyperjob-preflight"
TRIAL_NAMESPACE: Final = "default"


def trial_hyperjob() -> Object:
    """Return a small HyperJob in whose annotation the webhook writes its release."""
    return {
        "apiVersion": HYPERJOBS.api_version,
        "kind": HYPERJOBS.kind,
        "metadata": {
            "name": TRIAL_NAME,
            "namespace": TRIAL_NAMESPACE,
            "annotations": {WEBHOOK_VERSION: ""},
        },
        "spec": {
            "replicatedJobs": [
                {"name": "main", "replicas": 1, "templateSpec": {"tasks": [_task()]}}
            ]
        },
    }


def trial_vcjob() -> Object:
    """Return a small vcjob of the default Queue, as the controller creates its sub-jobs."""
    return {
        "apiVersion": VCJOBS.api_version,
        "kind": VCJOBS.kind,
        "metadata": {"name": TRIAL_NAME, "namespace": TRIAL_NAMESPACE},
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "queue": DEFAULT_QUEUE,
            "tasks": [_task()],
        },
    }


def _task() -> Object:
    container = {"name": "main", "image": "busybox"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"name": "main", "replicas": 1, "template": {"spec": pod}}
