"""Order the causes and choose the answer. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hyperjob.client.reading import Reading
from hyperjob.client.why import dispatcher, life, pods, waiting
from hyperjob.client.why.evidence import Cause, Evidence, Explanation, Outcome
from hyperjob_core.api.phases import Phase
from hyperjob_core.kube.errors import Forbidden, KubeError

_RIGHTS: Final = "docs/reference/cli.md#rights"

Rule = Callable[[Evidence], Iterator[Cause]]

_ALWAYS: Final[Sequence[Rule]] = (life.deleted, life.unobserved, waiting.failed_at)
_ENDED: Final[Sequence[Rule]] = (life.failed, life.asked)
_RUNNING: Final[Sequence[Rule]] = (
    life.failed,
    life.stalled,
    waiting.lost,
    waiting.karmada,
    pods.troubled,
    life.asked,
)
_ON_THE_WAY: Final[Sequence[Rule]] = (
    life.suspended,
    waiting.invalid,
    life.failed,
    waiting.lost,
    waiting.karmada,
    waiting.queued,
    dispatcher.passed_over,
    waiting.no_room,
    waiting.held,
    pods.troubled,
    life.asked,
)


def explain(evidence: Evidence) -> Explanation:
    """Return the explanation of a HyperJob's state."""
    summary = evidence.summary
    rules = [*_ALWAYS, *_rules(summary.phase)]
    causes = _distinct(cause for rule in rules for cause in rule(evidence))
    if not summary.has_ended:
        known = {cause.reason for cause in causes}
        causes += [
            cause for cause in waiting.message_of_status(evidence) if cause.reason not in known
        ]
    if not causes and summary.phase not in (Phase.RUNNING, Phase.COMPLETED):
        causes = [_status_message(evidence)]
    headline = _headline(evidence, causes)
    if not summary.has_ended:
        causes += life.made_way(evidence)
        causes += life.failed_before(evidence)
    # A cause that needs a person's action comes first: the other causes may end by themselves.
    causes.sort(key=lambda cause: not cause.needs_help)
    return Explanation(
        summary=summary,
        outcome=_outcome(evidence, causes),
        headline=headline,
        causes=causes,
        unseen=_unseen(evidence),
        admission=_awaited_admission(evidence),
    )


def _awaited_admission(evidence: Evidence) -> str:
    """Return the queue admission for a HyperJob that has not started, else an empty text."""
    leader = evidence.leader
    waits = evidence.summary.phase in (Phase.PENDING, Phase.QUEUED)
    return leader.admission if leader is not None and waits else ""


def _rules(phase: str) -> Sequence[Rule]:
    match phase:
        case Phase.COMPLETED | Phase.FAILED:
            return _ENDED
        case Phase.RUNNING:
            return _RUNNING
        case _:
            return _ON_THE_WAY


def _status_message(evidence: Evidence) -> Cause:
    """Return the status message as the cause, where no rule has found another."""
    summary = evidence.summary
    return Cause(
        reason=summary.reason or summary.phase,
        message=summary.message or f"it is {summary.phase}",
        next=f"kubectl hyperjob describe {summary.name} -n {summary.namespace}",
    )


def _outcome(evidence: Evidence, causes: Sequence[Cause]) -> Outcome:
    if any(cause.needs_help for cause in causes) or evidence.summary.phase == Phase.FAILED:
        return Outcome.NEEDS_HELP
    summary = evidence.summary
    settled = summary.phase in (Phase.RUNNING, Phase.COMPLETED) and summary.is_current
    return Outcome.FINE if settled and not summary.deleting else Outcome.WAITS


def _headline(evidence: Evidence, causes: Sequence[Cause]) -> str:
    """Return the state of the HyperJob, with the status message if there is no cause."""
    summary = evidence.summary
    if summary.deleting:
        return "is being deleted"
    if not summary.has_status:
        return "has no status yet"
    text = f": {summary.message}" if summary.message and not causes else ""
    return f"is {summary.phase}{text}"


def _unseen(evidence: Evidence) -> list[str]:
    """Return the resources that could not be read: they may have the real cause."""
    readings: dict[str, Reading] = {
        "vcjobs": evidence.vcjobs,
        "resourcebindings": evidence.bindings,
        "queues": evidence.queues,
        "clusters": evidence.clusters,
        "priorityclasses": evidence.priority_classes,
        "events": evidence.events,
        "lease": evidence.lease,
        **{f"pods of {name}": error for name, error in evidence.pod_errors.items()},
    }
    errors = {
        name: reading
        for name, reading in readings.items()
        if isinstance(reading, KubeError) and reading.http_code != 404
    }
    forbidden = [name for name, error in errors.items() if isinstance(error, Forbidden)]
    if len(forbidden) < 2:
        return [f"{name}: {error.message}" for name, error in errors.items()]
    others = [f"{name}: {errors[name].message}" for name in errors if name not in forbidden]
    return [f"{', '.join(forbidden)}: you have no right to read them (see {_RIGHTS})", *others]


def _distinct(causes: Iterator[Cause]) -> list[Cause]:
    return list(dict.fromkeys(causes))
