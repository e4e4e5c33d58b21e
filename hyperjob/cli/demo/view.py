"""What the demo shows: HyperJobs, their sub-jobs by cluster, and the clusters; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from controller.status.outlook import Reason
from hyperjob.api.meta import Object
from hyperjob.api.quantity import Quantity
from hyperjob.cli.kubectl.lines import Node, draw
from hyperjob.cli.kubectl.styles import phase

FINISHED = frozenset({"Completed", "Failed"})
EXAMPLE = "recovers.yaml"


@dataclass(frozen=True, slots=True)
class Row:
    """One HyperJob as the demo prints it."""

    name: str
    phase: str
    jobs: str
    running_pods: int
    clusters: str
    message: str

    @property
    def finished(self) -> bool:
        """Tell whether it has ended, well or badly."""
        return self.phase in FINISHED


def row(hyperjob: Object) -> Row:
    """Read the fields that `kubectl get hyperjobs -o wide` shows."""
    metadata, status = hyperjob["metadata"], hyperjob.get("status") or {}
    state = status.get("state") or {}
    jobs = status.get("jobs") or []
    return Row(
        name=f"{metadata.get('namespace', 'default')}/{metadata['name']}",
        phase=str(state.get("phase") or "Pending"),
        jobs=str(status.get("jobsReady") or f"0/{len(jobs)}"),
        running_pods=sum(
            int(group.get("running") or 0) for group in status.get("replicatedJobsStatus") or []
        ),
        clusters=",".join(sorted({str(job["cluster"]) for job in jobs if job.get("cluster")})),
        message=str(state.get("message") or state.get("reason") or ""),
    )


def waiting_in_line(hyperjobs: Sequence[Object]) -> Object | None:
    """Find a HyperJob that waits for others of its queue, which is worth explaining."""
    for hyperjob in hyperjobs:
        state = (hyperjob.get("status") or {}).get("state") or {}
        if state.get("reason") == Reason.QUEUE_LIMIT_REACHED:
            return hyperjob
    return None


def hyperjob_table(hyperjobs: Sequence[Object]) -> Table:
    """Draw the table of HyperJobs; on a narrow terminal what it waits for is cut, nothing else."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for column in ("HYPERJOB", "STATUS", "JOBS", "RUNNING"):
        table.add_column(column, no_wrap=True)
    table.add_column("WHY", overflow="ellipsis", no_wrap=True, ratio=1)
    for item in map(row, hyperjobs):
        table.add_row(
            item.name,
            phase(item.phase),
            item.jobs,
            str(item.running_pods),
            item.message,
        )
    return table


def hyperjob_tree(hyperjob: Object) -> list[Text]:
    """Draw one HyperJob, its groups and its sub-jobs with their clusters."""
    item = row(hyperjob)
    status: dict[str, Any] = hyperjob.get("status") or {}
    groups = {
        str(group["name"]): group
        for group in status.get("replicatedJobsStatus") or []
        if "name" in group
    }
    branches = []
    for name, group in groups.items():
        pods = ", ".join(
            f"{group[count]} {count}"
            for count in ("pending", "running", "succeeded", "failed", "terminating", "unknown")
            if group.get(count)
        )
        jobs = [job for job in status.get("jobs") or [] if job.get("replicatedJob") == name]
        # Volcano reports no counts any more once a job has ended; its size is still known.
        size = sum(int(job.get("pods") or 0) for job in jobs)
        head = Text.assemble((name, "bold"), "  ", (pods or f"{size} pods", "dim"))
        branches.append(Node(head, [Node(_sub_job(job)) for job in jobs]))
    return draw(Node(Text.assemble(item.name, "  ", phase(item.phase)), branches))


def _sub_job(job: Mapping[str, Any]) -> Text:
    why = str(job.get("message") or job.get("reason") or "")
    line = Text.assemble(
        str(job.get("name", "")),
        "  ",
        phase(str(job.get("phase") or "Pending")),
        ("  on ", "dim"),
        (str(job.get("cluster") or "no cluster yet"), "bold"),
    )
    if why and job.get("phase") not in {"Running", *FINISHED}:
        line.append(f"  {why}", style="dim")
    return line


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of one resource of a cluster is taken, in whole units."""

    cluster: str
    resource: str
    used: float
    total: float
    ready: bool


_COMMON = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


def usages(clusters: Sequence[Object]) -> list[Usage]:
    """List accelerators by cluster, from each Cluster's resource summary."""
    result = []
    for cluster in clusters:
        status = cluster.get("status") or {}
        summary = status.get("resourceSummary") or {}
        ready = any(
            c.get("type") == "Ready" and c.get("status") == "True"
            for c in status.get("conditions") or []
        )
        allocatable = summary.get("allocatable") or {}
        taken = [summary.get("allocated") or {}, summary.get("allocating") or {}]
        for resource in sorted(set(allocatable) - _COMMON):
            used = sum(
                float(Quantity.parse(part[resource]).value) for part in taken if resource in part
            )
            total = float(Quantity.parse(allocatable[resource]).value)
            result.append(Usage(cluster["metadata"]["name"], resource, used, total, ready))
    return result


def cluster_table(clusters: Sequence[Object]) -> Table:
    """Draw how full the accelerators of each cluster are."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("CLUSTER", "ACCELERATOR", "USED", ""):
        table.add_column(column, no_wrap=True)
    for usage in usages(clusters):
        bar = ProgressBar(total=max(usage.total, 1), completed=usage.used, width=24)
        table.add_row(
            Text(usage.cluster, style="" if usage.ready else "red strike"),
            usage.resource,
            f"{usage.used:g}/{usage.total:g}",
            bar,
        )
    return table


def screen(hyperjobs: Sequence[Object], clusters: Sequence[Object], note: str) -> RenderableType:
    """Draw everything; what a low terminal cuts off is the end, trees of what goes on."""
    parts: list[RenderableType] = [Text(note, style="dim"), hyperjob_table(hyperjobs), ""]
    parts += [cluster_table(clusters), ""]
    for hyperjob in hyperjobs:
        if not row(hyperjob).finished:
            parts += [
                Text(line.plain, spans=line.spans, style=line.style, no_wrap=True)
                for line in hyperjob_tree(hyperjob)
            ]
    return Group(*parts)


def what_to_try(kubeconfig: Path, programs: Path, examples: Path) -> str:
    """Say how to go on by hand: where kubectl and its plugin are, and what there is to see."""
    commands = (
        ("kubectl hyperjob get -A -o wide", "status, clusters and why, for all"),
        ("kubectl hyperjob top", "what clusters have free"),
        ("hyperjob preflight", "what HyperJobs need, and what is there"),
        (f"kubectl apply -f {examples}/auto-split.yaml", "200 GPUs, split by what is free"),
        (f"kubectl apply -f {examples}/{EXAMPLE}", "fails on gpu-east, and moves away"),
        ("kubectl hyperjob tree recovers -w", "watch it; Ctrl-C ends it"),
        ("kubectl hyperjob suspend recovers", "off the clusters; resume starts it again"),
        ("kubectl hyperjob why recovers", "why it does not run, and what to type"),
    )
    width = max(len(command) for command, _ in commands)
    lines = [f"  {command:{width}}  # {note}" for command, note in commands]
    return "\n".join(
        [
            "\nIt goes on running. In another terminal:\n",
            f"  export KUBECONFIG={kubeconfig}",
            f"  export PATH={programs}:$PATH",
            *lines,
            "\nCtrl-C ends it.",
        ]
    )


def transition(hyperjob: Object) -> str:
    """Say one HyperJob's state in a line, for output that is no terminal."""
    item = row(hyperjob)
    where = f" on {item.clusters}" if item.clusters else ""
    why = f": {item.message}" if item.message else ""
    return f"{item.name} {item.phase} {item.jobs}{where}{why}"
