"""Silent sub-jobs: Karmada has applied the vcjob, and reports no status, or no pods.

A recreated vcjob can be deleted together with its predecessor in the member, or stay unnoticed
there. The controller then has Karmada apply the vcjob again, after growing waits, and at last
recreates it if it was never known to run. These steps cost no restart. If many sub-jobs of one
HyperJob are silent, Karmada or the cluster is slow, and the controller only waits.

Karmada counts the Works of a ResourceBinding when one of them changes. A recreated vcjob may get
its Work a moment before its ResourceBinding: Karmada then counts none, and counts again only after
a change of the vcjob, which the same step makes.

Volcano can lose a vcjob, too, if another one of the same name was deleted shortly before: the vcjob
then stays Pending forever, without pods, or with pods that Volcano does not count. Its status looks
like that of a vcjob that waits for room or images in its member. The controller waits longer for
it, the longer the more such vcjobs there are, and then recreates it. Any other Pending vcjob just
waits.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, assert_never

from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import Silence
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.lifecycle.decisions import Member
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import DeletionCause

TIMES: Final = 4
"""After so many steps the controller stops, and the message asks a person to look."""
FEW: Final = 3
"""With more silent sub-jobs of a HyperJob the controller assumes a delay and waits."""
UNCOUNTED: Final = timedelta(seconds=10)
"""How long a ResourceBinding without a counted Work may stay so before the first step."""
IMAGES: Final = 3
"""The factor of the wait for a vcjob with pods: they may wait for images."""


class SilenceStep(enum.StrEnum):
    """What the controller does about a cluster that does not report."""

    WAIT = "Wait"
    ASK = "Ask"
    MAKE_AGAIN = "MakeAgain"


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceCheck:
    """The next step about a silent sub-job, which report it lacks, and the message of its status.

    The message is empty before the silence timeout.
    """

    step: SilenceStep = SilenceStep.WAIT
    record: Silence | None = None
    lacks: DeletionCause | None = None
    message: str = ""
    wait: timedelta | None = None


_HEARD: Final = SilenceCheck()


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentCounts:
    """How many sub-jobs have no report, and no progress, for longer than the silence timeout."""

    silent: int = 0
    unmoved: int = 0


_NONE: Final = SilentCounts()


def count_silent(observed: Observed, members: Sequence[Member]) -> SilentCounts:
    """Count the sub-jobs that are silent for longer than the silence timeout."""
    limit = observed.now - observed.silence_timeout
    found = [
        child.report is None
        for _, child in members
        if (since := _silent_since(observed, child)) is not None and since <= limit
    ]
    return SilentCounts(silent=sum(found), unmoved=len(found) - sum(found))


def check_silence(
    observed: Observed, child: Child, *, counts: SilentCounts = _NONE
) -> SilenceCheck:
    """Return the next step for a silent sub-job; `counts` are those of all silent ones.

    In order: the time without a sign is not over; the wait after the last step is not over; too
    many are silent; `TIMES` steps were in vain; else the next step, with a wait twice as long.
    """
    if child.report is not None and not _may_be_lost(observed, child):
        return _HEARD
    record = child.record.silence if child.record is not None else None
    since = _silent_since(observed, child)
    if since is None:
        return _HEARD if record is None else SilenceCheck(record=record)
    uncounted = _uncounted(child)
    now, due = observed.now, since + (UNCOUNTED if uncounted else observed.silence_timeout)
    if child.report is not None:
        patience = IMAGES if child.report.pods.total else 1
        due += observed.silence_timeout * max(patience, counts.unmoved / FEW)
    if now < due:
        return SilenceCheck(record=record, wait=due - now)
    if record is not None and record.retry_time is not None and now < record.retry_time:
        wait = record.retry_time - now
        step = _step(child, record.times)
        return SilenceCheck(record=record, message=_message(child, since, step), wait=wait)
    times = record.times if record is not None else 0
    if counts.silent > FEW and child.report is None and not uncounted:
        # Each report of a cluster triggers a pass, which decides again.
        text = _message(child, since, SilenceStep.WAIT)
        return SilenceCheck(record=record, message=text)
    if times >= TIMES:
        text = _message(child, since, _step(child, times))
        return SilenceCheck(record=record, message=f"{text}; {_advice(observed, child)}")
    times += 1
    step, wait = _step(child, times), observed.silence_timeout * 2**times
    return SilenceCheck(
        step=step,
        record=Silence(times=times, retry_time=now.replace(microsecond=0) + wait),
        lacks=_lacks(child),
        message=_message(child, since, step),
        wait=wait,
    )


def _silent_since(observed: Observed, child: Child) -> datetime | None:
    """Return since when a sub-job is silent; None if it is not."""
    binding = child.binding
    if not child.exists or child.is_terminal or binding is None:
        return None
    if child.report is not None and not _may_be_lost(observed, child):
        return None
    if binding.suspended:
        return None
    reachable = any(
        cluster.name == binding.cluster and cluster.not_ready_since is None
        for cluster in observed.clusters
    )
    since = binding.applied_since if binding.applied else None
    if _uncounted(child):
        since = binding.workless_since
    return since if reachable else None


def _uncounted(child: Child) -> bool:
    """Return whether Karmada says that a sub-job without any report has no Work."""
    return child.report is None and child.binding is not None and bool(child.binding.workless_since)


def _may_be_lost(observed: Observed, child: Child) -> bool:
    """Return whether Volcano may have lost a vcjob: one of its name was deleted just before it."""
    moved = child.report is None or not child.report.unmoved
    return not moved and child.name in observed.followers


def _step(child: Child, times: int) -> SilenceStep:
    """Return the next step after `times` steps; a sub-job that has run is never recreated."""
    again = child.report is not None or (times == TIMES and child.phase is JobPhase.UNKNOWN)
    return SilenceStep.MAKE_AGAIN if again else SilenceStep.ASK


def _lacks(child: Child) -> DeletionCause:
    """Return which report of a silent sub-job is missing from its cluster."""
    if child.report is None:
        return DeletionCause.NOTHING_REPORTED
    return DeletionCause.NO_PROGRESS if child.report.pods.total else DeletionCause.NO_PODS


def _message(child: Child, since: datetime, step: SilenceStep) -> str:
    """Return which report of a cluster is missing, and what the controller does about that.

    With the step WAIT the clusters of many other sub-jobs do not report either.
    """
    what = "nothing"
    if child.report is not None:
        what = "no progress" if child.report.pods.total else "no pods"
    text = (
        f"cluster {child.cluster} has reported {what} since Karmada applied the Job there at"
        f" {rfc3339(since)}"
    )
    if _uncounted(child):
        text = (
            f"Karmada has counted no Work of {child.name} for {child.cluster} since"
            f" {rfc3339(since)}"
        )
    match step:
        case SilenceStep.WAIT:
            return f"{text}, like the clusters of many other sub-jobs"
        case SilenceStep.MAKE_AGAIN:
            return f"{text}; the controller recreates it"
        case SilenceStep.ASK:
            return f"{text}; the controller has Karmada apply it again"
        case _:
            assert_never(step)


def _advice(observed: Observed, child: Child) -> str:
    """Return what a person does about a cluster for which the controller's steps did not help."""
    tried = f"this did not help {TIMES} times"
    if child.report is not None:
        return f"{tried}: its PodGroup in the cluster has the reason"
    return (
        f"{tried}: see in the cluster whether Job {child.name} is there and Volcano's controller"
        f" runs, then: kubectl hyperjob restart {observed.hyperjob.name} --job {child.name}"
    )
