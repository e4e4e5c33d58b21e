"""The pinned clusters of sub-jobs that no member has received: whether each still has room.

The result is which sub-jobs are ready to start there and which must move.

The clusters on which Karmada could not schedule a sub-job, which are avoided for some time.

A refusal counts after it has lasted for some seconds: at first it may be about an earlier pin. Each
further refusal doubles the time. The start of the sub-job clears its refusals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import Rejection
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


REASONS: Final = frozenset({"NoClusterFit", "Unschedulable", "SchedulerError"})
STANDS: Final = timedelta(seconds=10)
_FIRST: Final = 60.0
_LONGEST: Final = 3600.0
_REMEMBERED: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionCheck:
    """The refusals for the status, the clusters to avoid now, and when these change next."""

    rejections: tuple[Rejection, ...] = ()
    excluded: frozenset[str] = frozenset()
    wait: timedelta | None = None

    @property
    def left_out(self) -> tuple[Rejection, ...]:
        """The refusals whose clusters are avoided now."""
        return tuple(item for item in self.rejections if item.cluster in self.excluded)


def check_rejection(child: Child, *, now: datetime) -> RejectionCheck:
    """Return the refusals of a sub-job, recorded ones and that of its ResourceBinding.

    A refusal of the past keeps only its number, by which a further wait is longer. A cluster that
    has taken the sub-job is forgotten.
    """
    if child.phase is not JobPhase.UNKNOWN:
        return RejectionCheck()
    known = {item.cluster: item for item in (child.record.rejections if child.record else ())}
    rejected = _rejected_pin(child)
    for cluster, item in list(known.items()):
        if cluster != rejected and item.since is not None:
            known.pop(cluster)
            if item.times:
                known[cluster] = Rejection(cluster=cluster, times=item.times)
    if child.binding is not None and not rejected and child.binding.cluster:
        known.pop(child.binding.cluster, None)
    if rejected:
        known[rejected] = _rejection(known.get(rejected), rejected, now)
    kept = tuple(sorted(known.values(), key=lambda item: item.cluster)[:_REMEMBERED])
    return RejectionCheck(
        rejections=kept,
        excluded=frozenset(item.cluster for item in kept if is_active(item, now)),
        wait=_wait(kept, now),
    )


def is_active(rejection: Rejection, now: datetime) -> bool:
    """Return whether the cluster of a refusal is avoided now."""
    return rejection.retry_time is not None and now < rejection.retry_time


def _rejected_pin(child: Child) -> str:
    """Return the pinned cluster that Karmada refuses; empty before Karmada has read the pin."""
    binding, policy = child.binding, child.policy
    if binding is None or policy is None or len(policy.clusters) != 1 or not child.exists:
        return ""
    if binding.unscheduled_reason not in REASONS or binding.pins != policy.clusters:
        return ""
    return policy.clusters[0]


def _rejection(old: Rejection | None, cluster: str, now: datetime) -> Rejection:
    """Return the record of a refusal that is there now; `old` is the record before.

    It begins with `since`; a refusal that lasts excludes the cluster until `retry_time`.
    """
    times = old.times if old is not None else 0
    if old is not None and is_active(old, now):
        return old
    if old is None or old.since is None:
        return Rejection(cluster=cluster, times=times, since=now.replace(microsecond=0))
    if now < old.since + STANDS:
        return old
    seconds = min(_LONGEST, _FIRST * 2.0 ** min(times, 16))
    until = now.replace(microsecond=0) + timedelta(seconds=seconds)
    return Rejection(cluster=cluster, times=times + 1, retry_time=until)


def _wait(rejections: Iterable[Rejection], now: datetime) -> timedelta | None:
    """Return the time until the next refusal counts or ends; None if there is none."""
    moments = [item.since + STANDS for item in rejections if item.since is not None]
    moments += [
        item.retry_time
        for item in rejections
        if item.retry_time is not None and now < item.retry_time
    ]
    return min((moment - now for moment in moments), default=None)
