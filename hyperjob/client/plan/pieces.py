"""The sub-jobs of a planned HyperJob: their clusters, and the reasons against the others. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.wire import objects, string
from hyperjob_engine.expansion.auto import Split
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import CreateChild, Plan
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import SubJob, child_of
from hyperjob_engine.placement.explain import alternatives
from hyperjob_engine.placement.room import Room
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import accelerator_of
from hyperjob_engine.steps.draft import Draft

_WAITS: Final = frozenset(
    {
        Reason.WAITING_FOR_QUEUE,
        Reason.WAITING_FOR_DEPENDENCY,
        Reason.WAITING_FOR_HOST,
        Reason.BEING_DELETED,
    }
)

_NOT_FOR_ALL: Final = "has room, but not for all that must be placed together"
_NOT_NEEDED: Final = (
    "has room, but the split takes as few clusters as hold it, near ones and close fits first"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A sub-job: its cluster, and the reason why it is on none of the other clusters.

    Volcano starts it with `fewest` of its `pods`, and the others where there is room.
    """

    name: str
    group: str
    cluster: str
    accelerator: str
    accelerators: int
    pods: int
    fewest: int
    phase: str
    message: str
    elsewhere: Mapping[str, str]


def pieces(
    draft: Draft,
    decided: Plan,
    wanted: Iterable[SubJob],
    created: Mapping[str, CreateChild],
    *,
    has_room: bool,
) -> list[Piece]:
    """Return the sub-jobs `wanted` of a decision, of which it creates `created`.

    `has_room`: the clusters have room for the sub-jobs that wait. Each sub-job is compared with the
    room beside all others of the HyperJob.
    """
    observed, split = draft.observed, draft.split
    records = {string(item.get("name")): item for item in objects((decided.status or {})["jobs"])}
    requests = {item.name: item.request() for item in wanted}
    standing = []
    for item in wanted:
        child = child_of(observed, item.name)
        if item.name not in created and child.cluster:
            standing.append((item.group.name, child.cluster))
    room = Room(observed.clusters, standing)
    for name, action in created.items():
        if action.cluster in room.free:
            room.put(requests[name], action.cluster)
    found = []
    for item in wanted:
        record = records.get(item.name, {})
        cluster = string(record.get("cluster"))
        demand = item.size.demand
        accelerator = accelerator_of(demand) or ""
        message = string(record.get("message"))
        waits = has_room and record.get("reason") in _WAITS
        unplaced = f"has room, but the sub-job {message}" if waits else _NOT_FOR_ALL
        overflow = created[item.name].overflow if item.name in created else ""
        found.append(
            Piece(
                name=item.name,
                group=item.group.name,
                cluster=cluster,
                accelerator=accelerator,
                accelerators=item.size.accelerators or 0,
                pods=item.size.pods,
                fewest=item.size.together,
                phase=string(record.get("phase")),
                message=overflow or ("" if cluster else message),
                elsewhere=_elsewhere(
                    observed,
                    requests[item.name],
                    cluster,
                    room,
                    split,
                    unplaced=unplaced,
                    runs=(item.group.name, cluster) in standing and item.name not in created,
                ),
            )
        )
    return found


def _elsewhere(
    observed: Observed,
    request: PlacementRequest,
    cluster: str,
    room: Room,
    split: Split,
    *,
    unplaced: str,
    runs: bool,
) -> dict[str, str]:
    """Return why a sub-job is on none of the other clusters, by cluster.

    `cluster` is its own, empty without one; `room` is what all sub-jobs together leave. `unplaced`
    is the reason against a cluster with room for a sub-job on no cluster. `runs`: it existed before
    the decision.
    """
    beside = room.copy()
    if request.name in beside.assigned:
        beside.take(request)
    limit = observed.hyperjob.max_domains
    reasons = alternatives(
        request,
        cluster,
        beside,
        max_domains=limit,
        unplaced=unplaced,
        runs=runs,
    )
    texts = {name: hindrance.text for name, hindrance in reasons.items()}
    if request.name in split.pins and not runs:
        for name, hindrance in reasons.items():
            if name in split.pins.values():
                texts[name] = "holds another share of the split"
            elif hindrance.has_room:
                texts[name] = _NOT_NEEDED
    return texts


def unsuitable(found: Iterable[Piece]) -> list[tuple[str, str, list[str]]]:
    """Return each unsuitable cluster with a reason and the sub-jobs to which it applies, sorted."""
    names: dict[tuple[str, str], list[str]] = {}
    for piece in found:
        for cluster, reason in piece.elsewhere.items():
            names.setdefault((cluster, reason), []).append(piece.name)
    return [(cluster, reason, each) for (cluster, reason), each in sorted(names.items())]


def places(found: Iterable[Piece]) -> str:
    """Return the number of sub-jobs and their clusters as text."""
    known = list(found)
    clusters = ", ".join(sorted({piece.cluster for piece in known if piece.cluster}))
    noun = "sub-job" if len(known) == 1 else "sub-jobs"
    return f"{len(known)} {noun} on {clusters or 'no cluster'}"
