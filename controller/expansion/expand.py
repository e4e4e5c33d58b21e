"""From a spec to the sub-jobs it wants: their names, templates, sizes and wishes.

Knows nothing of what exists. The same spec and records always give the same sub-jobs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.expansion.split import SplitError, resized, scale_of, static_sizes
from controller.model.observed import HyperJob, ReplicatedJob
from controller.model.resources import (
    PODS,
    Resources,
    accelerator_of,
    pod_request,
    scale,
    total,
    whole,
)
from controller.model.wire import count, mapping, objects, string
from controller.placement.assign import Request
from hyperjob.api.meta import Object
from hyperjob.api.names import child_name
from hyperjob.api.quantity import NANO


class SpecError(ValueError):
    """The spec cannot be carried out; the text says why. Admission normally refuses it before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One size of a template, and what it takes."""

    template: Object
    demand: Resources
    accelerators: int | None

    @property
    def pods(self) -> int:
        """Count the pods."""
        return self.demand.get(PODS, 0) // NANO


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A replicatedJob and the size of each of its sub-jobs, in order."""

    replicated_job: ReplicatedJob
    sizes: Sequence[Size]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubJob:
    """One wanted sub-job."""

    name: str
    group: ReplicatedJob
    index: int
    size: Size

    def request(self, excluded: frozenset[str] = frozenset()) -> Request:
        """Return what placement needs to know of it."""
        return Request(
            name=self.name,
            group=self.group.name,
            demand=self.size.demand,
            preferred=self.group.cluster_names,
            required=self.group.required,
            excluded=excluded,
        )


def expand(hyperjob: HyperJob) -> tuple[Group, ...]:
    """Return all groups with their sizes; raises SpecError."""
    if not hyperjob.replicated_jobs:
        raise SpecError("spec.replicatedJobs is empty")
    return tuple(
        Group(replicated_job=group, sizes=_sizes(group)) for group in hyperjob.replicated_jobs
    )


def sub_jobs(
    hyperjob: HyperJob, groups: Sequence[Group], indices: Mapping[str, Sequence[int]]
) -> Iterator[SubJob]:
    """Name the sub-jobs of every group by the indices in use, in the order of the spec."""
    for group in groups:
        name = group.replicated_job.name
        for position, index in enumerate(indices[name]):
            yield SubJob(
                name=child_name(hyperjob.name, name, index),
                group=group.replicated_job,
                index=index,
                size=group.sizes[position],
            )


def demand_of(template: Object) -> dict[str, int]:
    """Return what all pods of a vcjob spec request together, pods counted as a resource."""
    return total(
        scale(
            {**pod_request(mapping(mapping(task.get("template")).get("spec"))), PODS: whole(1)},
            count(task.get("replicas")),
        )
        for task in objects(template.get("tasks"))
    )


def _sizes(group: ReplicatedJob) -> Sequence[Size]:
    split = group.split
    if split is None:
        return [_size(group.template, None)] * group.replicas
    if split.mode != "static":
        raise SpecError(
            f"replicatedJob {group.name!r}: splitPolicy.mode {split.mode!r} is not supported"
        )
    try:
        numbers = static_sizes(split, group.template, group.replicas)
        task = scale_of(group.template, split.accelerator_type or "").task
    except SplitError as error:
        raise SpecError(f"replicatedJob {group.name!r}: {error}") from error
    by_pods = {
        pods: _size(resized(group.template, task=task, pods=pods), split.accelerator_type)
        for pods in set(numbers)
    }
    return [by_pods[pods] for pods in numbers]


def _size(template: Object, accelerator: str | None) -> Size:
    demand = demand_of(template)
    measure = accelerator or accelerator_of(demand)
    return Size(
        template=template,
        demand=demand,
        accelerators=None if measure is None else demand.get(measure, 0) // NANO,
    )


def queue_of(template: Object) -> str:
    """Return the queue a template goes to."""
    return string(template.get("queue")) or "default"
