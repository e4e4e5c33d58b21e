"""Judge a HyperJob: admission refuses it, or it starts, waits, or can never run. Pure.

The module calls the webhook's validation and the controller's plan.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from hyperjob.client import summary
from hyperjob.client.expected import ExpectedStart, expected_start
from hyperjob.client.plan.prospect import has_room, impossible, is_down, too_large
from hyperjob.client.plan.queueing import LinePosition, ask
from hyperjob.client.plan.world import Snapshot
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, mapping, objects, rfc3339, string
from hyperjob_engine.expansion.auto import Split
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.observed import Observed, QueueAdmission
from hyperjob_engine.model.planned import CreateChild, Plan
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import SubJob, queue_of
from hyperjob_engine.placement.alternatives import alternatives
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.plan import decide
from hyperjob_engine.reasons.detail import detail_text
from hyperjob_engine.reasons.hindrance import Obstacle, hindrance_text
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.reasons.waiting import Share
from hyperjob_engine.resources import accelerator_of
from hyperjob_engine.steps.draft import Draft
from hyperjob_rules.defaulting import default
from hyperjob_rules.validation.context import Cluster as KnownCluster
from hyperjob_rules.validation.context import Context, known_objects
from hyperjob_rules.validation.context import Queue as KnownQueue
from hyperjob_rules.validation.create import inspect
from hyperjob_rules.validation.update import inspect_update


class Verdict(enum.StrEnum):
    """The result of applying a HyperJob."""

    FITS = "Fits"
    WAITS = "Waits"
    CANNOT_RUN = "CannotRun"
    HAS_ENDED = "HasEnded"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A sub-job: its cluster, and the reason why it is on none of the other clusters."""

    name: str
    group: str
    cluster: str
    accelerator: str
    accelerators: int
    pods: int
    phase: str
    message: str
    elsewhere: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The prediction for a HyperJob.

    With built-in queues, `shares` are the shares of its queues once it runs, and `waits_in` is its
    place in a queue. `expected` is its expected start, if running HyperJobs have estimates, and
    `expectation` is the text for it.
    """

    namespace: str
    name: str
    line: int
    verdict: Verdict
    message: str = ""
    errors: Sequence[str] = ()
    warnings: Sequence[str] = ()
    queues: Mapping[str, str] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    waits_in: LinePosition | None = None
    expected: ExpectedStart | None = None
    expectation: str = ""
    pieces: Sequence[Piece] = ()


_TOO_LARGE: Final = "too large for all usable clusters, even empty"
_WAITS: Final = frozenset(
    {
        Reason.WAITING_FOR_QUEUE,
        Reason.WAITING_FOR_DEPENDENCY,
        Reason.WAITING_FOR_HOST,
        Reason.BEING_DELETED,
    }
)


def judge(
    hyperjob: Object, world: Snapshot, *, line: int = 1, errors: Sequence[str] = ()
) -> tuple[Judgement, Snapshot]:
    """Judge a HyperJob of a file; return the judgement and the world after it.

    `line` is the line of the HyperJob in its file; `errors` are the parser's errors in it.
    """
    content = default(hyperjob)
    metadata = mapping(content.get("metadata"))
    namespace = string(metadata.get("namespace")) or world.namespace
    name = string(metadata.get("name"))
    old = world.hyperjobs.get(f"{namespace}/{name}")
    context = _context(world, namespace)
    made = inspect(content, context=context, strict=True)
    report = (
        made
        if old is None
        else inspect_update({**old, "spec": content.get("spec")}, old, context=context)
    )
    wrong = list(dict.fromkeys([*errors, *(str(item.error) for item in report.refusals)]))
    judgement = Judgement(
        namespace=namespace,
        name=name,
        line=line,
        verdict=Verdict.REFUSED,
        errors=wrong,
        # At an update, admission does not warn of missing objects that the spec already named.
        warnings=list(dict.fromkeys(item.text for item in (*report.remarks, *made.remarks))),
    )
    if wrong:
        return replace(judgement, message=f"would be refused with {_count(wrong)}"), world
    if old is not None and (before := summary.read(old)).has_ended:
        message = f"is {before.phase} and never runs again: delete it, then apply it again"
        return replace(judgement, verdict=Verdict.HAS_ENDED, message=message), world
    return _planned(judgement, _stored(content, old, namespace, name, world), world)


def _planned(judgement: Judgement, raw: Object, world: Snapshot) -> tuple[Judgement, Snapshot]:
    observed, standing = ask(world.observe(raw), world)
    queued = observed.admission is not QueueAdmission.NONE
    decision = decide(observed)
    decided, draft = decision.plan, decision.draft
    if draft is None:
        return replace(judgement, verdict=Verdict.CANNOT_RUN, message=decision.refusal), world
    state = mapping(at(decided.status, "state"))
    wanted = [sub_job for sub_job, _ in draft.children]
    created = {item.name: item for item in decided.actions if isinstance(item, CreateChild)}
    queues = {
        queue: standing.problems.get(queue, "")
        for queue in dict.fromkeys(queue_of(item.size.template) for item in wanted)
        if queued  # without queue admission, the queues of the members decide
    }
    held_back = standing.line is not None and state.get("phase") == "Queued"
    waits = state.get("phase") == "Pending" or held_back or any(queues.values())
    gang = standing.gang
    large = gang is not None and too_large(gang, observed.clusters)
    free = not large and (gang is None or has_room(gang, observed.clusters))
    pieces = _pieces(draft, decided, wanted, created, has_room=free)
    verdict, message = Verdict.FITS, _stands(pieces)
    if waits and (why := impossible(wanted, observed.clusters)):
        verdict, message = Verdict.CANNOT_RUN, why
        # The HyperJob's message already says that no cluster has the device.
        pieces = [replace(piece, message="", elsewhere={}) for piece in pieces]
    elif waits:
        stuck = large or _needs_help(queues, string(state.get("reason")))
        verdict = Verdict.CANNOT_RUN if stuck else Verdict.WAITS
        message = string(state.get("message"))
        if large and state.get("reason") != Reason.EXCEEDS_CLUSTERS:
            message = f"{_TOO_LARGE}: {message}"
    expected = expected_start(decided.status or {}) if verdict is Verdict.WAITS else None
    taken = [
        (item.name, created[item.name].cluster, item.size.demand, item.size.pod_groups)
        for item in wanted
        if item.name in created
    ]
    return (
        replace(
            judgement,
            verdict=verdict,
            message=message,
            queues=queues,
            shares=standing.shares,
            waits_in=standing.line,
            expected=expected,
            expectation=expected.words(world.now, namespace=judgement.namespace)
            if expected is not None
            else "",
            pieces=pieces,
        ),
        world.after({**raw, "status": decided.status or raw.get("status") or {}}, taken),
    )


def _pieces(
    draft: Draft,
    decided: Plan,
    wanted: Iterable[SubJob],
    created: Mapping[str, CreateChild],
    *,
    has_room: bool,
) -> list[Piece]:
    observed, split = draft.observed, draft.split
    records = {string(item.get("name")): item for item in objects((decided.status or {})["jobs"])}
    requests = {item.name: item.request() for item in wanted}
    standing = []
    for item in wanted:
        child = child_of(observed, item.name)
        if item.name not in created and child.cluster:
            standing.append((item.group.name, child.cluster))
    room = FreeRoom.of(observed.clusters, standing)
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
        unplaced = (Obstacle.WAITS, message) if waits else (Obstacle.NOT_FOR_ALL, "")
        overflow = created[item.name].overflow if item.name in created else None
        found.append(
            Piece(
                name=item.name,
                group=item.group.name,
                cluster=cluster,
                accelerator=accelerator,
                accelerators=item.size.accelerators or 0,
                pods=item.size.pods,
                phase=string(record.get("phase")),
                message=detail_text(overflow) if overflow else "" if cluster else message,
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
    room: FreeRoom,
    split: Split,
    *,
    unplaced: tuple[Obstacle, str],
    runs: bool,
) -> dict[str, str]:
    beside = room.copy()
    if request.name in beside.assigned:
        beside.take(request)
    limit = observed.hyperjob.max_domains
    reasons = alternatives(
        request,
        cluster,
        observed.clusters,
        beside,
        max_domains=limit,
        unplaced=unplaced,
        runs=runs,
    )
    if request.name in split.pins and not runs:
        for name, hindrance in reasons.items():
            if name in split.pins.values():
                reasons[name] = replace(hindrance, code=Obstacle.OTHER_SHARE)
            elif hindrance.code.has_room:
                reasons[name] = replace(hindrance, code=Obstacle.NOT_NEEDED)
    return {name: hindrance_text(hindrance) for name, hindrance in reasons.items()}


def _stored(
    content: Object, old: Object | None, namespace: str, name: str, world: Snapshot
) -> Object:
    """Return the HyperJob as the API server would store it, created after earlier HyperJobs."""
    if old is not None:
        return {**old, "spec": content.get("spec")}
    created = rfc3339(world.now + timedelta(seconds=len(world.earlier)))
    metadata = {
        **mapping(content.get("metadata")),
        "namespace": namespace,
        "name": name,
        "generation": 1,
        "creationTimestamp": created,
    }
    return {**content, "metadata": metadata, "status": {}}


def _context(world: Snapshot, namespace: str) -> Context:
    return replace(
        known_objects(world.there, namespace),
        clusters={
            item.name: KnownCluster(ready=item.usable or not is_down(item))
            for item in world.clusters
        },
        queues=None
        if world.queues is None
        else {name: KnownQueue(state=state or "Open") for name, state in world.queues.items()},
        priority_classes=world.there.get(("", "PriorityClass")),
    )


def _needs_help(queues: Mapping[str, str], reason: str) -> bool:
    """Return whether the wait ends only after a person acts."""
    return reason == Reason.EXCEEDS_QUEUE or any(text for text in queues.values())


def _stands(pieces: Sequence[Piece]) -> str:
    clusters = ", ".join(sorted({piece.cluster for piece in pieces if piece.cluster}))
    noun = "sub-job" if len(pieces) == 1 else "sub-jobs"
    return f"{len(pieces)} {noun} on {clusters or 'no cluster'}"


def _count(errors: Sequence[str]) -> str:
    return "1 error" if len(errors) == 1 else f"{len(errors)} errors"
