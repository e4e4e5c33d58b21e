"""The failure policy: its action for each sub-job that failed or was lost, and what it waits for.

The first matching rule decides about a failure. With several failures the action FailHyperJob has
precedence, then a restart of the whole HyperJob.

A restart deletes the pods, and with them the exit codes of their containers; the end of a HyperJob
is final, and its progress has the last lines of its programs. The controller reads both in the
members first, unless a cluster does not answer.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from hyperjob_core.api.choices import FailurePolicyAction
from hyperjob_core.api.wire import count, timestamp
from hyperjob_engine.lifecycle.decisions import (
    End,
    Loss,
    Member,
    Recreation,
    Restart,
    loss_text,
    reachable,
    reason_of_loss,
    restarts_spent,
    with_all,
)
from hyperjob_engine.lifecycle.finished import trainers
from hyperjob_engine.lifecycle.records import failure_of
from hyperjob_engine.model.observed import FailurePolicy, FailureRule, Job, Observed, Ownership
from hyperjob_engine.model.planned import FailedJob
from hyperjob_engine.model.subjobs import Child
from hyperjob_engine.reasons.pods import container_text, follows
from hyperjob_engine.reasons.reason import Reason

LINES_TIME_LIMIT: Final = timedelta(seconds=10)
"""How long an end waits for the last lines of programs that are known to report."""
CAUSE_TIME_LIMIT: Final = timedelta(seconds=5)
"""How long a decision waits for an answer, and for a failure that is no result of another one."""
_ASKED: Final = 4
_SIBLINGS: Final = 16
_LAST: Final = "~"  # sorts after every time


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The sub-jobs whose failed pods are read before a decision, and for how long it waits."""

    jobs: tuple[FailedJob, ...]
    wait: timedelta


def unexplained(observed: Observed, members: Sequence[Member]) -> Asking | None:
    """Return the sub-jobs whose failures are read before a decision; None if a cause is known.

    Those that failed first are read, further ones while each failure follows from another one, such
    as a lost connection to a peer. Then a pod that has not ended yet may have the cause, of a
    failed sub-job or of one whose vcjob still runs.
    """
    causes = observed.causes
    if causes is None:
        return None
    failed = _failed(observed, members)
    asked: list[FailedJob] = []
    for start in range(0, len(failed), _ASKED):
        asked += failed[start : start + _ASKED]
        if any(job.uid not in causes for job in asked):
            return Asking(jobs=tuple(asked), wait=CAUSE_TIME_LIMIT)
        if not all((cause := causes[job.uid]) is not None and follows(cause) for job in asked):
            return None
    running = _running(observed, members)
    ends = [job for job in asked if observed.pods_left.get(job.name)]
    if not asked or not (running or ends):
        return None
    asked_at = min(observed.asked.get(job.uid, observed.now) for job in asked)
    wait = CAUSE_TIME_LIMIT - (observed.now - asked_at)
    return Asking(jobs=(*asked, *running), wait=wait) if wait > timedelta() else None


def _failed(observed: Observed, members: Sequence[Member]) -> list[FailedJob]:
    """Return the failed sub-jobs without a recorded cause, the earliest first."""
    ready = reachable(observed)
    failed = [
        (report.last_transition or _LAST, _failed_job(child, job, where))
        for _, child in members
        if (job := child.job) is not None
        and (report := child.report) is not None
        and report.phase.is_failed
        and (where := child.cluster) in ready
        and (child.record is None or child.record.failure is None)
    ]
    return [job for _, job in sorted(failed, key=lambda each: each[0])]


def _running(observed: Observed, members: Sequence[Member]) -> list[FailedJob]:
    """Return the first sub-jobs that have not ended."""
    ready = reachable(observed)
    return [
        _failed_job(child, job, child.cluster)
        for _, child in members
        if (job := child.job) is not None
        and job.ownership is Ownership.OURS
        and child.report is not None
        and not child.is_terminal
        and child.cluster in ready
    ][:_SIBLINGS]


def _failed_job(child: Child, job: Job, cluster: str) -> FailedJob:
    return FailedJob(name=child.name, uid=job.uid, cluster=cluster)


def unread(observed: Observed, members: Sequence[Member]) -> timedelta | None:
    """Return for how long the end of a HyperJob may wait for last lines; None if all are read."""
    waits = [
        LINES_TIME_LIMIT - (observed.now - (training.ends or report.since))
        for _, child in members
        if (report := child.report) is not None
        and report.since is not None
        and report.phase.is_terminal
        and (training := observed.trainings.get(child.name)) is not None
        and training.attempt == child.attempt
        and not training.ended
    ]
    # The clock of the member may be ahead: the wait has a limit of its own.
    longest = min(max(waits, default=timedelta()), LINES_TIME_LIMIT)
    return longest if longest > timedelta() else None


_UNMATCHED: Final = FailureRule(action=FailurePolicyAction.RESTART_HYPERJOB)
_ALONE: Final = FailureRule(action=FailurePolicyAction.RESTART_JOB)
_LOST: Final = FailureRule(action=FailurePolicyAction.RESTART_JOB_AND_IGNORE_MAX_RESTARTS)
"""The rule for a loss with a quorum or without a policy: no program has failed."""
_SHRINKS: Final = FailureRule(action=FailurePolicyAction.RESTART_HYPERJOB_AND_IGNORE_MAX_RESTARTS)
"""The rule for the loss of a cluster with minReplicas: the others go on as a smaller world."""
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
    """One sub-job that failed, or that has a `loss`: its cluster or an object of it is gone.

    `why` says which sub-job it is, on which cluster and how it failed. `follows`: the failure of
    another sub-job is known to have caused this one.
    """

    member: Member
    at: datetime
    reason: Reason
    why: str
    follows: bool = False
    loss: Loss | None = None


class MatchedFailure(NamedTuple):
    """A failure with the rule that decides about it; `where` is that rule's field of the spec."""

    failure: Failure
    rule: FailureRule
    where: str

    @property
    def is_free(self) -> bool:
        """Return whether its restart costs none of `maxRestarts`."""
        return self.rule.action in _FREE

    @property
    def group(self) -> str:
        """Return the replicatedJob of the sub-job."""
        return self.failure.member[0].group.name


def judge(
    observed: Observed, members: Sequence[Member], losses: Mapping[str, Loss]
) -> Restart | End | None:
    """Return the decision of the failure policy; None without a failure or without a policy.

    Without a policy the sub-jobs that lack an object are recreated too, and those of lost clusters
    with a quorum or with minReplicas. With minReplicas and one world all are restarted, at no cost.

    The order decides: a rule FailHyperJob comes before all others, a restart of the whole HyperJob
    before restarts of single sub-jobs. A restart of the whole costs one of `maxRestarts`, whatever
    the number of failures; an action of `_FREE` costs none. With a quorum, failures without a
    restart left are dropped while the others can train on.
    """
    policy, quorum = observed.hyperjob.failure_policy, observed.hyperjob.quorum
    if policy is None and quorum is None and not losses:
        return None
    failures = _failures(observed, members, losses)
    alone = policy is None or quorum is not None
    # All sub-jobs start again after the loss of a cluster, if need be fewer of them.
    shrinks = observed.hyperjob.elastic is not None and quorum is None
    if policy is None:
        policy, goes_on = FailurePolicy(), shrinks or quorum is not None
        losses_alone = [(each, each.loss) for each in failures if each.loss is not None]
        failures = [each for each, loss in losses_alone if goes_on or loss.missing is not None]
    if not failures:
        return None
    matched = [_match(policy, failure, alone=alone, shrinks=shrinks) for failure in failures]
    for each in matched:
        if each.rule.action is FailurePolicyAction.FAIL_HYPERJOB:
            why = f"{each.failure.why}; {each.where} fails the HyperJob"
            return End(completed=False, reason=Reason.FAILURE_POLICY, why=why)
    left = max(0, policy.max_restarts - count(observed.hyperjob.status.get("restarts")))
    whole = next((each for each in matched if each.rule.action in _WHOLE), None)
    if quorum is not None and whole is None:
        groups = trainers(observed.hyperjob)
        spare = sum(sub_job.group.name in groups for sub_job, _ in members) - quorum
        matched = _affordable(matched, left=left, spare=spare, groups=groups)
    if not matched:
        return None
    costly = [each for each in ([whole] if whole else matched) if not each.is_free]
    if len(costly) > left:
        return restarts_spent(costly[0].failure.why, policy.max_restarts)
    again = [_again(each) for each in matched]
    if whole is not None:
        again = _all_again(again, members, with_all(whole.failure.why))
    return Restart(again=tuple(again), spent=len(costly))


def _failures(
    observed: Observed, members: Sequence[Member], losses: Mapping[str, Loss]
) -> list[Failure]:
    """Return the failures of the present attempts: causes first, and the earliest of them."""
    found = [failure for member in members for failure in _failure(observed, member, losses)]
    return sorted(found, key=lambda each: (each.follows, each.at, each.member[1].name))


def _all_again(
    failed: Sequence[Recreation], members: Sequence[Member], why: str
) -> list[Recreation]:
    """Return the recreations of all sub-jobs, those of the `failed` ones as they are."""
    known = {each.name: each for each in failed}
    return [
        known.get(child.name)
        or Recreation(name=child.name, reason=Reason.RESTARTED_WITH_ALL, why=why, delayed=True)
        for _, child in members
    ]


def _affordable(
    matched: Sequence[MatchedFailure], *, left: int, spare: int, groups: Collection[str]
) -> list[MatchedFailure]:
    """Return the failures with a restart left, if the quorum can spare the others; else all.

    `left` restarts are left, for the first failures. `spare` sub-jobs of `groups`, which train, may
    be missing.
    """
    too_many = [each for each in matched if not each.is_free][left:]
    if len(too_many) > spare or any(each.group not in groups for each in too_many):
        return list(matched)
    return [each for each in matched if each not in too_many]


def _again(matched: MatchedFailure) -> Recreation:
    failure, rule, _ = matched
    child = failure.member[1]
    moves = rule.action is FailurePolicyAction.MIGRATE_JOB
    return Recreation(
        name=child.name,
        reason=failure.reason,
        why=failure.why,
        leave=(child.cluster,) if moves and child.cluster else (),
        delayed=rule is not _LOST,
    )


def _failure(observed: Observed, member: Member, losses: Mapping[str, Loss]) -> Iterator[Failure]:
    """Yield the failure of a sub-job: its own failed end, else the loss of its cluster.

    A failed end whose time nothing reports counts as the latest one.
    """
    child = member[1]
    if child.phase.is_failed:
        report, record = child.report, child.record
        at = report.since if report is not None else None
        if at is None and record is not None:
            at = timestamp(record.last_transition_time)
        words = report.message or report.reason if report is not None else ""
        if not words and record is not None:
            words = record.message
        container = failure_of(observed, child)
        if container is not None:
            words = container_text(container)
        where = f" on {child.cluster}" if child.cluster else ""
        yield Failure(
            member=member,
            at=at or datetime.max.replace(tzinfo=UTC),
            reason=Reason.JOB_FAILED,
            why=f"{child.name} is {child.phase}{where}" + (f": {words}" if words else ""),
            follows=container is not None and follows(container),
        )
        return
    loss = losses.get(child.name)
    if loss is not None and loss.is_lost:
        why, reason = f"{child.name} is lost: {loss_text(loss)}", reason_of_loss(loss)
        yield Failure(member=member, at=loss.at, reason=reason, why=why, loss=loss)


def _match(
    policy: FailurePolicy, failure: Failure, *, alone: bool, shrinks: bool
) -> MatchedFailure:
    """Return a failure with the first rule that matches; `alone`: without one the others go on."""
    for index, rule in enumerate(policy.rules):
        if _matches(rule, failure):
            return MatchedFailure(failure, rule, f"failurePolicy.rules[{index}]")
    if shrinks and failure.reason is Reason.CLUSTER_LOST:
        return MatchedFailure(failure, _SHRINKS, "minReplicas")
    if not alone:
        return MatchedFailure(failure, _UNMATCHED, "failurePolicy")
    return MatchedFailure(failure, _ALONE if failure.loss is None else _LOST, "quorum")


def _matches(rule: FailureRule, failure: Failure) -> bool:
    if rule.targets and failure.member[0].group.name not in rule.targets:
        return False
    if not rule.on_job_phases and not rule.on_cluster_lost:
        return True
    if failure.loss is not None:
        return rule.on_cluster_lost
    return failure.member[1].phase in rule.on_job_phases
