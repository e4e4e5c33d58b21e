"""Order the causes and choose the answer. Pure."""

from typing import Final

from hyperjob.client.reading import Reading
from hyperjob.client.why import causes as found_by
from hyperjob.client.why.evidence import Cause, Evidence, Explanation, Outcome
from hyperjob_core.api.phases import Phase
from hyperjob_core.kube.errors import Forbidden, KubeError

_RIGHTS: Final = "docs/reference/cli.md#rights"


def explain(evidence: Evidence) -> Explanation:
    """Return the explanation of a HyperJob's state."""
    summary = evidence.summary
    causes = [*found_by.deleted(evidence), *found_by.unobserved(evidence)]
    if not summary.has_ended:
        causes += found_by.of_hyperjob(evidence)
    causes += found_by.failed(evidence)
    if not summary.has_ended:
        causes += [*found_by.in_members(evidence), *found_by.unbound(evidence)]
        known = {cause.reason for cause in causes}
        causes += [each for each in found_by.of_sub_jobs(evidence) if each.reason not in known]
    if not causes and summary.phase not in (Phase.RUNNING, Phase.COMPLETED):
        causes = [found_by.by_status(evidence)]
    headline = _headline(evidence, causes)
    if not summary.has_ended:
        causes += found_by.earlier(evidence)
    # A cause that needs a person's action comes first: the other causes may end by themselves.
    causes.sort(key=lambda cause: not cause.needs_help)
    leader, waits = evidence.leader, summary.phase in (Phase.PENDING, Phase.QUEUED)
    return Explanation(
        summary=summary,
        outcome=_outcome(evidence, causes),
        headline=headline,
        causes=list(dict.fromkeys(causes)),
        unseen=_unseen(evidence),
        admission=leader.admission if leader is not None and waits else "",
    )


def _outcome(evidence: Evidence, causes: list[Cause]) -> Outcome:
    summary = evidence.summary
    if any(cause.needs_help for cause in causes) or summary.phase == Phase.FAILED:
        return Outcome.NEEDS_HELP
    settled = summary.phase in (Phase.RUNNING, Phase.COMPLETED) and summary.is_current
    return Outcome.FINE if settled and not summary.deleting else Outcome.WAITS


def _headline(evidence: Evidence, causes: list[Cause]) -> str:
    """Return the state of the HyperJob, with its message where it runs or there is no cause."""
    summary = evidence.summary
    if summary.deleting:
        return "is being deleted"
    if not summary.has_status:
        return "has no status yet"
    says = summary.message and (not causes or summary.phase == Phase.RUNNING)
    text = f": {summary.message}" if says else ""
    return f"is {summary.phase}{text}"


def _unseen(evidence: Evidence) -> list[str]:
    """Return the resources that could not be read: they may have the real cause."""
    readings: dict[str, Reading] = {
        "vcjobs": evidence.vcjobs,
        "resourcebindings": evidence.bindings,
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
