"""The gate of a gang, and the places of its sub-jobs that no member has received.

Admitted sub-jobs are suspended until `minAvailable` of them are admitted. The PropagationPolicy is
created with the suspension, which Karmada copies to the ResourceBinding. Volcano Global overwrites
that copy: the webhook then holds the gate in the ResourceBinding too, and marks it. The controller
opens what holds a gate, once. A suspension of another author stays. The plan that opens a gate has
the status of the sub-job behind it already: its policy then changes, and Karmada removes the
suspension of the ResourceBinding, but neither change alone makes a difference.

Hours may pass between placement and release: `ready` finds which sub-jobs may start
in their pinned clusters and which must move. A sub-job stays pinned to its cluster as long as the
cluster has room.

Clusters on which Karmada could not schedule a sub-job are avoided for some time. A refusal counts
after it has lasted for some seconds: at first it may be about an earlier pin. Each further refusal
doubles the time. The start of the sub-job clears its refusals.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GATE, GATE_HELD, GATE_OPEN
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import Rejection
from hyperjob_core.api.wire import at, mapping
from hyperjob_engine.model.observed import Binding, Observed, Ownership, QueueAdmission
from hyperjob_engine.model.planned import OpenGate
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import Child, SubJob, closed_queue_of
from hyperjob_engine.placement.explain import Shortage
from hyperjob_engine.placement.place import Placement, place
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import fits, total


def is_held(child: Child) -> bool:
    """Return whether a gate of HyperJob holds the sub-job: its ResourceBinding's, or its policy's.

    A suspension after the gate was opened is another author's.
    """
    if child.binding is None or child.binding.gate == GATE_OPEN:
        return False
    return child.binding.gate == GATE_HELD or _policy_holds(child)


def is_through(child: Child) -> bool:
    """Return whether no gate and no suspension holds a sub-job any more."""
    if child.is_terminal:
        return True
    if child.binding is None or is_held(child):
        return False
    return not child.binding.scheduling_suspended


def is_opened(child: Child) -> bool:
    """Return whether the policy's gate was opened, and no user has suspended the policy since."""
    return (
        child.policy is not None and child.policy.gate == GATE_OPEN and not child.policy.suspended
    )


def is_ungated(child: Child) -> bool:
    """Return whether the policy was created without a gate, and Karmada may apply the vcjob."""
    policy, binding = child.policy, child.binding
    if policy is None or binding is None or policy.ownership is Ownership.FOREIGN:
        return False
    return not (policy.gate or is_held(child) or binding.suspended) and bool(binding.cluster)


def is_released(child: Child) -> bool:
    """Return whether the queue has released a held sub-job: it counts against the quota."""
    return is_held(child) and child.binding is not None and not child.binding.scheduling_suspended


def is_cleared(child: Child, admission: QueueAdmission) -> bool:
    """Return whether the queue released a held sub-job and Karmada placed it on its cluster."""
    binding = child.binding
    if binding is None or not is_held(child):
        return False
    if admission is QueueAdmission.NONE:
        return True  # without a queue admission no component releases it
    if admission is QueueAdmission.BUILTIN and binding.scheduling_suspended:
        return True  # suspended while Volcano Global was in use; now the engine admits
    pin = child.policy.clusters if child.policy is not None else ()
    return is_released(child) and bool(binding.cluster) and binding.cluster in pin


def is_undispatched(child: Child) -> bool:
    """Return whether a gate holds this HyperJob's vcjob, and no member has received it."""
    if not _is_ours(child):
        return False
    if child.phase is not JobPhase.UNKNOWN:
        return False
    if child.binding is None:
        return child.policy is None or _policy_holds(child)
    return is_held(child) and not child.binding.applied


def openings(
    children: Sequence[Child],
    *,
    minimum: int,
    admission: QueueAdmission,
    ready: Collection[str],
) -> list[OpenGate]:
    """Return the gates to open now: those of all admitted and `ready` sub-jobs.

    It is empty while fewer than `minimum` sub-jobs can run. A sub-job whose ResourceBinding has no
    gate is in its member already and does not delay the others. A held sub-job that a member has
    received all the same has no need of room: its gate opens with the others.
    """
    able = {
        child.name
        for child in children
        if _is_ours(child)
        and (
            (is_held(child) and not is_undispatched(child))
            or (child.name in ready and is_cleared(child, admission))
        )
    }
    through = sum(is_through(child) for child in children)
    if len(able) + through < minimum:
        return []
    return [
        _opening(child, child.binding, admission)
        for child in children
        if child.name in able and child.binding is not None
    ]


def _opening(child: Child, binding: Binding, admission: QueueAdmission) -> OpenGate:
    """Return the opening of what holds a sub-job: the gate of its policy, of its binding, or both.

    The binding alone has to be written for its own gate, and to release its scheduling where no
    Volcano Global does that.
    """
    policy_uid = child.policy.uid if child.policy is not None and _policy_holds(child) else None
    release = admission is not QueueAdmission.VOLCANO_GLOBAL and binding.scheduling_suspended
    alone = policy_uid is not None and binding.gate != GATE_HELD and not release
    return OpenGate(
        name=child.name,
        binding=binding.name,
        binding_uid=None if alone else binding.uid,
        policy_uid=policy_uid,
        release_scheduling=release,
    )


def _is_ours(child: Child) -> bool:
    """Return whether this HyperJob controls the vcjob; an orphan must be adopted first."""
    return child.exists and child.job is not None and child.job.ownership is Ownership.OURS


def _policy_holds(child: Child) -> bool:
    """Return whether the policy holds the gate, or its deletion has left the suspension behind."""
    policy, binding = child.policy, child.binding
    if policy is None:
        waits = child.phase is JobPhase.UNKNOWN
        return waits and binding is not None and binding.dispatching_suspended
    if policy.gate == GATE_OPEN or policy.ownership is Ownership.FOREIGN:
        return False
    return policy.suspended


def opens_gate(old: Object | None, new: Object | None) -> bool:
    """Return whether the spec of a PropagationPolicy has only lost the gate that was opened."""
    if not _is_open(new) or at(old, "metadata", "annotations", GATE) == GATE_OPEN:
        return False
    before, after = mapping(at(old, "spec")), mapping(at(new, "spec"))
    names = (before.keys() | after.keys()) - {"suspension"}
    return all(before.get(name) == after.get(name) for name in names)


def follows_opening(
    old: Object | None, new: Object | None, *, policy: Object | None, binding: Binding
) -> bool:
    """Return whether the suspension of a ResourceBinding has only followed its policy's open gate.

    `binding` is the new ResourceBinding, parsed; the caller compares its other fields. While no
    member has received the vcjob, a plan reads nothing else of the suspension. After that, waits
    for the member begin with this change.
    """
    before, after = mapping(at(old, "spec", "suspension")), mapping(at(new, "spec", "suspension"))
    if before.get("dispatching") is not True or after.get("dispatching") is True:
        return False
    if before.get("scheduling") != after.get("scheduling") or not _is_open(policy):
        return False
    return not (binding.applied or binding.report or binding.workless_since)


def _is_open(policy: Object | None) -> bool:
    """Return whether the gate of a PropagationPolicy was opened, and nothing suspends it since."""
    return (
        at(policy, "metadata", "annotations", GATE) == GATE_OPEN
        and at(policy, "spec", "suspension", "dispatching") is not True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedPlace:
    """A sub-job that no member has received, and the cluster to which it is pinned.

    `held`: its gate is closed, and the controller reserves its room. `released`: the queue has
    released it. `fresh`: it was created a moment ago, when its room was certain.
    """

    request: PlacementRequest
    pin: str
    held: bool
    released: bool
    fresh: bool = False

    @property
    def name(self) -> str:
        """Return the name of the sub-job."""
        return self.request.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The sub-jobs that are ready, the new clusters of those that move, and those without room."""

    ready: frozenset[str] = frozenset()
    moves: Mapping[str, str] = field(default_factory=dict)
    short: Mapping[str, Shortage] = field(default_factory=dict)


def review(
    pinned_places: Sequence[PinnedPlace],
    room: Room,
    *,
    standing: Iterable[tuple[str, str]],
    max_domains: int | None,
) -> Review:
    """Compare every pinned sub-job with the resources that are free without its own reservation.

    `room` is what all reservations leave; `standing` are (group, cluster) of the sub-jobs that stay
    where they are in any case.
    """
    if not pinned_places:
        return Review()
    standing = list(standing)
    given = room.copy()
    for pinned in pinned_places:
        if pinned.held:
            given.hold(pinned.request, pinned.pin, -1)
    kept, unsettled, leaving, left = _sort(pinned_places, given)
    settled = [(pinned.request.group, pinned.pin) for pinned in kept]
    first = _place(leaving, left, [*standing, *settled], max_domains)
    waits = {
        pinned.name: Shortage(
            text=f"waits until the status of {pinned.pin} counts the pods that have just started"
            " there"
        )
        for pinned in unsettled
    }
    if first.unplaced and len(leaving) < len(pinned_places):
        again = _place(pinned_places, given, standing, max_domains)
        if len(again.assigned) > len(kept) + len(first.assigned):
            return _rearranged(pinned_places, again)
    ready = {pinned.name for pinned in kept if pinned.held} - waits.keys()
    return Review(ready=frozenset(ready), moves=first.assigned, short={**waits, **first.unplaced})


def _sort(
    pinned_places: Sequence[PinnedPlace], given: Room
) -> tuple[list[PinnedPlace], list[PinnedPlace], list[PinnedPlace], Room]:
    """Return the sub-jobs that stay, the uncertain ones of them, those that leave, and the room.

    The room is what those that stay leave of the given one.
    """
    left = given.copy()
    kept, unsettled, leaving = [], [], []
    for pinned in sorted(pinned_places, key=lambda pinned: not pinned.released):
        free = left.free.get(pinned.pin)
        if free is None or pinned.pin in pinned.request.excluded:
            leaving.append(pinned)
            continue
        demand, settling = pinned.request.demand, left.clusters[pinned.pin].settling
        certain = not pinned.held or fits(demand, free)
        if not certain and not fits(demand, total((free, settling))):
            leaving.append(pinned)
            continue
        kept.append(pinned)
        if not certain and not pinned.fresh:
            unsettled.append(pinned)
        if pinned.held:
            left.hold(pinned.request, pinned.pin)
    return kept, unsettled, leaving, left


def _place(
    pinned_places: Sequence[PinnedPlace],
    room: Room,
    standing: Sequence[tuple[str, str]],
    max_domains: int | None,
) -> Placement:
    requests = [pinned.request for pinned in pinned_places]
    return place(requests, room.beside(standing), max_domains=max_domains)


def _rearranged(pinned_places: Sequence[PinnedPlace], placement: Placement) -> Review:
    """Return the review after a new placement of all: those on their pinned cluster stay there."""
    pins = {pinned.name: pinned.pin for pinned in pinned_places}
    held = {pinned.name for pinned in pinned_places if pinned.held}
    same = {name for name, cluster in placement.assigned.items() if cluster == pins[name]}
    return Review(
        ready=frozenset(same & held),
        moves={name: to for name, to in placement.assigned.items() if name not in same},
        short=placement.unplaced,
    )


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
