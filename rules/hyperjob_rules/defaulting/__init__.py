"""The defaults of a HyperJob: the stored object then equals what runs. Pure.

Defaulting only adds fields; a value of the author stays (a fraction such as `cpu: 0.5` becomes the
text of the same amount). A HyperJob that is being deleted stays as it is. Defaulting skips a value
of an unexpected type and a list that is too long, which validation reports. It copies only the
changed parts: an unchanged object is returned as the same object.
"""

from hyperjob_core.api.checkpoint import DEFAULT_GRACE_SECONDS, DEFAULT_PATH
from hyperjob_core.api.limits import MAX_ALL_TASKS, count_tasks
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at
from hyperjob_rules.defaulting.job import default_job_spec, edit, edit_items

__all__ = ["default", "is_being_deleted"]


def default(raw: Object) -> Object:
    """Return the HyperJob with its defaults; the input stays as it is."""
    if is_being_deleted(raw) or count_tasks(raw.get("spec")) > MAX_ALL_TASKS:
        return raw
    return edit(raw, "spec", default_spec)


def is_being_deleted(raw: Object) -> bool:
    """Return whether an object waits for its finalizers."""
    return at(raw, "metadata", "deletionTimestamp") is not None


def default_spec(spec: Object) -> Object:
    """Return a HyperJob's spec with the defaults of its own fields and of its replicatedJobs."""
    spec = edit_items(spec, "replicatedJobs", default_replicated_job)
    policy = spec.get("successPolicy")
    if isinstance(policy, dict) and policy.get("operator") is None:
        spec = {**spec, "successPolicy": {**policy, "operator": "All"}}
    if type(spec.get("activeDeadlineSeconds")) is int and spec.get("activeDeadlineMode") is None:
        spec = {**spec, "activeDeadlineMode": "RunTime"}
    return edit(spec, "checkpoint", default_checkpoint)


def default_checkpoint(checkpoint: Object) -> Object:
    """Return spec.checkpoint with the default mount path of its claim and the grace period."""
    added: Object = {}
    if checkpoint.get("persistentVolumeClaim") and checkpoint.get("path") is None:
        added["path"] = DEFAULT_PATH
    if checkpoint.get("gracePeriodSeconds") is None:
        added["gracePeriodSeconds"] = DEFAULT_GRACE_SECONDS
    return {**checkpoint, **added} if added else checkpoint


def default_replicated_job(job: Object) -> Object:
    """Return a replicatedJob with its defaults and those of its vcjob template."""
    added: Object = {}
    if job.get("replicas") is None:
        added["replicas"] = 1
    if job.get("clusterPolicy") is None:
        added["clusterPolicy"] = "Preferred"
    if added:
        job = {**job, **added}
    return edit(job, "templateSpec", default_job_spec)
