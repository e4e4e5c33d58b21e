"""The demo's screen: HyperJobs, clusters and trees; one line for each change elsewhere. Pure."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from controller.model.reasons import Reason
from hyperjob.api.meta import Object
from hyperjob.cli.kubectl.styles import phase
from hyperjob.cli.kubectl.table import Row, table
from hyperjob.cli.tree import view as tree
from hyperjob.client import usage
from hyperjob.client.summary import Summary

EXAMPLE: Final = "recovers.yaml"
_BAR: Final = 24


def waiting_in_line(summaries: Sequence[Summary]) -> Summary | None:
    """Find a HyperJob that waits for others of its queue, which is worth explaining."""
    for summary in summaries:
        if summary.reason == Reason.QUEUE_LIMIT_REACHED:
            return summary
    return None


def hyperjob_table(summaries: Sequence[Summary]) -> Group:
    """Draw the table of HyperJobs."""
    rows: list[Row] = [
        (
            summary.key,
            phase(summary.phase),
            summary.jobs_ready,
            str(summary.running_pods),
            summary.message or summary.reason,
        )
        for summary in summaries
    ]
    return _cut(table(("HYPERJOB", "STATUS", "JOBS", "RUNNING", "WHY"), rows))


def cluster_table(clusters: Sequence[Object], summaries: Sequence[Summary]) -> Group:
    """Draw how full the accelerators of each cluster are."""
    rows: list[Row] = [
        (
            use.cluster if use.ready else f"{use.cluster} (not Ready)",
            use.accelerator,
            f"{use.used}/{use.allocatable}",
            bar(use.used, use.allocatable),
        )
        for use in usage.clusters(clusters, summaries)
        if use.used is not None and use.allocatable is not None
    ]
    return _cut(table(("CLUSTER", "ACCELERATOR", "USED", ""), rows))


def bar(used: int, total: int) -> Text:
    """Draw a bar that shows its parts without colour too; any use fills one character at least."""
    filled = min(_BAR, -(-used * _BAR // max(total, 1)))
    return Text.assemble(("#" * filled, "cyan"), ("." * (_BAR - filled), "dim"))


def screen(summaries: Sequence[Summary], clusters: Sequence[Object], note: str) -> RenderableType:
    """Draw everything; the trees of HyperJobs that go on come last, where a low terminal cuts."""
    parts: list[RenderableType] = [Text(note, style="dim"), hyperjob_table(summaries), ""]
    parts += [cluster_table(clusters, summaries), ""]
    parts += [_cut(tree.lines(each, {}, {})) for each in summaries if not each.has_ended]
    return Group(*parts)


def _cut(lines: Sequence[Text]) -> Group:
    """Have a narrow terminal shorten each line with an ellipsis."""
    cut = partial(Text, no_wrap=True, overflow="ellipsis")
    return Group(*(cut(line.plain, spans=line.spans, style=line.style) for line in lines))


def what_to_try(kubeconfig: Path, programs: Path, examples: Path) -> str:
    """Say how to go on by hand: where kubectl and its plugin are, and what there is to see."""
    commands = (
        ("kubectl hyperjob get -A -o wide", "status, clusters and why, for all"),
        ("kubectl hyperjob top", "what clusters have free"),
        ("hyperjob preflight", "what HyperJobs need, and what is there"),
        (f"kubectl apply -f {examples}/{EXAMPLE}", "one of two fails on gpu-east, and moves"),
        ("kubectl hyperjob tree recovers -w", "watch it; Ctrl-C ends it"),
        ("kubectl hyperjob suspend recovers", "off the clusters; resume starts it again"),
        ("kubectl hyperjob why recovers", "why it does not run, and what to type"),
        (f"kubectl apply -f {examples}/auto-split.yaml", "200 GPUs, split by what is free"),
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


def transition(summary: Summary) -> str:
    """Describe a HyperJob in one line, for output that is no terminal."""
    where = f" on {','.join(summary.clusters)}" if summary.clusters else ""
    why = summary.message or summary.reason
    return f"{summary.key} {summary.phase} {summary.jobs_ready}{where}{f': {why}' if why else ''}"
