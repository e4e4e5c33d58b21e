"""The pinned clusters of sub-jobs that no member has received: whether each still has room.

The result is which sub-jobs are ready to start there and which must move.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.gang.gate import is_cleared, is_held, is_released, is_through
from hyperjob_engine.gang.review import PinnedPlace, Review, review
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Observed, Ownership, QueueAdmission
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import SubJob, closed_queue_of
from hyperjob_engine.placement.room import Room

FRESH: Final = timedelta(seconds=30)
"""For so long the room of a new vcjob counts as certain: the greatest age of a summary."""


def pinned_place_of(
    observed: Observed, sub_job: SubJob, child: Child, excluded: frozenset[str]
) -> PinnedPlace | None:
    """Return the pinned cluster of a sub-job that no member has; None if it must not move."""
    policy, binding = child.policy, child.binding
    if child.phase is not JobPhase.UNKNOWN or (binding is not None and binding.applied):
        return None
    if policy is None or policy.ownership is not Ownership.OURS or len(policy.clusters) != 1:
        return None
    held = observed.admission is not QueueAdmission.NONE and is_held(child)
    if not held and policy.clusters != (child.cluster,):
        return None  # Karmada is dispatching it
    return PinnedPlace(
        request=sub_job.request(excluded, closed=closed_queue_of(observed, sub_job.size.template)),
        pin=policy.clusters[0],
        held=held,
        released=is_released(child),
        fresh=_is_fresh(observed, child),
    )


def _is_fresh(observed: Observed, child: Child) -> bool:
    """Return whether a vcjob was created less than FRESH ago.

    A pod that has just started may count twice, in the Cluster's summary and as a reservation: the
    cluster then seems full. A later summary differs only by other workloads, which the summary at
    the creation of the vcjob did not have either.
    """
    created = child.job.created if child.job is not None else None
    return created is not None and observed.now < created + FRESH


def domains(observed: Observed, pinned_places: Iterable[PinnedPlace]) -> list[tuple[str, str]]:
    """Return (group, cluster) of the sub-jobs that can stay, as an argument of placement."""
    usable = {cluster.name for cluster in observed.clusters if cluster.usable}
    return [
        (pinned.request.group, pinned.pin)
        for pinned in pinned_places
        if pinned.pin in usable and pinned.pin not in pinned.request.excluded
    ]


def review_places(
    observed: Observed,
    pinned_places: Sequence[PinnedPlace],
    *,
    standing: Sequence[tuple[str, str]],
    placed: Iterable[tuple[PlacementRequest, str]],
) -> Review:
    """Review every pinned sub-job; `placed` are the sub-jobs that this pass has placed."""
    if not pinned_places:
        return Review()
    room, stays = Room(observed.clusters), list(standing)
    for request, name in placed:
        room.hold(request, name)
        stays.append((request.group, name))
    return review(pinned_places, room, standing=stays, max_domains=observed.hyperjob.max_domains)


def ready(
    observed: Observed, children: Sequence[Child], found: Review, minimum: int
) -> frozenset[str]:
    """Return the held sub-jobs whose gates may open.

    After the first gates of a gang are open, the others follow: a review has found room for all.
    """
    through = sum(is_through(child) for child in children)
    if observed.admission is not QueueAdmission.NONE and not 0 < through < minimum:
        return found.ready
    cleared = {child.name for child in children if is_cleared(child, observed.admission)}
    return found.ready | (cleared - found.moves.keys())
