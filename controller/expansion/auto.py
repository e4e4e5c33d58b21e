"""Automatic splits: number, size and cluster of the sub-jobs from what the clusters have free.

Decided anew in each pass while nothing of a split stands, so always with today's capacity; kept
from then on. All automatic splits of a HyperJob are made together, or none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from controller.expansion.expand import Group, SubJob, expand_group, sub_jobs
from controller.expansion.members import members_of
from controller.expansion.parts import Part, is_auto, part_of
from controller.model.child import child_of
from controller.model.observed import Observed, Verdict
from controller.placement.assign import Request, Room
from controller.placement.search import assign
from controller.placement.share import Share, Wish, share
from controller.placement.shortfall import explain_overflow_of, explain_shortfall
from controller.status.outlook import Reason
from hyperjob.api.names import child_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What the automatic splits of a HyperJob come to.

    `shares` are the pods that scale of each sub-job by replicatedJob, in the order of the indices;
    `pins` and `overflow` the cluster, and why no preferred one, by sub-job; `waiting` a reason and
    message by replicatedJob that cannot be split now.
    """

    shares: Mapping[str, Sequence[int]] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    overflow: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, tuple[Reason, str]] = field(default_factory=dict)

    def pinned(self, request: Request) -> Request:
        """Bind a sub-job to the cluster that its size was made for."""
        cluster = self.pins.get(request.name)
        if cluster is None:
            return request
        return replace(request, preferred=(cluster,), required=True)

    def blocker(self, group: str) -> tuple[Reason, str]:
        """Return why nothing of a group is made while some split is waiting."""
        first = next(iter(self.waiting), "")
        others = Reason.INSUFFICIENT_CAPACITY, f"waits until {first} can be split"
        return self.waiting.get(group, others)


def resolve(observed: Observed) -> Split:
    """Decide the automatic splits of a HyperJob; raises SpecError."""
    hyperjob = observed.hyperjob
    parts = [part_of(observed, group) for group in hyperjob.replicated_jobs if is_auto(group)]
    if not parts:
        return Split()
    sizes = {part.group.name: [pods for _, pods in sorted(part.decided.items())] for part in parts}
    indices: dict[str, Sequence[int]] = {part.group.name: sorted(part.decided) for part in parts}
    groups = []
    for wanted in hyperjob.replicated_jobs:
        group = expand_group(wanted, sizes.get(wanted.name))
        groups.append(group)
        if wanted.name not in indices:
            indices[wanted.name] = members_of(observed, group).kept
    standing: list[tuple[str, str]] = []
    missing: list[Request] = []
    for sub_job in sub_jobs(hyperjob, groups, indices):
        child = child_of(observed, sub_job.name)
        if child.cluster and (child.exists or child.is_terminal):
            standing.append((sub_job.group.name, child.cluster))
        elif not child.exists and not child.is_terminal:
            missing.append(sub_job.request())
    room = Room.of(observed.clusters, standing)
    return _decide(observed, parts, _rooms(room, missing, hyperjob.max_domains))


def is_admitted(hyperjob: str, sub_job: SubJob, verdict: Verdict) -> bool:
    """Tell whether a queue admitted a sub-job; those of an automatic split are admitted as one.

    How many they are is not known when a queue judges, so any name of the split stands for all.
    """
    if sub_job.name in verdict.admitted or not is_auto(sub_job.group):
        return sub_job.name in verdict.admitted
    prefix = child_name(hyperjob, sub_job.group.name, 0)[:-1]
    return any(
        name.startswith(prefix) and name.removeprefix(prefix).isdecimal()
        for name in verdict.admitted
    )


def _rooms(room: Room, missing: Sequence[Request], max_domains: int | None) -> list[Room]:
    """Return what is free beside the sub-jobs of other groups, and without regard to them."""
    if not missing:
        return [room]
    placed = assign(missing, room, max_domains=max_domains)
    placed.free = {**room.free, **placed.free}
    return [placed, room]


def _decide(observed: Observed, parts: Sequence[Part], rooms: Iterable[Room]) -> Split:
    leaving = {
        part.group.name: (Reason.BEING_DELETED, "waits until its old sub-jobs are gone")
        for part in parts
        if part.leaving
    }
    wishes = [part.wish for part in parts if part.wish is not None and not part.leaving]
    waiting: dict[str, tuple[Reason, str]] = {}
    for room in rooms:
        shares, waiting = _share_out(observed, wishes, room.copy())
        if not waiting:
            return _split(observed, parts, shares, leaving)
    return _split(observed, parts, {}, leaving | waiting)


def _share_out(
    observed: Observed, wishes: Iterable[Wish], room: Room
) -> tuple[dict[str, Sequence[Share]], dict[str, tuple[Reason, str]]]:
    """Share out one wish after the other; stop at the first that cannot be, and say why."""
    limit = observed.hyperjob.max_domains
    shares: dict[str, Sequence[Share]] = {}
    for wish in wishes:
        found = share(wish, room, max_domains=limit)
        if not found:
            text = explain_shortfall(wish, observed.clusters, room, max_domains=limit)
            return shares, {wish.group: (Reason.INSUFFICIENT_CAPACITY, text)}
        shares[wish.group] = found
        for position, item in enumerate(found):
            room.put(wish.request(item.pods, f"{wish.group}/{position}"), item.cluster)
    return shares, {}


def _split(
    observed: Observed,
    parts: Iterable[Part],
    shares: Mapping[str, Sequence[Share]],
    waiting: Mapping[str, tuple[Reason, str]],
) -> Split:
    sizes: dict[str, Sequence[int]] = {}
    pins: dict[str, str] = {}
    overflow: dict[str, str] = {}
    for part in parts:
        group, found = part.group, shares.get(part.group.name, ())
        if not part.decided and not found:
            continue  # expansion lets one sub-job stand for all of it
        total = len(part.decided) + len(found)
        one = expand_group(group, [1])
        kept = members_of(observed, Group(replicated_job=group, sizes=[*one.sizes] * total)).kept
        fresh = [index for index in kept if index not in part.decided]
        pods = {**part.decided, **{i: item.pods for i, item in zip(fresh, found, strict=True)}}
        sizes[group.name] = [pods[index] for index in kept]
        for index, item in zip(fresh, found, strict=True):
            name = child_name(observed.hyperjob.name, group.name, index)
            pins[name] = item.cluster
            if group.cluster_names and item.cluster not in group.cluster_names and part.wish:
                overflow[name] = explain_overflow_of(part.wish, observed.clusters, found)
    return Split(shares=sizes, pins=pins, overflow=overflow, waiting=waiting)
