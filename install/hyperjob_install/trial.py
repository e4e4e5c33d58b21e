"""The trial HyperJob of `install` and `preflight`: only dry runs send it to the API server."""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import WEBHOOK_VERSION
from hyperjob_core.kube.resources import HYPERJOBS

TRIAL_NAME: Final = "hyperjob-preflight"
TRIAL_NAMESPACE: Final = "default"


def trial_hyperjob() -> Object:
    """Return a small HyperJob in whose annotation the webhook writes its release."""
    container = {"name": "main", "image": "busybox"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    task = {"name": "main", "replicas": 1, "template": {"spec": pod}}
    return {
        "apiVersion": HYPERJOBS.api_version,
        "kind": HYPERJOBS.kind,
        "metadata": {
            "name": TRIAL_NAME,
            "namespace": TRIAL_NAMESPACE,
            "annotations": {WEBHOOK_VERSION: ""},
        },
        "spec": {
            "replicatedJobs": [{"name": "main", "replicas": 1, "templateSpec": {"tasks": [task]}}]
        },
    }
