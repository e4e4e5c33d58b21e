"""The PersistentVolumeClaim and the grace period that spec.checkpoint adds to a sub-job's pods.

A terminationGracePeriodSeconds of the template stays as it is.
"""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.stops import VOLUME_NAME
from hyperjob_core.api.wire import mapping, objects
from hyperjob_engine.model.observed import Checkpoint


def with_checkpoint(template: Object, checkpoint: Checkpoint | None) -> Object:
    """Return a vcjob's template with the grace period and the claim of spec.checkpoint."""
    if checkpoint is None:
        return template
    return {
        **template,
        "tasks": [_task(task, checkpoint) for task in objects(template.get("tasks"))],
    }


def _task(task: Object, checkpoint: Checkpoint) -> Object:
    template = mapping(task.get("template"))
    spec = {
        "terminationGracePeriodSeconds": checkpoint.grace_seconds,
        **mapping(template.get("spec")),
    }
    if checkpoint.claim:
        spec = _mounted(spec, checkpoint)
    return {**task, "template": {**template, "spec": spec}}


def _mounted(spec: Object, checkpoint: Checkpoint) -> Object:
    """Return a pod's spec with the claim as a volume, mounted in every container."""
    volume = {
        "name": VOLUME_NAME,
        "persistentVolumeClaim": {"claimName": checkpoint.claim},
    }
    mount = {"name": VOLUME_NAME, "mountPath": checkpoint.directory}
    containers: Object = {
        field: [
            {**each, "volumeMounts": [*objects(each.get("volumeMounts")), mount]}
            for each in objects(spec[field])
        ]
        for field in ("initContainers", "containers")
        if field in spec
    }
    return {**spec, **containers, "volumes": [*objects(spec.get("volumes")), volume]}
