"""The tree of a HyperJob: replicated jobs, sub-jobs, clusters, pods by state.

Pod counts come from the vcjobs where the user may read them, else from the HyperJob's status.
"""

from collections.abc import Mapping, Sequence

from rich.text import Text

from hyperjob.cli.kubectl.lines import TreeLine, draw
from hyperjob.cli.kubectl.styles import dim, phase
from hyperjob.client import training
from hyperjob.client.pods import pod_counts, pod_trouble, task_of, tasks_of
from hyperjob.client.summary import Group, Summary, pods_text
from hyperjob_core.api import table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, string
from hyperjob_core.text import once

Pods = Mapping[str, Sequence[Object]]
"""The pods of each sub-job in its member, by the sub-job's name."""


def lines(summary: Summary, vcjobs: Mapping[str, Object], pods: Pods) -> list[Text]:
    """Return the lines of the tree of a HyperJob."""
    head = Text.assemble((summary.name, "bold"), "  ", phase(summary.phase, summary.reason))
    head.append(f"  {summary.jobs_ready} jobs, {summary.running_text} pods run", style="dim")
    if summary.training is not None:
        head.append(f"  {summary.training.progress}", style="green")
        head.append(f"  {summary.training.url}" if summary.training.url else "")
    if summary.message and summary.phase not in ("Running", "Completed"):
        head.append(f"  {summary.message}")
    return draw(
        TreeLine(head, [_group(summary, name, vcjobs, pods) for name in summary.group_names])
    )


def value(summary: Summary, vcjobs: Mapping[str, Object], pods: Pods) -> Object:
    """Return the tree as JSON values."""
    return {
        "namespace": summary.namespace,
        "name": summary.name,
        "phase": summary.phase,
        "reason": summary.reason,
        "message": summary.message,
        "training": training.value(summary.training),
        "replicatedJobs": [
            {
                "name": name,
                **_choice(summary.group(name)),
                "jobs": [
                    _job_value(summary, job, vcjobs.get(job.name), pods.get(job.name))
                    for job in summary.jobs
                    if job.replicated_job == name
                ],
            }
            for name in summary.group_names
        ],
    }


def _choice(group: Group | None) -> Object:
    """Return the alternative of a replicated job as the status has it; nothing without one."""
    chosen = group.alternative if group is not None else None
    return {} if chosen is None else {"alternative": table.write(chosen)}


def _group(summary: Summary, name: str, vcjobs: Mapping[str, Object], pods: Pods) -> TreeLine:
    jobs = [job for job in summary.jobs if job.replicated_job == name]
    noun = "sub-job" if len(jobs) == 1 else "sub-jobs"
    head = Text.assemble((name, "bold"), dim(f"  {len(jobs)} {noun}"))
    group = summary.group(name)
    if group is not None and group.bounds:
        head.append(f"  of {group.bounds}")
    elif group is not None and group.alternative is not None:
        head.append(f"  alternative {group.alternative.name}")
    reasons = once([_remark(job) for job in jobs])
    children = [
        _job(summary, job, why, vcjobs.get(job.name), pods.get(job.name))
        for job, why in zip(jobs, reasons, strict=True)
    ]
    return TreeLine(head, children)


def _remark(job: JobStatus) -> str:
    return job.message or ("" if job.phase in ("Running", "Completed") else job.reason)


def _job(
    summary: Summary, job: JobStatus, why: str, vcjob: Object | None, pods: Sequence[Object] | None
) -> TreeLine:
    """Return the line of a sub-job, with its cluster and below it the tasks and the pods."""
    head = Text.assemble(job.name, "  ", phase(job.phase or "Pending"))
    accelerator, number = summary.accelerators(job)
    if number:
        head.append(f"  {number} {accelerator}", style="dim")
    if job.number > 1:
        head.append(f"  attempt {job.number}", style="magenta")
    if why:
        head.append(f"  {why}")
    if not job.cluster:
        return TreeLine(head)
    place = Text.assemble("on ", (job.cluster, "bold"))
    if text := pods_text(pod_counts(job, vcjob)):
        place.append(f"  {text}", style="dim")
    return TreeLine(head, [TreeLine(place, _task_nodes(vcjob, pods or ()))])


def _task_nodes(vcjob: Object | None, pods: Sequence[Object]) -> list[TreeLine]:
    """Return a node for each task, with its pods below; pods without a task come last."""
    by_task: dict[str, list[Object]] = {}
    for pod in pods:
        by_task.setdefault(task_of(pod), []).append(pod)
    nodes = [
        TreeLine(
            Text.assemble(name, dim(f"  {pods_text(counts)}")),
            [_pod(pod) for pod in by_task.pop(name, ())],
        )
        for name, counts in tasks_of(vcjob).items()
        if any(counts.values())
    ]
    return [*nodes, *(_pod(pod) for left in by_task.values() for pod in left)]


def _pod(pod: Object) -> TreeLine:
    node = string(at(pod, "spec", "nodeName"))
    line = Text.assemble(
        string(at(pod, "metadata", "name")), "  ", phase(string(at(pod, "status", "phase")))
    )
    if node:
        line.append(f"  on node {node}", style="dim")
    if why := pod_trouble(pod):
        line.append(f"  {why}", style="red")
    return TreeLine(line)


def _job_value(
    summary: Summary, job: JobStatus, vcjob: Object | None, pods: Sequence[Object] | None
) -> Object:
    """Return a sub-job as JSON values; `pods` None where they were not read."""
    accelerator, number = summary.accelerators(job)
    entry: Object = {
        "name": job.name,
        "phase": job.phase,
        "reason": job.reason,
        "message": job.message,
        "cluster": job.cluster,
        "accelerator": accelerator,
        "accelerators": number,
        "attempt": job.number,
        "startTime": job.start_time,
        "failure": None if job.failure is None else table.write(job.failure),
        "history": [table.write(run) for run in job.history],
        "pods": pod_counts(job, vcjob),
        "tasks": tasks_of(vcjob),
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
