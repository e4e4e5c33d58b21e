"""Accelerators by node: allocatable, free, and held by HyperJobs or by others. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hyperjob.client.summary import Summary
from hyperjob_core.api.quantity import NANO
from hyperjob_core.text import in_order
from hyperjob_engine.model.members import MemberNode, MemberView
from hyperjob_engine.placement.capacity import REPELLING
from hyperjob_engine.resources import is_counted


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUse:
    """An accelerator of a node, in whole units; an empty `accelerator`: the node has none.

    `hyperjobs` has the accelerators that pods hold, by the namespace/name of their HyperJob.
    `others` counts pods of other workloads. `taints` are those that keep pods away.
    """

    cluster: str
    node: str
    state: str
    accelerator: str
    allocatable: int
    free: int
    others: int
    hyperjobs: Mapping[str, int]
    taints: tuple[str, ...]


def nodes(views: Mapping[str, MemberView], summaries: Iterable[Summary]) -> list[NodeUse]:
    """Count accelerators by cluster and node."""
    owners = {
        (summary.namespace, job.name): summary.key for summary in summaries for job in summary.jobs
    }
    return [
        use
        for cluster, view in sorted(views.items())
        for node in sorted(view.nodes, key=lambda node: in_order(node.name))
        for use in _uses(cluster, node, owners)
    ]


def _uses(
    cluster: str, node: MemberNode, owners: Mapping[tuple[str, str], str]
) -> Iterator[NodeUse]:
    """Yield the accelerators of a node; `owners` has the HyperJob of each (namespace, vcjob)."""
    listed = [name for name, each in node.allocatable.items() if is_counted(name) and each >= 0]
    for accelerator in sorted(listed) or [""]:
        held: Counter[str] = Counter()
        for pod in node.pods:
            number = pod.request.get(accelerator, 0) // NANO
            if number:
                held[owners.get((pod.namespace, pod.job), "")] += number
        yield NodeUse(
            cluster=cluster,
            node=node.name,
            state=str(node.state),
            accelerator=accelerator,
            allocatable=node.allocatable.get(accelerator, 0) // NANO,
            free=max(0, node.free.get(accelerator, 0) // NANO),
            others=held.pop("", 0),
            hyperjobs=dict(sorted(held.items())),
            taints=tuple(
                f"{taint.key}:{taint.effect}" for taint in node.taints if taint.effect in REPELLING
            ),
        )
