"""Planned stops of sub-jobs that train: the step that is saved, the wait for it, and the lost work.

A planned stop is recorded before anything is deleted. Until all sub-jobs that it stops have ended,
or their grace period is over, nothing is made again: all start from the step that all have saved
by then. Pure: what the programs say comes from their logs, and may be unknown.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from controller.lifecycle.decisions import Member, Restart
from controller.model.child import Child
from controller.model.observed import Observed
from controller.model.reasons import Reason
from controller.model.training import JobTraining, known
from controller.model.wire import count, integer, mapping, objects, rfc3339, string, timestamp
from hyperjob.api.checkpoint import StopCause
from hyperjob.api.meta import Object
from hyperjob.api.phases import JobPhase
from hyperjob.kube.microtime import micro_time

ON_ITS_WAY: Final = timedelta(seconds=5)
"""How long a deletion may take from the control plane to the SIGTERM in a member."""

_CAUSES: Final[Mapping[Reason, StopCause]] = {
    Reason.CLUSTER_LOST: StopCause.CLUSTER_LOST,
    Reason.RESTART_REQUESTED: StopCause.RESTARTED,
    Reason.MIGRATE_REQUESTED: StopCause.MIGRATED,
    Reason.RECLAIMED: StopCause.RECLAIMED,
    Reason.PREEMPTED: StopCause.PREEMPTED,
}
_ALIVE: Final = frozenset({JobPhase.RUNNING, JobPhase.COMPLETING, JobPhase.RESTARTING})


def cause_of(decided: Restart) -> StopCause:
    """Return why a restart stops sub-jobs: a failure, unless all of it has another reason."""
    reasons = {again.reason for again in decided.again} - {Reason.RESTARTED_WITH_ALL}
    causes = {_CAUSES.get(reason, StopCause.FAILURE) for reason in reasons}
    return causes.pop() if len(causes) == 1 else StopCause.FAILURE


def stopped(
    observed: Observed, members: Sequence[Member], names: Collection[str], cause: StopCause
) -> Object:
    """Return the fields of the status that record a stop of the sub-jobs named."""
    said = said_of(observed)
    fields = _kept(observed, said, names, cause)
    checkpoint = observed.hyperjob.checkpoint
    running = [member for member in members if member[1].name in names and _runs(member[1])]
    if checkpoint is None or not cause.is_planned or not running:
        return fields
    grace = max(checkpoint.grace_of(sub_job.size.template) for sub_job, _ in running)
    return fields | {
        "stop": {
            "cause": str(cause),
            "since": rfc3339(observed.now),
            "until": rfc3339(observed.now + timedelta(seconds=grace + 1) + ON_ITS_WAY),
            "jobs": [child.name for _, child in running],
        }
    }


def suspending(observed: Observed, members: Sequence[Member]) -> Object | None:
    """Return the fields that record a suspension before it is carried out; None once they do."""
    hyperjob = observed.hyperjob
    if not hyperjob.suspend or hyperjob.checkpoint is None or hyperjob.stop is not None:
        return None
    names = {child.name for _, child in members if _runs(child)}
    if not names:
        return None
    return stopped(observed, members, names, StopCause.SUSPENDED)


def going_on(observed: Observed, members: Sequence[Member]) -> Object:
    """Return what the status says of stops now: the stop, what it saved, and what was lost.

    While a stop goes on, the last lines of its programs count. Once a program has reported the
    step that it resumed from, the steps between are lost.
    """
    hyperjob, said = observed.hyperjob, said_of(observed)
    fields: Object = {
        name: hyperjob.status[name]
        for name in ("checkpoint", "stop", "lostWork")
        if name in hyperjob.status
    }
    stop = hyperjob.stop
    if stop is not None:
        fields |= _kept(observed, said, stop.jobs, stop.cause)
        if is_over(observed, [child for _, child in members]):
            fields["stop"] = None
        return fields
    return fields | _settled(observed, said)


def is_over(observed: Observed, children: Iterable[Child]) -> bool:
    """Return whether all sub-jobs of the planned stop have ended, or had the time to."""
    stop = observed.hyperjob.stop
    if stop is None or observed.now >= stop.until:
        return True
    by_name = {child.name: child for child in children}
    return all(_has_ended(observed, by_name.get(name)) for name in stop.jobs)


def said_of(observed: Observed) -> dict[str, JobTraining]:
    """Return the last reports of the programs of the first replicatedJob that reports.

    The progress of the whole training is theirs, too. A sub-job that reported in an earlier
    attempt, and whose log of this one has ended without a word, does not report any more: a
    launcher such as torchrun may start the process that reports in another sub-job each time.
    """
    found: dict[str, JobTraining] = {}
    group = ""
    for name, record in observed.hyperjob.records.items():
        read, before = observed.trainings.get(name), record.training
        if read is not None and read.ended and not read.said and read.attempt != _attempt(before):
            continue
        said = known(read, before)
        if said is None or not said.said or (group and record.replicated_job != group):
            continue
        group = record.replicated_job
        found[name] = said
    return found


def _kept(
    observed: Observed,
    said: Mapping[str, JobTraining],
    names: Collection[str],
    cause: StopCause,
) -> Object:
    """Return the entry of the step that all have saved, and of how far the stopped ones came.

    A stop before the program has said a word again adds nothing to the one before. What it says
    only now, of the step that it had resumed from, settles the one before.
    """
    settled = _settled(observed, said)
    entry = {**mapping(settled.get("checkpoint", observed.hyperjob.status.get("checkpoint")))}
    saved = [each.saved_step for each in said.values() if each.saved_step is not None]
    if saved:
        entry["resumeStep"] = min(saved)
    heard = [said[name] for name in names if name in said]
    if heard and (observed.hyperjob.stop is not None or "stoppedStep" not in entry):
        furthest = max(heard, key=lambda each: (each.step, each.updated))
        kept = furthest.start_step if furthest.saved_step is None else furthest.saved_step
        entry |= {
            "stoppedStep": furthest.step,
            "stoppedTime": micro_time(furthest.updated),
            "keptStep": kept,
            "keptTime": micro_time(furthest.kept_until),
            "stopCause": str(cause),
        }
    return {**settled, "checkpoint": entry} if entry else settled


def _settled(observed: Observed, said: Mapping[str, JobTraining]) -> Object:
    """Count what the last stop cost, once a program has reported where it resumed."""
    entry = mapping(observed.hyperjob.status.get("checkpoint"))
    at, reached = timestamp(entry.get("stoppedTime")), integer(entry.get("stoppedStep"))
    if at is None or reached is None:
        return {}
    again = [each.start_step for each in said.values() if each.started > at]
    if not again:
        return {}
    steps = max(0, reached - min(again))
    lost = _added(observed.hyperjob.status, entry, steps=steps, took=_took(entry, at, steps))
    rest = {"resumeStep": entry["resumeStep"]} if "resumeStep" in entry else None
    return {"checkpoint": rest, "lostWork": lost}


def _attempt(training: JobTraining | None) -> int | None:
    return None if training is None else training.attempt


def _took(entry: Object, at: datetime, steps: int) -> timedelta:
    """Return how long the last `steps` before the stop took."""
    reached, kept = count(entry.get("stoppedStep")), count(entry.get("keptStep"))
    since = timestamp(entry.get("keptTime"))
    if since is None or reached <= kept or since >= at:
        return timedelta()
    return (at - since) * (steps / (reached - kept))


def _added(status: Object, entry: Object, *, steps: int, took: timedelta) -> list[Object]:
    cause = string(entry.get("stopCause"))
    old = {string(each.get("cause")): each for each in objects(status.get("lostWork"))}
    before = old.get(cause, {})
    old[cause] = {
        "cause": cause,
        "stops": count(before.get("stops")) + 1,
        "steps": count(before.get("steps")) + steps,
        "milliseconds": count(before.get("milliseconds")) + round(took / timedelta(milliseconds=1)),
    }
    return [old[name] for name in sorted(old)]


def _runs(child: Child) -> bool:
    return child.exists and child.phase in _ALIVE


def _has_ended(observed: Observed, child: Child | None) -> bool:
    if child is None or child.is_terminal:
        return True
    if child.job is not None:
        return False  # not deleted yet, or on its way out
    said = observed.trainings.get(child.name)
    return said is not None and said.ended
