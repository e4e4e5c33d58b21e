"""Sub-jobs that Karmada says are applied, and of which their cluster reports nothing, or no pods.

A message can be lost on the way: a vcjob that is made again can go with its predecessor, or never
be noticed in its member. Karmada is asked to apply it again, less often each time; in the end it is
made again, if it was never known to run. No attempt is spent on any of that. Where many sub-jobs of
one HyperJob are silent nothing was lost: Karmada or the cluster is behind, and is left alone.

Volcano can lose a vcjob too, when one of the same name was deleted shortly before: it then stays
Pending for ever, without pods or with pods that run unseen. The status of such a vcjob
looks like that of a vcjob that waits for room or images in its member. The controller therefore
gives it longer, the longer the more of them there are, and then makes it again. Any other vcjob
that is Pending only waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from controller.lifecycle.decisions import Member
from controller.model.child import Child
from controller.model.detail import SilenceCode, SilenceStep, Silent
from controller.model.observed import Observed, Silence
from hyperjob.api.phases import JobPhase

TIMES: Final = 4
"""After so many steps it is for a person to look."""
FEW: Final = 3
"""More silent sub-jobs of a HyperJob than this are a delay, not a loss."""
IMAGES: Final = 3
"""How much longer a namesake is given that has pods: they may wait for images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceCheck:
    """The next step about a silence; `silent` is None while it is no longer than usual."""

    step: SilenceStep = SilenceStep.WAIT
    record: Silence | None = None
    silent: Silent | None = None
    wait: timedelta | None = None


_HEARD: Final = SilenceCheck()


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentCounts:
    """The numbers of sub-jobs without a report, and without progress, for longer than usual."""

    silent: int = 0
    unmoved: int = 0


_NONE: Final = SilentCounts()


def count_silent(observed: Observed, members: Sequence[Member]) -> SilentCounts:
    """Count the sub-jobs that are silent for longer than usual."""
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
    """Return the next step for a silent sub-job, of which there are `counts`; a report ends it."""
    if child.report is not None and not _may_be_lost(observed, child):
        return _HEARD
    record = child.record.silence if child.record is not None else None
    since = _silent_since(observed, child)
    if since is None:
        return _HEARD if record is None else SilenceCheck(record=record)
    now, due = observed.now, since + observed.silence_timeout
    if child.report is not None:
        patience = IMAGES if child.report.pods.total else 1
        due += observed.silence_timeout * max(patience, counts.unmoved / FEW)
    if now < due:
        return SilenceCheck(record=record, wait=due - now)
    if record is not None and record.retry_time is not None and now < record.retry_time:
        wait = record.retry_time - now
        step = _step(child, record.times)
        return SilenceCheck(record=record, silent=_silent(observed, child, since, step), wait=wait)
    times = record.times if record is not None else 0
    if (
        counts.silent > FEW and child.report is None
    ):  # each report makes a pass, so this is judged anew
        return SilenceCheck(record=record, silent=_silent(observed, child, since, SilenceStep.WAIT))
    if times >= TIMES:
        silent = _silent(observed, child, since, _step(child, times))
        return SilenceCheck(record=record, silent=replace(silent, times=TIMES, helpless=True))
    times += 1
    step, wait = _step(child, times), observed.silence_timeout * 2**times
    return SilenceCheck(
        step=step,
        record=Silence(times=times, retry_time=now.replace(microsecond=0) + wait),
        silent=_silent(observed, child, since, step),
        wait=wait,
    )


def _silent_since(observed: Observed, child: Child) -> datetime | None:
    """Return when a sub-job was applied of which nothing is known since, or no progress."""
    binding = child.binding
    if not child.exists or child.is_terminal or binding is None:
        return None
    if child.report is not None and not _may_be_lost(observed, child):
        return None
    if binding.scheduling_suspended or binding.dispatching_suspended or not binding.applied:
        return None
    reachable = any(
        cluster.name == binding.cluster and cluster.not_ready_since is None
        for cluster in observed.clusters
    )
    return binding.applied_since if reachable else None


def _may_be_lost(observed: Observed, child: Child) -> bool:
    """Return whether Volcano may have lost a vcjob whose namesake had just gone."""
    moved = child.report is None or not child.report.unmoved
    return not moved and child.name in observed.followers


def _step(child: Child, times: int) -> SilenceStep:
    """Return the step after `times` steps: a sub-job that ran is never made again."""
    again = child.report is not None or (times == TIMES and child.phase is JobPhase.UNKNOWN)
    return SilenceStep.MAKE_AGAIN if again else SilenceStep.ASK


def _silent(observed: Observed, child: Child, since: datetime, step: SilenceStep) -> Silent:
    return Silent(
        code=_code(child),
        hyperjob=observed.hyperjob.name,
        name=child.name,
        cluster=child.cluster,
        since=since,
        step=step,
    )


def _code(child: Child) -> SilenceCode:
    if child.report is None:
        return SilenceCode.NOTHING
    return SilenceCode.NO_PROGRESS if child.report.pods.total else SilenceCode.NO_PODS
