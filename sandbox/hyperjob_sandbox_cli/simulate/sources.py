"""Read a scenario from a clusters file, files of HyperJobs, a trace, or the generator."""

from collections.abc import Sequence
from pathlib import Path

from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.lint.documents import files_of, manifest_of
from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import HYPERJOBS, PRIORITY_CLASSES, QUEUES
from hyperjob_engine.expansion.expand import SpecError, expand
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_rules.validation.context import Context
from hyperjob_rules.validation.create import inspect
from hyperjob_sandbox import clusters
from hyperjob_sandbox.clusters import Cluster
from hyperjob_sandbox.member.nodes import node_labels
from hyperjob_sandbox.simulate.nodes import devices
from hyperjob_sandbox.simulate.sites import queue, site, usual_sites
from hyperjob_sandbox.simulate.workload import (
    ARRIVAL,
    DURATION,
    NodeGroup,
    Outage,
    Site,
    Submission,
)


def sites_of(path: Path | None) -> tuple[list[Site], list[Object], list[Outage]]:
    """Return clusters, Queues and outages of a clusters file; without a file default clusters."""
    if path is None:
        return usual_sites(), [], []
    from hyperjob.cli.embedded import clusters_file, idle_clusters

    config = clusters_file(path)
    sites = [
        site(
            cluster.name,
            [_nodes(cluster, group) for group in cluster.nodes],
            spec=raw["spec"],
        )
        for raw, cluster in zip(idle_clusters(config), config.clusters, strict=True)
    ]
    queues = [
        queue(each.name, each.model_dump(exclude_none=True, exclude={"name"}))
        for each in config.queues
    ]
    outages = [
        Outage(
            cluster=lost.cluster,
            at=lost.at / config.speed,
            until=None if lost.back_at is None else lost.back_at / config.speed,
        )
        for lost in config.lost_clusters
    ]
    return sites, queues, outages


def _nodes(cluster: Cluster, group: clusters.NodeGroup) -> NodeGroup:
    """Return equal nodes; the speed of a group precedes that of its cluster."""
    labels = tuple(sorted({**node_labels(cluster), **group.labels}.items()))
    speed = group.relative_speed or cluster.relative_speed
    return NodeGroup(group.name, group.allocatable, group.count, labels, speed)


class Files:
    """The objects of files: HyperJobs with arrival and duration, Queues and PriorityClasses."""

    def __init__(self, names: Sequence[str]) -> None:
        self.jobs: list[Submission] = []
        self.queues: list[Object] = []
        self.classes: dict[str, Object] = {}
        for name in (each for given in names for each in files_of(given)):
            source = manifest_of(name)
            for document in source.documents:
                self._take(source.name, document.line, document.content)

    def _take(self, name: str, line: int, content: Object) -> None:
        """Take an object of a file; objects of other kinds count nowhere."""
        kind = content.get("apiVersion"), content.get("kind")
        try:
            if kind == (HYPERJOBS.api_version, HYPERJOBS.kind):
                self.jobs.append(_submission(content))
            elif kind == (QUEUES.api_version, QUEUES.kind):
                made = queue(content["metadata"]["name"], content.get("spec") or {})
                self.queues.append({**made, "metadata": content["metadata"]})
            elif kind == (PRIORITY_CLASSES.api_version, PRIORITY_CLASSES.kind):
                self.classes[content["metadata"]["name"]] = content
        except (ValueError, KeyError, SpecError) as error:
            raise FailureError(f"{name}, line {line}: {error}", code=Code.USAGE) from None


def _submission(content: Object) -> Submission:
    """Return a HyperJob with its times; raises ValueError with the errors of admission."""
    refusals = list(
        dict.fromkeys(
            str(item.error) for item in inspect(content, context=Context(), strict=True).refusals
        )
    )
    if refusals:
        raise ValueError("; ".join(refusals))
    metadata = {"namespace": "default", **content["metadata"]}
    annotations = metadata.get("annotations") or {}
    hyperjob = {**content, "metadata": metadata}
    if DURATION not in annotations:
        raise ValueError(
            f"annotation {DURATION} is missing: the simulation needs the duration of the HyperJob"
        )
    observed = parse_hyperjob(hyperjob)
    sizes = [size for group in expand(observed) for size in group.sizes]
    return Submission(
        arrival=nanoseconds(annotations.get(ARRIVAL, "0s")) / 1e9,
        duration=max(1.0, nanoseconds(annotations[DURATION]) / 1e9),
        hyperjob=hyperjob,
        gpus=sum(devices(size.demand) for size in sizes),
        queue=str(observed.replicated_jobs[0].template.get("queue") or "default"),
    )
