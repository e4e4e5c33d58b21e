"""The sub-jobs of an automatic split that have a size, and the accelerators left to share out.

A sub-job that exists or has ended keeps its size. The recorded sizes of the others count if all
sizes together are exactly the requested accelerators; else they are stale, and the rest of the
split is undecided again.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hyperjob_core.api.names import child_name
from hyperjob_core.api.status import JobStatus
from hyperjob_engine.expansion.expand import SpecError, pod_groups
from hyperjob_engine.expansion.members import present_indices
from hyperjob_engine.expansion.split import Scale, SplitError, split_scale
from hyperjob_engine.model.child import Child, child_of
from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import Observed, Ownership, ReplicatedJob, SplitPolicy
from hyperjob_engine.model.request import ClosedQueue, PlacementRequest
from hyperjob_engine.model.subjobs import closed_queue_of
from hyperjob_engine.model.topology import tier_of
from hyperjob_engine.placement.share import Wish
from hyperjob_engine.resources import scale as multiply

_PIECES: Final = 128  # the queue engine judges an automatic split in at most so many


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoSplit:
    """One automatic split: the decided pods of the scaled task by index, and a wish for the rest.

    `parked`: none of its sub-jobs exists, and the controller must not create one yet.
    """

    group: ReplicatedJob
    decided: Mapping[int, int]
    wish: Wish | None
    parked: bool


def is_auto(group: ReplicatedJob) -> bool:
    """Return whether a replicatedJob has a split policy of mode `auto`."""
    return group.split is not None and group.split.mode == "auto"


def part_of(observed: Observed, group: ReplicatedJob) -> AutoSplit:
    """Return the state of one automatic split; raises SpecError.

    Sizes are pods of the scaled task by index: `standing` those of vcjobs that exist or have ended,
    which never change here, `recorded` those that the status has for the others. The recorded sizes
    count all together or not at all.
    """
    split, scale = _scale_of(group)
    standing: dict[int, int] = {}
    recorded: dict[int, int] = {}
    excluded: set[str] = set()
    parked = observed.hyperjob.suspend
    for index in sorted(present_indices(observed, group.name)):
        child = child_of(observed, child_name(observed.hyperjob.name, group.name, index))
        record = child.record
        parked = parked or _is_leaving(child) or _is_resting(observed, record)
        excluded.update(record.excluded(observed.now) if record is not None else ())
        if child.exists and child.job is not None:
            tasks = child.job.tasks
            standing[index] = tasks[scale.task].replicas if scale.task < len(tasks) else 0
        elif record is not None:
            pods, rest = divmod((record.accelerators or 0) - scale.fixed, scale.per_pod)
            if child.is_terminal:
                standing[index] = max(0, pods)
            elif not rest and pods >= 1:
                recorded[index] = pods
    decided, left = standing, (split.accelerators or 0) - _accelerators(scale, standing)
    parked = parked and not standing
    if (standing or parked) and left == _accelerators(scale, recorded):
        decided, left = standing | recorded, 0
    if excluded.issuperset(cluster.name for cluster in observed.clusters):
        excluded.clear()  # with every cluster excluded by some sub-job, all are tried again
    wish = None
    if left > 0:
        closed = closed_queue_of(observed, group.template)
        wish = _wish(group, split, scale, left, frozenset(excluded), closed)
    return AutoSplit(group=group, decided=decided, wish=wish, parked=parked)


def pieces(hyperjob: str, wish: Wish, taken: Collection[str]) -> Iterator[PlacementRequest]:
    """Yield an undecided split in small pieces, which fit on any mix of clusters.

    The controller sizes the sub-jobs after the admission of the pieces.
    """
    pods = max(1, -(-(wish.accelerators - wish.fixed) // max(1, wish.per_pod)))
    number = min(pods, _PIECES)
    like: dict[tuple[int, bool], PlacementRequest] = {}
    index = 0
    for position in range(number):
        while (name := child_name(hyperjob, wish.group, index)) in taken:
            index += 1
        index += 1
        share = pods // number + (position < pods % number)
        known = like.get((share, position > 0))
        if known is None:
            known = like[share, position > 0] = _piece(wish, share, first=not position)
        yield known.named(name)


def _piece(wish: Wish, share: int, *, first: bool) -> PlacementRequest:
    """Return a piece with `share` pods of the scaled task; the first has all other pods too."""
    piece = wish.request(share)
    if first:
        return piece
    pods = (PodGroup(wish.pod, share, wish.wants),)
    return replace(piece, demand=multiply(wish.pod, share), pods=pods)


def _scale_of(group: ReplicatedJob) -> tuple[SplitPolicy, Scale]:
    if group.split is None:
        raise SpecError(f"replicatedJob {group.name!r}: it has no splitPolicy")
    try:
        return group.split, split_scale(group.split, group.template)
    except SplitError as error:
        raise SpecError(f"replicatedJob {group.name!r}: {error}") from error


def _is_leaving(child: Child) -> bool:
    return child.is_outdated or any(
        item is not None and item.deleting and item.ownership is Ownership.OURS
        for item in (child.job, child.policy)
    )


def _is_resting(observed: Observed, record: JobStatus | None) -> bool:
    due = record.retry_time if record is not None else None
    return due is not None and observed.now < due


def _accelerators(scale: Scale, pods: Mapping[int, int]) -> int:
    return sum(scale.fixed + number * scale.per_pod for number in pods.values())


def _wish(
    group: ReplicatedJob,
    split: SplitPolicy,
    scale: Scale,
    accelerators: int,
    excluded: frozenset[str],
    closed: ClosedQueue | None,
) -> Wish:
    """Return what an automatic split wants of the clusters.

    The tier of the whole vcjob is a field of the wish. `pod_groups` puts it first in the domains of
    all pods, from which it is left out here: it would count twice.
    """
    groups = pod_groups(group.template)
    others = tuple(
        replace(each, domains=each.domains[1:] if tier_of(group.template) else each.domains)
        for each in (*groups[: scale.task], *groups[scale.task + 1 :])
    )
    return Wish(
        group=group.name,
        accelerators=accelerators,
        kind=split.accelerator_type or "",
        fixed=scale.fixed,
        per_pod=scale.per_pod,
        others=others,
        pod=groups[scale.task].request,
        wants=groups[scale.task].wants,
        tier=tier_of(group.template),
        preferred=group.cluster_names,
        required=group.required,
        excluded=excluded if closed is None else excluded | closed.clusters,
        closed=closed,
    )
