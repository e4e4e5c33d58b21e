"""`hyperjob tree`: replicated jobs, sub-jobs, clusters and pods by state.

Pod counts come from the vcjobs where the user may read them, else from the HyperJob's status.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass

import click
from rich.live import Live
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Choice, end, hyperjobs_argument
from hyperjob.cli.kubectl.exits import run
from hyperjob.cli.kubectl.output import dim, phase
from hyperjob.client import training
from hyperjob.client.errors import words
from hyperjob.client.members import pod_counts, pod_trouble, pods_of_all, task_of, tasks_of
from hyperjob.client.reading import Reading, Target, items, listed
from hyperjob.client.summary import Group, Summary, pods_text, read
from hyperjob_core.api import table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import VCJOBS, key_of
from hyperjob_core.text import once


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of a tree, and the nodes below it."""

    text: Text
    children: Sequence["TreeLine"] = ()


def draw(node: TreeLine) -> list[Text]:
    """Draw a tree, its root without a guide."""
    lines = [node.text]
    for position, child in enumerate(node.children):
        last = position == len(node.children) - 1
        first, *rest = draw(child)
        lines.append(Text("└─ " if last else "├─ ", style="dim").append_text(_plain(first)))
        guide = "   " if last else "│  "
        lines += [Text(guide, style="dim").append_text(_plain(line)) for line in rest]
    return lines


def _plain(line: Text) -> Text:
    """Return a line that keeps its own style behind a guide, which is dim."""
    return Text(style="not dim").append_text(line) if not line.style else line


@click.command()
@hyperjobs_argument(trainjobs=True)
@click.option("--pods", is_flag=True, help="Show every pod, read through Karmada's cluster proxy.")
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="After printing, watch the HyperJob and print the tree at every change.",
)
@out.output(out.JSON, out.YAML)
def tree(choice: Choice, pods: bool, watch: bool, form: str) -> None:
    """Show the replicated jobs, sub-jobs and clusters of a HyperJob, and its pods by state.

    Example: kubectl hyperjob tree llm-training --pods
    """
    if watch and (not choice.single or form):
        raise click.UsageError("--watch needs one name, and cannot print JSON or YAML")

    async def show() -> None:
        async with choice.access.connect() as kube:
            if watch:
                target = Target(kube, choice.access.home(kube), choice.names[0])
                await _follow(target, pods=pods)
                return
            found = await choice.read(kube)
            summaries = [read(item) for item in sorted(found.items, key=key_of)]
            vcjobs = None if choice.names else await _vcjobs(kube, choice.access.scope(kube))
            trees = await asyncio.gather(
                *(_branches(kube, each, pods=pods, vcjobs=vcjobs) for each in summaries)
            )
        if form:
            values = [tree_value(*each) for each in trees]
            if values or not found.errors:
                out.dump(values[0] if choice.single else {"items": values}, form)
        elif not trees and not found.errors:
            out.remark("No resources found.")
        for each in trees if not form else ():
            out.say(tree_lines(*each))
        end(found)

    run(show())


Branches = tuple[Summary, dict[str, Object], dict[str, list[Object]]]


async def _branches(
    kube: Kube, summary: Summary, *, pods: bool, vcjobs: Reading | None = None
) -> Branches:
    """Read the vcjobs of a HyperJob unless they are given, and its pods with --pods."""
    wanted = summary.jobs if pods else ()
    reading_pods = pods_of_all(kube, summary.namespace, wanted)
    if vcjobs is None:
        ask = _vcjobs(kube, summary.namespace, summary.name)
        known, (found, errors) = await asyncio.gather(ask, reading_pods)
    else:
        known, (found, errors) = vcjobs, await reading_pods
    for name, error in errors.items():
        out.remark(f"{name}: {words(error)}")
    return summary, _own_vcjobs(summary, items(known)), found


async def _vcjobs(kube: Kube, namespace: str | None, name: str = "") -> Reading:
    selector = f"{LABEL_HYPERJOB}={name}" if name else LABEL_HYPERJOB
    return await listed(kube, VCJOBS, namespace=namespace, label_selector=selector)


def _own_vcjobs(summary: Summary, vcjobs: Sequence[Object]) -> dict[str, Object]:
    names = {job.name for job in summary.jobs}
    return {
        item["metadata"]["name"]: item
        for item in vcjobs
        if item["metadata"].get("namespace") == summary.namespace
        and item["metadata"]["name"] in names
    }


async def _follow(target: Target, *, pods: bool) -> None:
    """Print the tree at every change of the HyperJob; a terminal shows it in the same place."""
    await target.get()
    console = out.console()
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None
    with live if live is not None else nullcontext():
        async with aclosing(target.states()) as stream:
            async for hyperjob in stream:
                if hyperjob is None:
                    out.remark(f"{target.title} deleted")
                    return
                lines = tree_lines(*await _branches(target.kube, read(hyperjob), pods=pods))
                if live is not None:
                    live.update(Text("\n").join(lines), refresh=True)
                else:
                    out.say(lines, to=console)


Pods = Mapping[str, Sequence[Object]]
"""The pods of each sub-job in its member, by the sub-job's name."""


def tree_lines(summary: Summary, vcjobs: Mapping[str, Object], pods: Pods) -> list[Text]:
    """Return the tree_lines of the tree of a HyperJob."""
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


def tree_value(summary: Summary, vcjobs: Mapping[str, Object], pods: Pods) -> Object:
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
    if group is not None and group.size_text:
        head.append(f"  {group.size_text}")
    elif group is not None and group.alternative is not None:
        plural = "alternatives" if " " in group.alternative.name else "alternative"
        head.append(f"  {plural} {group.alternative.name}")
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
    if job.alternative:
        head.append(f"  {job.alternative}")
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
        **({"alternative": job.alternative} if job.alternative else {}),
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
