"""The task of a pod, the number of pods by state, and the reason why a pod fails. Pure."""

from typing import Final

from hyperjob.client.summary import COUNTERS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, count, mapping, string, string_map
from hyperjob_engine.members.podtroubles import trouble_of

_TASK: Final = "volcano.sh/task-spec"


def task_of(pod: Object) -> str:
    """Return the task of a pod."""
    metadata = mapping(pod.get("metadata"))
    labels, annotations = (string_map(metadata.get(key)) for key in ("labels", "annotations"))
    return labels.get(_TASK) or annotations.get(_TASK, "")


def pod_counts(job: JobStatus, vcjob: Object | None) -> dict[str, int]:
    """Count the pods of a sub-job by state, in lower case, from the vcjob's status.

    The counters of its tasks add states that its own counters lack. Without any counter, as without
    a vcjob, the HyperJob's status decides: the pods that do not run are pending.
    """
    status = mapping((vcjob or {}).get("status"))
    counts = {name: count(status.get(name)) for name in COUNTERS}
    for tasks in tasks_of(vcjob).values():
        for name, number in tasks.items():
            counts.setdefault(name, 0)
            if not status.get(name):
                counts[name] += number
    if not any(counts.values()):
        counts["running"] = job.running
        if job.cluster and not job.has_ended:
            counts["pending"] = job.pods - job.running
    return {name: number for name, number in counts.items() if number > 0}


def tasks_of(vcjob: Object | None) -> dict[str, dict[str, int]]:
    """Count the pods of each task by state, in lower case."""
    counts = mapping(mapping((vcjob or {}).get("status")).get("taskStatusCount"))
    return {
        str(task): {
            str(state).lower(): count(number)
            for state, number in mapping(mapping(entry).get("phase")).items()
        }
        for task, entry in counts.items()
    }


def pod_trouble(pod: Object) -> str:
    """Return the reason why a pod does not run; empty for a pod without a problem."""
    seen = trouble_of(pod)
    if seen is None or not seen.trouble.words:
        return string(at(pod, "status", "message"))
    trouble = seen.trouble
    words = trouble.words.removeprefix(":").strip()
    return f"{words}: {trouble.detail}" if trouble.detail else words
