"""Sub-jobs that Karmada says are applied, and of which their cluster reports nothing, or no pods.

A message can be lost on the way: a vcjob that is made again can go with its predecessor, or never
be noticed in its member. Karmada is asked to apply it again, less often each time; in the end it is
made again, if it was never known to run. No attempt is spent on any of that. Where many sub-jobs of
one HyperJob are silent nothing was lost: Karmada or the cluster is behind, and is left alone.

Volcano can lose a vcjob too, when one of the same name was deleted shortly before: it then stays
Pending for ever, without pods or with pods that run unseen. Such a namesake cannot be told from one
that waits for room or images in its member, so it is given longer, the longer the more of them
there are, and then made again. Any other vcjob that is Pending only waits.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controller.lifecycle.verdict import Member
from controller.model.child import Child
from controller.model.observed import Observed, Silence
from controller.model.wire import rfc3339
from hyperjob.api.phases import JobPhase

TIMES: Final = 4
"""After so many steps it is for a person to look."""
FEW: Final = 3
"""More silent sub-jobs of a HyperJob than this are a delay, not a loss."""
IMAGES: Final = 3
"""How much longer a namesake is given that has pods: they may wait for images."""


class Step(enum.StrEnum):
    """What is done about a silence now."""

    WAIT = "Wait"
    ASK = "Ask"
    MAKE_AGAIN = "MakeAgain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hush:
    """How a silence goes on; `message` is empty while it is no longer than usual."""

    step: Step = Step.WAIT
    record: Silence | None = None
    message: str = ""
    wait: timedelta | None = None
    why: str = ""


_HEARD: Final = Hush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Of how many sub-jobs nothing is reported for longer than usual, of how many no progress."""

    silent: int = 0
    unmoved: int = 0


_NONE: Final = Quiet()


def count_quiet(observed: Observed, members: Sequence[Member]) -> Quiet:
    """Count the sub-jobs that are quiet for longer than usual."""
    limit = observed.now - observed.silence_timeout
    found = [
        child.report is None
        for _, child in members
        if (since := _silent_since(observed, child)) is not None and since <= limit
    ]
    return Quiet(silent=sum(found), unmoved=len(found) - sum(found))


def listen(observed: Observed, child: Child, *, quiet: Quiet = _NONE) -> Hush:
    """Judge the silence about a sub-job, one of so many; what is reported of it ends it."""
    if child.report is not None and not _may_be_lost(observed, child):
        return _HEARD
    record = child.record.silence if child.record is not None else None
    since = _silent_since(observed, child)
    if since is None:
        return _HEARD if record is None else Hush(record=record)
    now, due = observed.now, since + observed.silence_timeout
    if child.report is not None:
        patience = IMAGES if child.report.pods.total else 1
        due += observed.silence_timeout * max(patience, quiet.unmoved / FEW)
    if now < due:
        return Hush(record=record, wait=due - now)
    if record is not None and record.retry_time is not None and now < record.retry_time:
        wait = record.retry_time - now
        return Hush(record=record, message=_describe(child, since, record.times), wait=wait)
    times = record.times if record is not None else 0
    if (
        quiet.silent > FEW and child.report is None
    ):  # each report makes a pass, so this is judged anew
        return Hush(record=record, message=f"{_silence(child, since)}, as of many others")
    if times >= TIMES:
        text = f"{_describe(child, since, times)}; {_advice(observed, child)}"
        return Hush(record=record, message=text)
    times += 1
    wait = observed.silence_timeout * 2**times
    return Hush(
        step=Step.MAKE_AGAIN if _is_last_resort(child, times) else Step.ASK,
        record=Silence(times=times, retry_time=now.replace(microsecond=0) + wait),
        message=_describe(child, since, times),
        wait=wait,
        why=f"whose cluster reports {_what(child)} of it",
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
    """Tell whether Volcano may have lost a vcjob, as it may where one of its name had just gone."""
    moved = child.report is None or not child.report.unmoved
    return not moved and child.name in observed.followers


def _is_last_resort(child: Child, times: int) -> bool:
    """Tell whether the step is to make the sub-job again; it must never have run."""
    return child.report is not None or (times == TIMES and child.phase is JobPhase.UNKNOWN)


def _describe(child: Child, since: datetime, times: int) -> str:
    done = "it is made again" if _is_last_resort(child, times) else "Karmada is asked again"
    return f"{_silence(child, since)}; {done}"


def _silence(child: Child, since: datetime) -> str:
    where = f"cluster {child.cluster} since it was applied there at {rfc3339(since)}"
    return f"{_what(child)} reported by {where}"


def _what(child: Child) -> str:
    if child.report is None:
        return "nothing"
    return "no progress" if child.report.pods.total else "no pods"


def _advice(observed: Observed, child: Child) -> str:
    if child.report is not None:
        return (
            f"this did not help {TIMES} times: its PodGroup in the cluster says what it waits for"
        )
    return (
        f"this did not help {TIMES} times: see in the cluster whether Job {child.name} is there and"
        f" Volcano's controller runs, then: kubectl hyperjob restart {observed.hyperjob.name}"
        f" --job {child.name}"
    )
