"""The tree of a HyperJob: replicated jobs, sub-jobs, clusters, pods by state.

Counts come from the vcjobs where they can be read, else from the HyperJob's own status.
"""

from collections.abc import Mapping, Sequence

from rich.text import Text

from controller.model.wire import at, count, mapping, objects, string, string_map
from hyperjob.api.meta import Object
from hyperjob.cli.views.lines import Node, draw
from hyperjob.cli.views.styles import dim, phase
from hyperjob.cli.views.summary import COUNTERS, SubJob, Summary, pods_text

_TASK = "volcano.sh/task-spec"

Pods = Mapping[str, Sequence[Object]]
"""The pods of each sub-job in its member, by the sub-job's name."""


def lines(summary: Summary, vcjobs: Mapping[str, Object], pods: Pods) -> list[Text]:
    """Draw the tree of a HyperJob."""
    head = Text.assemble((summary.name, "bold"), "  ", phase(summary.phase))
    head.append(f"  {summary.jobs_ready} jobs, {summary.running_pods} pods run", style="dim")
    if summary.message and summary.phase not in ("Running", "Completed"):
        head.append(f"  {summary.message}")
    return draw(Node(head, [_group(summary, name, vcjobs, pods) for name in _group_names(summary)]))


def value(summary: Summary, vcjobs: Mapping[str, Object], pods: Pods) -> Object:
    """Give the tree as a plain value."""
    return {
        "namespace": summary.namespace,
        "name": summary.name,
        "phase": summary.phase,
        "reason": summary.reason,
        "message": summary.message,
        "replicatedJobs": [
            {
                "name": name,
                "jobs": [
                    _job_value(job, vcjobs.get(job.name), pods.get(job.name))
                    for job in summary.jobs
                    if job.group == name
                ],
            }
            for name in _group_names(summary)
        ],
    }


def pod_counts(job: SubJob, vcjob: Object | None) -> dict[str, int]:
    """Count the pods of a sub-job by state; those that nobody tells of are pending."""
    status = mapping((vcjob or {}).get("status"))
    counts = {name: count(status.get(name)) for name in COUNTERS}
    for tasks in _tasks(vcjob).values():
        for name, number in tasks.items():
            counts.setdefault(name, 0)
            if not status.get(name):
                counts[name] += number
    if not any(counts.values()):
        counts["running"] = job.running
        if job.cluster and not job.has_ended:
            counts["pending"] = job.pods - job.running
    return {name: number for name, number in counts.items() if number > 0}


def _group_names(summary: Summary) -> list[str]:
    """Name the replicated jobs in the order of the spec, then those that only the status knows."""
    names = [group.name for group in summary.groups] + [job.group for job in summary.jobs]
    return list(dict.fromkeys(names))


def _group(summary: Summary, name: str, vcjobs: Mapping[str, Object], pods: Pods) -> Node:
    jobs = [job for job in summary.jobs if job.group == name]
    noun = "sub-job" if len(jobs) == 1 else "sub-jobs"
    head = Text.assemble((name, "bold"), dim(f"  {len(jobs)} {noun}"))
    children = [_job(summary, job, vcjobs.get(job.name), pods.get(job.name)) for job in jobs]
    return Node(head, children)


def _job(
    summary: Summary, job: SubJob, vcjob: Object | None, pods: Sequence[Object] | None
) -> Node:
    head = Text.assemble(job.name, "  ", phase(job.phase or "Pending"))
    accelerator, number = summary.accelerators(job)
    if number:
        head.append(f"  {number} {accelerator}", style="dim")
    if job.attempt:
        head.append(f"  attempt {job.attempt}", style="magenta")
    why = job.message or job.reason
    if why and job.phase not in ("Running", "Completed"):
        head.append(f"  {why}")
    if not job.cluster:
        return Node(head)
    place = Text.assemble("on ", (job.cluster, "bold"))
    if told := pods_text(pod_counts(job, vcjob)):
        place.append(f"  {told}", style="dim")
    return Node(head, [Node(place, _task_nodes(vcjob, pods or ()))])


def _task_nodes(vcjob: Object | None, pods: Sequence[Object]) -> list[Node]:
    """Give a line for each task, with its pods below; pods of no known task come last."""
    by_task: dict[str, list[Object]] = {}
    for pod in pods:
        by_task.setdefault(task_of(pod), []).append(pod)
    nodes = [
        Node(
            Text.assemble(name, dim(f"  {pods_text(counts)}")),
            [_pod(pod) for pod in by_task.pop(name, ())],
        )
        for name, counts in _tasks(vcjob).items()
        if any(counts.values())
    ]
    return [*nodes, *(_pod(pod) for left in by_task.values() for pod in left)]


def task_of(pod: Object) -> str:
    """Name the task of a pod."""
    metadata = mapping(pod.get("metadata"))
    labels, annotations = (string_map(metadata.get(key)) for key in ("labels", "annotations"))
    return labels.get(_TASK) or annotations.get(_TASK, "")


def _pod(pod: Object) -> Node:
    node = string(at(pod, "spec", "nodeName"))
    line = Text.assemble(
        string(at(pod, "metadata", "name")), "  ", phase(string(at(pod, "status", "phase")))
    )
    if node:
        line.append(f"  on node {node}", style="dim")
    if why := pod_trouble(pod):
        line.append(f"  {why}", style="red")
    return Node(line)


def pod_trouble(pod: Object) -> str:
    """Say what keeps a pod from running; empty when nothing does."""
    status = mapping(pod.get("status"))
    containers = [
        *objects(status.get("initContainerStatuses")),
        *objects(status.get("containerStatuses")),
    ]
    for container in containers:
        waiting = mapping(at(container, "state", "waiting"))
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return _sentence(waiting)
        ended = mapping(at(container, "state", "terminated"))
        if count(ended.get("exitCode")):
            return f"{string(ended.get('reason')) or 'Error'}: exit code {ended['exitCode']}"
    for condition in objects(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _sentence(condition)
    return string(status.get("message"))


def _sentence(said: Object) -> str:
    reason, message = string(said.get("reason")), string(said.get("message"))
    return f"{reason}: {message}" if reason and message else reason or message


def _tasks(vcjob: Object | None) -> dict[str, dict[str, int]]:
    """Count the pods of each task by state, in lower case."""
    told = mapping(mapping((vcjob or {}).get("status")).get("taskStatusCount"))
    return {
        str(task): {
            str(state).lower(): count(number)
            for state, number in mapping(mapping(entry).get("phase")).items()
        }
        for task, entry in told.items()
    }


def _job_value(job: SubJob, vcjob: Object | None, pods: Sequence[Object] | None) -> Object:
    entry: Object = {
        "name": job.name,
        "phase": job.phase,
        "reason": job.reason,
        "message": job.message,
        "cluster": job.cluster,
        "attempt": job.attempt,
        "pods": pod_counts(job, vcjob),
        "tasks": _tasks(vcjob),
    }
    if pods is not None:
        entry["podList"] = [
            {
                "name": string(at(pod, "metadata", "name")),
                "phase": string(at(pod, "status", "phase")),
                "node": string(at(pod, "spec", "nodeName")),
                "trouble": pod_trouble(pod),
            }
            for pod in pods
        ]
    return entry
