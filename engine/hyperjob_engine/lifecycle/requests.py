"""What others ask of a running HyperJob: to restart, to move, or to make way.

A restart or a move is asked for by annotation, "<token> [sub-job ...]"; each token is handled once.
The status records the token together with the decision. It records the token of a refused request
too, which therefore takes no effect later.

A HyperJob makes way for its lender, or for another one of its queue. That restart spends none of
`maxRestarts`, because no sub-job has failed. With minReplicas it goes on with fewer sub-jobs if
they leave enough, and with more in room that no other can start with: with a quorum without a
restart.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from hyperjob_core.api.names import MAX_TOKEN, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, string
from hyperjob_engine.lifecycle.decisions import Member, Recreation, RefusedRequest, Restart
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import HyperJob, Observed
from hyperjob_engine.model.subjobs import Choice
from hyperjob_engine.reasons.reason import Reason


@dataclass(slots=True)
class _Draft:
    no_target: Callable[[str], Sequence[str]] = lambda _name: ()
    again: dict[str, Recreation] = field(default_factory=dict)
    handled: dict[str, str] = field(default_factory=dict)
    refused: list[RefusedRequest] = field(default_factory=list)


def answer(
    hyperjob: HyperJob, members: Sequence[Member], *, no_target: Callable[[str], Sequence[str]]
) -> Restart | None:
    """Return the restart that new requests cause, with the refused ones; None without any.

    `no_target` returns what the other clusters lack for the sub-job of a name; empty if one of them
    has room.
    """
    draft = _Draft(no_target)
    for kind, token, names in _new_requests(hyperjob):
        draft.handled[kind] = token
        if hyperjob.records:  # else no sub-job exists yet: the annotation is of a copied manifest
            _take(draft, kind, token, names, members)
    return _answered(draft)


def refuse_after_end(hyperjob: HyperJob) -> Restart | None:
    """Return the refusal of requests that come after the end of the HyperJob."""
    draft = _Draft()
    for kind, token, _ in _new_requests(hyperjob):
        draft.handled[kind] = token
        draft.refused.append(
            RefusedRequest(kind, token, "the HyperJob has ended, create a new one")
        )
    return _answered(draft)


def _answered(draft: _Draft) -> Restart | None:
    if not draft.handled:
        return None
    again, refused = tuple(draft.again.values()), tuple(draft.refused)
    return Restart(again=again, handled=draft.handled, refused=refused)


def _new_requests(hyperjob: HyperJob) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield kind, token and named sub-jobs of the requests whose token the status does not have."""
    for kind, annotation in (("restart", RESTART_REQUEST), ("migrate", MIGRATE_REQUEST)):
        token, *names = hyperjob.annotations.get(annotation, "").split() or [""]
        handled = string(at(hyperjob.status, "requests", kind))
        # The webhook refuses a longer token; without the webhook it must not reach the status.
        if token and token != handled and len(token) <= MAX_TOKEN:
            yield kind, token, list(dict.fromkeys(names))


def _take(
    draft: _Draft, kind: str, token: str, names: Sequence[str], members: Sequence[Member]
) -> None:
    """Take one request into the draft: its sub-jobs start again, or it is refused with a reason.

    Without names a restart means all sub-jobs. A name that cannot be served is refused alone; the
    others are served.
    """
    refuse = partial(RefusedRequest, kind, token)
    known = {child.name: child for _, child in members}
    if unknown := [name for name in names if name not in known]:
        draft.refused.append(refuse(f"there is no sub-job {', '.join(unknown)}"))
    if kind == "migrate" and not names:
        draft.refused.append(refuse("names no sub-job to move"))
        return
    for name in names or known:
        child = known.get(name)
        if child is None:
            continue
        if kind == "migrate" and child.is_terminal and not child.phase.is_failed:
            draft.refused.append(refuse(f"{name} has completed"))
            continue
        if kind == "migrate" and child.cluster and (lacking := draft.no_target(name)):
            draft.refused.append(refuse(f"{name} stays on {child.cluster}: {'; '.join(lacking)}"))
            continue
        draft.again[name] = Recreation(
            name=name,
            reason=Reason.MIGRATE_REQUESTED if kind == "migrate" else Reason.RESTART_REQUESTED,
            why=f"{kind} {token} was requested",
            leave=(child.cluster,) if kind == "migrate" and child.cluster else (),
        )


def giving_back(observed: Observed, members: Sequence[Member]) -> Restart | None:
    """Return the restart of the sub-jobs that have not ended; None if it keeps its share."""
    verdict = observed.verdict
    if verdict is None or not verdict.reclaimed_for:
        return None
    reason, other = Reason.RECLAIMED, verdict.reclaimed_for
    why = f"makes way for {other}, whose queue takes back what it lent"
    if verdict.preempted:
        reason = Reason.PREEMPTED
        why = f"is preempted by {other}, which {verdict.preempted}"
    size, leaving = verdict.shrinks_to, verdict.leaving
    restart = Restart(size=size, leaving=leaving, makes_way=reason)
    return _resized(observed, members, restart, reason, why)


def growing(
    observed: Observed,
    members: Sequence[Member],
    joining: Callable[[Choice], tuple[JobStatus, ...]],
) -> Restart | None:
    """Return the change to a larger size; None if its queue grants none.

    `joining` returns the records of the sub-jobs that join with a size. With a quorum the others
    train on. One world stops at a saved step and starts again as a whole.
    """
    verdict, hyperjob, elastic = observed.verdict, observed.hyperjob, observed.hyperjob.elastic
    if verdict is None or elastic is None or not verdict.grows_to or hyperjob.stop is not None:
        return None
    number = dict(verdict.grows_to)[elastic.name]
    why = f"grows to {number} {elastic.counts}: there is room that no other could start with"
    restart = Restart(size=verdict.grows_to, chosen=Chosen.GREW, added=joining(verdict.grows_to))
    return _resized(observed, members, restart, Reason.RESIZED, why)


def _resized(
    observed: Observed, members: Sequence[Member], restart: Restart, reason: Reason, why: str
) -> Restart | None:
    """Return a restart with all sub-jobs that hold a share; None if there are none.

    With a quorum and another size none of them starts again. A HyperJob that goes on with another
    size has not had its turn: when it waits again it is in its old place.
    """
    verdict = observed.verdict
    if verdict is None or (restart.size and observed.hyperjob.quorum is not None):
        return restart
    again = tuple(
        Recreation(name=child.name, reason=Reason.RESIZED if restart.size else reason, why=why)
        for _, child in members
        if child.name in verdict.admitted and not (child.is_terminal or child.is_outdated)
    )
    return replace(restart, again=again, gives_back=not restart.size) if again else None
