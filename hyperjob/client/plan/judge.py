"""Judge HyperJobs: admission refuses one, or it starts, waits, or can never run.

The module calls the webhook's validation, and the controller on an API server in memory. A piece is
a sub-job with its cluster, and the reasons against the others.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hyperjob.client import summary
from hyperjob.client.durations import expected_words
from hyperjob.client.plan.rehearsal import Answer, Rehearsal, rehearsing
from hyperjob.client.plan.snapshot import Snapshot
from hyperjob_core.api import table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import ExpectedStart
from hyperjob_core.api.wire import at, mapping, objects, string
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, PRIORITY_CLASSES, QUEUES
from hyperjob_core.virtualtime import run
from hyperjob_engine.model.line import Wait
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import CreateChild, Plan
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import SubJob, child_of, queue_of
from hyperjob_engine.placement.explain import alternatives
from hyperjob_engine.placement.room import Room
from hyperjob_engine.reasons.reason import NEVER_RUNS, Reason
from hyperjob_engine.resources import accelerator_of
from hyperjob_engine.steps.draft import Draft
from hyperjob_queueing.state import QueueState
from hyperjob_queueing.verdict import Share, share_of
from hyperjob_rules.validation.context import (
    Context,
    kept_classes,
    known_clusters,
    known_objects,
    known_queues,
)
from hyperjob_rules.validation.create import inspect
from hyperjob_rules.validation.update import inspect_update

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
    observed = draft.observed
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
        runs = (item.group.name, cluster) in standing and item.name not in created
        found.append(
            Piece(
                name=item.name,
                group=item.group.name,
                cluster=cluster,
                accelerator=accelerator,
                accelerators=item.size.accelerators or 0,
                pods=item.size.pods,
                fewest=item.size.fewest,
                phase=string(record.get("phase")),
                message=overflow or ("" if cluster else message),
                elsewhere=_elsewhere(
                    draft, requests[item.name], cluster, room, unplaced=unplaced, runs=runs
                ),
            )
        )
    return found


def _elsewhere(
    draft: Draft, request: PlacementRequest, cluster: str, room: Room, *, unplaced: str, runs: bool
) -> dict[str, str]:
    """Return why a sub-job is on none of the other clusters, by cluster.

    `cluster` is its own, empty without one; `room` is what all sub-jobs together leave. `unplaced`
    is the reason against a cluster with room for a sub-job on no cluster. `runs`: it existed before
    the decision.
    """
    beside = room.copy()
    if request.name in beside.assigned:
        beside.take(request)
    limit, pins = draft.observed.hyperjob.max_domains, draft.split.pins
    reasons = alternatives(
        request, cluster, beside, max_domains=limit, unplaced=unplaced, runs=runs
    )
    texts = {name: hindrance.text for name, hindrance in reasons.items()}
    if request.name in pins and not runs:
        for name, hindrance in reasons.items():
            if name in pins.values():
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


class Verdict(enum.StrEnum):
    """The result of applying a HyperJob."""

    FITS = "Fits"
    WAITS = "Waits"
    CANNOT_RUN = "CannotRun"
    HAS_ENDED = "HasEnded"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A HyperJob of a file, its line there, and errors and warnings about its text and head."""

    content: Object
    line: int = 1
    errors: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The prediction for a HyperJob.

    With built-in queues, `shares` are the shares of its queues once it runs, and `waits_in` is its
    place in a queue. `expected` is its expected start, if running HyperJobs have estimates, and
    `expectation` is the text for it. `chosen` are the replicatedJobs with their alternative, or
    their number of sub-jobs within bounds up to which it may grow.
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
    waits_in: Wait | None = None
    expected: ExpectedStart | None = None
    expectation: str = ""
    chosen: Sequence[summary.Group] = ()
    pieces: Sequence[Piece] = ()

    def __repr__(self) -> str:
        clusters = ", ".join(sorted({piece.cluster for piece in self.pieces if piece.cluster}))
        said = [f"{self.verdict}{f' on {clusters}' if clusters else ''}", self.message]
        said += [*self.errors, *self.warnings, self.expectation]
        return f"<{self.namespace}/{self.name} {': '.join(filter(None, said))}>"


def judge(hyperjob: Object, snapshot: Snapshot) -> Judgement:
    """Judge a HyperJob; must not be called on the thread of a running event loop."""
    return judge_all([Document(content=hyperjob)], snapshot)[0]


def judge_all(documents: Iterable[Document], snapshot: Snapshot) -> list[Judgement]:
    """Judge HyperJobs that users apply one after the other; see `judge`."""

    async def judged() -> list[Judgement]:
        async with rehearsing(snapshot) as rehearsal:
            return [await judge_next(each, rehearsal, snapshot) for each in documents]

    return run(judged())


async def judge_next(document: Document, rehearsal: Rehearsal, snapshot: Snapshot) -> Judgement:
    """Judge a HyperJob after those that the rehearsal has, and add it to them if it is accepted.

    A HyperJob of the same name in the rehearsal is updated: the rules of an update apply to it.
    """
    content = document.content
    metadata = mapping(content.get("metadata"))
    namespace = string(metadata.get("namespace")) or snapshot.namespace
    name = string(metadata.get("name"))
    old = rehearsal.get(HYPERJOBS, f"{namespace}/{name}")
    context = _context(rehearsal, snapshot, namespace)
    made = inspect(content, context=context, strict=True)
    report = (
        made
        if old is None
        else inspect_update({**old, "spec": content.get("spec")}, old, context=context)
    )
    refusals = (str(item.error) for item in report.refusals)
    remarks = (item.text for item in (*report.remarks, *made.remarks))
    wrong = list(dict.fromkeys([*document.errors, *refusals]))
    judgement = Judgement(
        namespace=namespace,
        name=name,
        line=document.line,
        verdict=Verdict.REFUSED,
        errors=wrong,
        # At an update, admission does not warn of missing objects that the spec already named.
        warnings=list(dict.fromkeys([*document.warnings, *remarks])),
    )
    if wrong:
        errors = "1 error" if len(wrong) == 1 else f"{len(wrong)} errors"
        return replace(judgement, message=f"would be refused with {errors}")
    if old is not None and (before := summary.read(old)).has_ended:
        message = f"is {before.phase} and never runs again: delete it, then apply it again"
        return replace(judgement, verdict=Verdict.HAS_ENDED, message=message)
    whole = {**content, "metadata": {**metadata, "namespace": namespace, "name": name}}
    return _judged(judgement, await rehearsal.submit(whole), rehearsal, snapshot)


def _judged(
    judgement: Judgement, answer: Answer, rehearsal: Rehearsal, snapshot: Snapshot
) -> Judgement:
    """Return the judgement of a HyperJob that admission accepts, from the controller's decision.

    It fits unless it is Pending, or Queued in a line of a queue; the reason of its status then says
    whether it waits or can never run.
    """
    observed, decided, draft = answer.observed, answer.decision.plan, answer.decision.draft
    if draft is None:
        return replace(judgement, verdict=Verdict.CANNOT_RUN, message=answer.decision.refusal)
    state = mapping(at(decided.status, "state"))
    wanted = [sub_job for sub_job, _ in draft.children]
    queues, shares = _queue_problems(wanted, rehearsal.queues, observed.admission)
    wait = observed.verdict.wait if observed.verdict is not None else None
    in_line = wait is not None and rehearsal.queues.known and wait.queue in queues
    waits = state.get("phase") == "Pending" or (in_line and state.get("phase") == "Queued")
    free = wait is None or wait.has_room
    found = pieces(draft, decided, wanted, answer.created, has_room=free)
    verdict, message = Verdict.FITS, places(found)
    if waits:
        never = state.get("reason") in NEVER_RUNS
        verdict = Verdict.CANNOT_RUN if never else Verdict.WAITS
        message = string(state.get("message"))
    start = (decided.status or {}).get("expectedStart") if verdict is Verdict.WAITS else None
    expected = table.read(ExpectedStart, start)
    raw = rehearsal.get(HYPERJOBS, f"{judgement.namespace}/{judgement.name}") or {}
    groups = summary.read({**raw, "status": decided.status or {}}).groups
    return replace(
        judgement,
        verdict=verdict,
        message=message,
        chosen=[each for each in groups if each.alternative is not None],
        queues=queues,
        shares=shares,
        waits_in=wait if in_line else None,
        expected=expected,
        expectation=""
        if expected is None
        else expected_words(expected, snapshot.now, namespace=judgement.namespace),
        pieces=found,
    )


def _queue_problems(
    wanted: Iterable[SubJob], state: QueueState, admission: QueueAdmission
) -> tuple[dict[str, str], dict[str, Share]]:
    """Return for each queue why it takes no jobs, empty if it takes jobs, and its share."""
    problems: dict[str, str] = {}
    shares: dict[str, Share] = {}
    if admission is QueueAdmission.NONE:  # the queues of the members decide
        return problems, shares
    for item in wanted:
        name = queue_of(item.size.template)
        if name in problems:
            continue
        trouble = state.usage.tree.trouble(name) if state.known else None
        problems[name] = trouble.text if trouble is not None else ""
        share = share_of(state, name, item.size.demand) if state.known else None
        if share is not None:
            shares[name] = share
    return problems, shares


def _context(rehearsal: Rehearsal, snapshot: Snapshot, namespace: str) -> Context:
    """Return the objects that admission of a HyperJob in a namespace sees."""
    classes = snapshot.there.get(("", "PriorityClass"))
    return replace(
        known_objects(snapshot.there, namespace),
        clusters=known_clusters(rehearsal.items(CLUSTERS)),
        queues=None if QUEUES in snapshot.unreadable else known_queues(rehearsal.items(QUEUES)),
        priority_classes=None if classes is None else classes.keys(),
        kept_classes=kept_classes(snapshot.of(PRIORITY_CLASSES)),
    )
