"""The failure policy: its action for each sub-job that failed or was lost.

The first matching rule decides about a failure. With several failures the action FailHyperJob has
precedence, then a restart of the whole HyperJob.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hyperjob_core.api.choices import FailurePolicyAction
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import count, timestamp
from hyperjob_engine.lifecycle.decisions import End, Member, Recreation, Restart
from hyperjob_engine.lifecycle.history import failure_of
from hyperjob_engine.lifecycle.loss import reason_of_loss
from hyperjob_engine.lifecycle.quorum import trainers
from hyperjob_engine.model.observed import FailurePolicy, FailureRule, Observed
from hyperjob_engine.reasons.failure import ContainerFailure
from hyperjob_engine.reasons.outcomes import (
    Failed,
    FailedByRule,
    FailureCause,
    Loss,
    Lost,
    RestartsSpent,
    WithAll,
)
from hyperjob_engine.reasons.reason import Reason

_UNMATCHED: Final = FailureRule(action=FailurePolicyAction.RESTART_HYPERJOB)
_ALONE: Final = FailureRule(action=FailurePolicyAction.RESTART_JOB)
_LOST: Final = FailureRule(action=FailurePolicyAction.RESTART_JOB_AND_IGNORE_MAX_RESTARTS)
"""The rule for a loss with a quorum or without a policy: no program has failed."""
_FREE: Final = frozenset(
    {
        FailurePolicyAction.RESTART_HYPERJOB_AND_IGNORE_MAX_RESTARTS,
        FailurePolicyAction.RESTART_JOB_AND_IGNORE_MAX_RESTARTS,
    }
)
_WHOLE: Final = frozenset(
    {
        FailurePolicyAction.RESTART_HYPERJOB,
        FailurePolicyAction.RESTART_HYPERJOB_AND_IGNORE_MAX_RESTARTS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One sub-job that failed or was lost; `phase` None means that its cluster was lost."""

    member: Member
    phase: JobPhase | None
    at: datetime
    cause: FailureCause


MatchedFailure = tuple[Failure, FailureRule, str]


def failures_of(
    observed: Observed, members: Sequence[Member], losses: Mapping[str, Loss]
) -> list[Failure]:
    """Return the failures of the present attempts: causes first, and the earliest of them."""
    found = [failure for member in members for failure in _failure(observed, member, losses)]
    return sorted(found, key=lambda each: (_follows(each), each.at, each.member[1].name))


def judge(
    observed: Observed, members: Sequence[Member], losses: Mapping[str, Loss]
) -> Restart | End | None:
    """Return the decision of the failure policy; None without a failure or without a policy.

    Without a policy the sub-jobs that lack an object are recreated too, and with a quorum those of
    lost clusters.

    The order decides: a rule FailHyperJob comes before all others, a restart of the whole HyperJob
    before restarts of single sub-jobs. A restart of the whole costs one of `maxRestarts`, whatever
    the number of failures; an action of `_FREE` costs none. With a quorum, failures without a
    restart left are dropped while the others can train on.
    """
    policy, quorum = observed.hyperjob.failure_policy, observed.hyperjob.quorum
    if policy is None and quorum is None and not losses:
        return None
    failures = failures_of(observed, members, losses)
    alone = policy is None or quorum is not None
    if policy is None:
        policy = FailurePolicy()
        failures = [each for each in failures if _is_recreated(each, quorum)]
    if not failures:
        return None
    answers = [(failure, *_answer(policy, failure, alone=alone)) for failure in failures]
    for failure, rule, where in answers:
        if rule.action is FailurePolicyAction.FAIL_HYPERJOB:
            cause = FailedByRule(failure.cause, where)
            return End(completed=False, reason=Reason.FAILURE_POLICY, cause=cause)
    left = max(0, policy.max_restarts - count(observed.hyperjob.status.get("restarts")))
    whole = [answer for answer in answers if answer[1].action in _WHOLE]
    if quorum is not None and not whole:
        groups = trainers(observed.hyperjob)
        spare = sum(sub_job.group.name in groups for sub_job, _ in members) - quorum
        answers = _affordable(answers, left=left, spare=spare, groups=groups)
        if not answers:
            return None
    chosen = whole[:1] or answers
    costs = sum(rule.action not in _FREE for _, rule, _ in chosen)
    if costs > left:
        failure = next(failure for failure, rule, _ in chosen if rule.action not in _FREE)
        spent = RestartsSpent(failure.cause, policy.max_restarts)
        return End(completed=False, reason=Reason.MAX_RESTARTS, cause=spent)
    if whole:
        with_all = WithAll(whole[0][0].cause)
        answered = {failure.member[1].name: (failure, rule) for failure, rule, _ in answers}
        again = tuple(
            _again(*answered[child.name])
            if child.name in answered
            else Recreation(
                name=child.name, reason=Reason.RESTARTED_WITH_ALL, cause=with_all, delayed=True
            )
            for _, child in members
        )
        return Restart(again=again, spent=costs)
    return Restart(again=tuple(_again(failure, rule) for failure, rule, _ in answers), spent=costs)


def _follows(failure: Failure) -> bool:
    """Return whether the failure of another sub-job is known to have caused this one."""
    detail = failure.cause.detail if isinstance(failure.cause, Failed) else ""
    return isinstance(detail, ContainerFailure) and detail.follows


def _is_recreated(failure: Failure, quorum: int | None) -> bool:
    """Return whether a sub-job is recreated without a policy."""
    if not isinstance(failure.cause, Lost):
        return False
    return quorum is not None or failure.cause.loss.missing is not None


def _affordable(
    answers: Sequence[MatchedFailure], *, left: int, spare: int, groups: Collection[str]
) -> list[MatchedFailure]:
    """Return the failures with a restart left, if the quorum can spare the others; else all."""
    costly = [answer for answer in answers if answer[1].action not in _FREE]
    too_many = costly[left:]
    needed = any(answer[0].member[0].group.name not in groups for answer in too_many)
    if needed or len(too_many) > spare:
        return list(answers)
    return [answer for answer in answers if answer not in too_many]


def _again(failure: Failure, rule: FailureRule) -> Recreation:
    child = failure.member[1]
    moves = rule.action is FailurePolicyAction.MIGRATE_JOB
    return Recreation(
        name=child.name,
        reason=_reason(failure),
        cause=failure.cause,
        leave=(child.cluster,) if moves and child.cluster else (),
        delayed=rule is not _LOST,
    )


def _reason(failure: Failure) -> Reason:
    if isinstance(failure.cause, Failed):
        return Reason.JOB_FAILED
    return reason_of_loss(failure.cause.loss)


def _failure(observed: Observed, member: Member, losses: Mapping[str, Loss]) -> Iterator[Failure]:
    """Yield the failure of a sub-job: its own failed end, else the loss of its cluster.

    A failed end whose time nothing reports counts as the latest one.
    """
    child = member[1]
    if child.is_terminal and child.phase.is_failed:
        report, record = child.report, child.record
        at = report.since if report is not None else None
        if at is None and record is not None:
            at = timestamp(record.last_transition_time)
        words = report.message or report.reason if report is not None else ""
        detail = failure_of(observed, child) or words
        if not detail and record is not None:
            detail = record.message
        yield Failure(
            member=member,
            phase=child.phase,
            at=at or datetime.max.replace(tzinfo=UTC),
            cause=Failed(name=child.name, phase=child.phase, cluster=child.cluster, detail=detail),
        )
        return
    loss = losses.get(child.name)
    if loss is not None and loss.is_lost:
        yield Failure(member=member, phase=None, at=loss.at, cause=Lost(child.name, loss))


def _answer(policy: FailurePolicy, failure: Failure, *, alone: bool) -> tuple[FailureRule, str]:
    """Return the first rule that matches, and its index; `alone`: the others train on."""
    for index, rule in enumerate(policy.rules):
        if _matches(rule, failure):
            return rule, f"failurePolicy.rules[{index}]"
    if not alone:
        return _UNMATCHED, "failurePolicy"
    return (_LOST if failure.phase is None else _ALONE), "quorum"


def _matches(rule: FailureRule, failure: Failure) -> bool:
    if rule.targets and failure.member[0].group.name not in rule.targets:
        return False
    if not rule.on_job_phases and not rule.on_cluster_lost:
        return True
    return rule.on_cluster_lost if failure.phase is None else failure.phase in rule.on_job_phases
