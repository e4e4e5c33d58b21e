"""The demo's screen: HyperJobs, clusters and trees. Without a terminal, a line per transition."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from hyperjob.cli import tree
from hyperjob.cli.kubectl.output import phase
from hyperjob.client import usage
from hyperjob.client.summary import Summary
from hyperjob.client.usage import Tally
from hyperjob.table import Row, table
from hyperjob_core.api.meta import Object
from hyperjob_engine.reasons.reason import Reason

EXAMPLE: Final = "recovers.yaml"
_BAR: Final = 24


def waiting_in_line(summaries: Sequence[Summary]) -> Summary | None:
    """Return a HyperJob that waits behind others of its queue: `why` explains it to the user."""
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
            summary.running_text,
            summary.message or summary.reason,
        )
        for summary in summaries
    ]
    return _cut(table(("HYPERJOB", "STATUS", "JOBS", "RUNNING", "WHY"), rows))


def cluster_table(clusters: Sequence[Object], summaries: Sequence[Summary]) -> Group:
    """Draw the use of the accelerators of each cluster."""
    rows: list[Row] = [
        (
            use.cluster if use.ready else f"{use.cluster} (not Ready)",
            use.accelerator,
            f"{use.used}/{use.allocatable}",
            bar(use.used, use.allocatable),
        )
        for use in usage.clusters(clusters, Tally.of(summaries))
        if use.used is not None and use.allocatable is not None
    ]
    return _cut(table(("CLUSTER", "ACCELERATOR", "USED", ""), rows))


def bar(used: int, total: int) -> Text:
    """Return a bar that is readable without colours too; any use fills at least one character."""
    filled = min(_BAR, -(-used * _BAR // max(total, 1)))
    return Text.assemble(("#" * filled, "cyan"), ("." * (_BAR - filled), "dim"))


def screen(summaries: Sequence[Summary], clusters: Sequence[Object], note: str) -> RenderableType:
    """Draw both tables, then the trees of HyperJobs that have not ended.

    The trees come last: a terminal with few rows cuts the end of the screen.
    """
    parts: list[RenderableType] = [Text(note, style="dim"), hyperjob_table(summaries), ""]
    parts += [cluster_table(clusters, summaries), ""]
    parts += [_cut(tree.tree_lines(each, {}, {})) for each in summaries if not each.has_ended]
    return Group(*parts)


def _cut(lines: Sequence[Text]) -> Group:
    """Return lines that a narrow terminal shortens with an ellipsis."""
    cut = partial(Text, no_wrap=True, overflow="ellipsis")
    return Group(*(cut(line.plain, spans=line.spans, style=line.style) for line in lines))


def what_to_try(kubeconfig: Path, programs: Path, examples: Path) -> str:
    """Return the commands to try by hand, and the variables that kubectl and its plugin need."""
    commands = (
        ("kubectl hyperjob get -A -o wide", "status, clusters and message of all HyperJobs"),
        ("kubectl hyperjob top", "free accelerators of each cluster"),
        ("hyperjob preflight", "check the requirements of HyperJobs"),
        (f"kubectl apply -f {examples}/{EXAMPLE}", "a sub-job fails on gpu-east, and moves"),
        ("kubectl hyperjob tree recovers -w", "watch it; Ctrl-C ends it"),
        ("kubectl hyperjob suspend recovers", "remove its sub-jobs; resume starts it again"),
        ("kubectl hyperjob why recovers", "why it does not run, and the command to type"),
        (f"kubectl apply -f {examples}/auto-split.yaml", "200 GPUs, split over the free GPUs"),
    )
    width = max(len(command) for command, _ in commands)
    lines = [f"  {command:{width}}  # {note}" for command, note in commands]
    return "\n".join(
        [
            "\nThe clusters keep running. In another terminal:\n",
            f"  export KUBECONFIG={kubeconfig}",
            f"  export PATH={programs}:$PATH",
            *lines,
            "\nCtrl-C stops them.",
        ]
    )


def transition(summary: Summary) -> str:
    """Describe a HyperJob in one line, for output to a file or a pipe."""
    where = f" on {','.join(summary.clusters)}" if summary.clusters else ""
    why = summary.message or summary.reason
    return f"{summary.key} {summary.phase} {summary.jobs_ready}{where}{f': {why}' if why else ''}"
