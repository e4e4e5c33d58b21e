"""Fill in what a HyperJob leaves open, so that what is read back is what runs.

Pure. Only adds: a value that its author wrote is never replaced by another (a fraction such as
`cpu: 0.5` becomes the text of the same amount), an object that is being deleted never touched, and
whatever has an unexpected type, or more items than there may be, is left for validation to name.
Nothing is copied but the way down to a change: an unchanged object comes back as the same object.
"""

from hyperjob.api.checkpoint import DEFAULT_GRACE_SECONDS, DEFAULT_PATH
from hyperjob.api.limits import MAX_ALL_TASKS, count_tasks
from hyperjob.api.meta import Object
from webhook.defaulting.copying import edit, edit_items
from webhook.defaulting.job import default_job_spec

__all__ = ["default"]


def default(raw: Object) -> Object:
    """Return the HyperJob with its defaults; the input stays as it is."""
    metadata = raw.get("metadata")
    if isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None:
        return raw
    if count_tasks(raw.get("spec")) > MAX_ALL_TASKS:
        return raw
    return edit(raw, "spec", default_spec)


def default_spec(spec: Object) -> Object:
    """Default the fields of a HyperJob's own and everything below its replicatedJobs."""
    spec = edit_items(spec, "replicatedJobs", default_replicated_job)
    policy = spec.get("successPolicy")
    if isinstance(policy, dict) and policy.get("operator") is None:
        spec = {**spec, "successPolicy": {**policy, "operator": "All"}}
    return edit(spec, "checkpoint", default_checkpoint)


def default_checkpoint(checkpoint: Object) -> Object:
    """Default where the claim of the checkpoints is mounted, and how long pods have to save."""
    added: Object = {}
    if checkpoint.get("persistentVolumeClaim") and checkpoint.get("path") is None:
        added["path"] = DEFAULT_PATH
    if checkpoint.get("gracePeriodSeconds") is None:
        added["gracePeriodSeconds"] = DEFAULT_GRACE_SECONDS
    return {**checkpoint, **added} if added else checkpoint


def default_replicated_job(job: Object) -> Object:
    """Default one replicatedJob and the vcjob template in it."""
    added: Object = {}
    if job.get("replicas") is None:
        added["replicas"] = 1
    if job.get("clusterPolicy") is None:
        added["clusterPolicy"] = "Preferred"
    if added:
        job = {**job, **added}
    return edit(job, "templateSpec", default_job_spec)
