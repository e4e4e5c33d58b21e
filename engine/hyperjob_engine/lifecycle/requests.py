"""Restart and move requests by annotation, "<token> [sub-job ...]"; each token is handled once.

The status records the token together with the decision. It records the token of a refused request
too, which therefore takes no effect later.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from hyperjob_core.api.names import MAX_TOKEN, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.wire import at, string
from hyperjob_engine.lifecycle.decisions import Member, Recreation, Restart
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.reasons.outcomes import RefusedRequest, Requested, RequestProblem
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.reasons.shortage import Shortage


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswer:
    """The answer to new requests: the restart that they cause, and the refused ones."""

    restart: Restart
    refused: tuple[RefusedRequest, ...] = ()


@dataclass(slots=True)
class _Draft:
    no_target: Callable[[str], Sequence[Shortage]] = lambda _name: ()
    again: dict[str, Recreation] = field(default_factory=dict)
    handled: dict[str, str] = field(default_factory=dict)
    refused: list[RefusedRequest] = field(default_factory=list)


def answer(
    hyperjob: HyperJob, members: Sequence[Member], *, no_target: Callable[[str], Sequence[Shortage]]
) -> RequestAnswer | None:
    """Return the answer to new requests; None if there is none.

    `no_target` returns what the other clusters lack for the sub-job of a name; empty if one of them
    has room.
    """
    draft = _Draft(no_target)
    for kind, annotation in (("restart", RESTART_REQUEST), ("migrate", MIGRATE_REQUEST)):
        words = _new_request(hyperjob, kind, annotation)
        if words:
            draft.handled[kind] = words[0]
            _take(draft, kind, words, hyperjob, members)
    if not draft.handled:
        return None
    restart = Restart(again=tuple(draft.again.values()), handled=draft.handled)
    return RequestAnswer(restart=restart, refused=tuple(draft.refused))


def refuse_after_end(hyperjob: HyperJob) -> RequestAnswer | None:
    """Return the refusal of requests that come after the end of the HyperJob."""
    draft = _Draft()
    for kind, annotation in (("restart", RESTART_REQUEST), ("migrate", MIGRATE_REQUEST)):
        words = _new_request(hyperjob, kind, annotation)
        if words:
            draft.handled[kind] = words[0]
            draft.refused.append(
                RefusedRequest(kind=kind, token=words[0], problem=RequestProblem.HAS_ENDED)
            )
    if not draft.handled:
        return None
    return RequestAnswer(restart=Restart(handled=draft.handled), refused=tuple(draft.refused))


def _new_request(hyperjob: HyperJob, kind: str, annotation: str) -> list[str]:
    words = hyperjob.annotations.get(annotation, "").split()
    # The webhook refuses such a token; without the webhook it must not reach the status.
    if words and len(words[0]) > MAX_TOKEN:
        return []
    handled = string(at(hyperjob.status, "requests", kind))
    return [] if not words or words[0] == handled else words


def _take(
    draft: _Draft, kind: str, words: Sequence[str], hyperjob: HyperJob, members: Sequence[Member]
) -> None:
    """Take one request into the draft: its sub-jobs start again, or it is refused with a reason.

    Without names a restart means all sub-jobs. A name that cannot be served is refused alone; the
    others are served.
    """
    if not hyperjob.records:
        return  # no sub-job exists yet: the annotation came with a copied manifest
    token, names = words[0], list(dict.fromkeys(words[1:]))
    refuse = partial(RefusedRequest, kind=kind, token=token)
    known = {child.name: child for _, child in members}
    if unknown := [name for name in names if name not in known]:
        draft.refused.append(refuse(problem=RequestProblem.UNKNOWN_SUB_JOB, names=unknown))
    if kind == "migrate" and not names:
        draft.refused.append(refuse(problem=RequestProblem.NO_SUB_JOB))
        return
    for name in names or known:
        child = known.get(name)
        if child is None:
            continue
        if kind == "migrate" and child.is_terminal and not child.phase.is_failed:
            draft.refused.append(refuse(problem=RequestProblem.COMPLETED, names=[name]))
            continue
        if kind == "migrate" and child.cluster and (lacking := draft.no_target(name)):
            draft.refused.append(
                refuse(
                    problem=RequestProblem.NO_OTHER_CLUSTER,
                    names=[name],
                    cluster=child.cluster,
                    shortages=lacking,
                )
            )
            continue
        draft.again[name] = Recreation(
            name=name,
            reason=Reason.MIGRATE_REQUESTED if kind == "migrate" else Reason.RESTART_REQUESTED,
            cause=Requested(kind, token),
            leave=(child.cluster,) if kind == "migrate" and child.cluster else (),
        )
