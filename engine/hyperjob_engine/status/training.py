"""`status.training`: the progress of the whole training, from the progress of its sub-jobs.

Without a new progress line the stored status stays as it is.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.overlay import taken
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.training import Reported, StallStatus, SubJobTraining
from hyperjob_core.api.wire import at, integer, mapping, rfc3339, string, timestamp
from hyperjob_engine.model.observed import HyperJob, Observed
from hyperjob_engine.model.subjobs import choice_of, choice_text
from hyperjob_engine.model.training import latest_training, straggler
from hyperjob_engine.status.goodput import (
    Moment,
    account_object,
    advance,
    begin,
    finish,
    parse_account,
)
from hyperjob_engine.status.phase import State

_STEADY: Final = timedelta(seconds=30)
_STEADY_PART: Final = 0.05
_END: Final = "estimatedCompletionTime"
_LONGEST: Final = timedelta(days=3650)


def slow_text(training: Object | None) -> str:
    """Return how slow a training has become, and for which pod the others wait; empty if not."""
    found = mapping(training)
    if not found.get("usualStepsPerSecond"):
        return ""
    speed, last = string(found.get("stepsPerSecond")), mapping(found.get("straggler"))
    text = f"it makes {speed} steps/s, and {string(found.get('usualStepsPerSecond'))} usually"
    if not last:
        return text
    pod = f"{string(last.get('cluster'))}/{string(last.get('pod'))}"
    rank = f"rank {last['rank']} in " if "rank" in last else ""
    return f"{text}: the others wait for {rank}pod {pod}"


def without_end(training: Object, *, phase: str, stalled: int | None = None) -> Object:
    """Return `status.training` without the expected end: a program that makes no step has none.

    `stalled` is the last step of such a program: that is the progress, and not that of another one.
    A loop over a range reports one less than its number of steps when it has completed.
    """
    found = {key: value for key, value in training.items() if key != _END}
    steps = integer(found.get("steps"))
    last = found["step"] if stalled is None else min(stalled, found["step"])
    is_whole = phase == Phase.COMPLETED and steps == last + 1
    return found | {"step": last} | _progress(last + is_whole, steps)


def _progress(step: int, steps: int | None) -> Object:
    if not steps:
        return {"progress": f"step {step}"}
    percent = min(100, 100 * step // steps)
    return {"steps": steps, "percent": percent, "progress": f"{percent}%"}


def with_last_lines(observed: Observed, status: Object) -> Object:
    """Return the status of an ended HyperJob with the last progress lines of its programs."""
    jobs = [
        replace(each, training=latest_training(observed.trainings.get(each.name), each.training))
        for each in observed.hyperjob.records.values()
    ]
    found = training_status(observed, jobs)
    account = parse_account(status.get("goodput"), choice_text(choice_of(observed.hyperjob)))
    training = found and without_end(found, phase=string(at(status, "state", "phase")))
    if training is None or training == status.get("training") or account is None:
        return status
    after = finish(account, table.read(SubJobTraining, training), integer(training.get("steps")))
    return {**status, "training": training, "goodput": account_object(after, now=account.since)}


def training_status(observed: Observed, jobs: Sequence[JobStatus]) -> Object | None:
    """Return `status.training` from the progress of all sub-jobs.

    Without a log that was read, or without a progress line, it is the stored one; None if there is
    none.
    """
    old = mapping(observed.hyperjob.status.get("training"))
    together = combined(jobs) if observed.trainings else None
    if together is None:
        return old or None
    steps = together.steps if together.steps is not None else integer(old.get("steps"))
    entry = table.write(together, Reported)
    entry |= _progress(together.step, steps)
    speed = together.steps_per_second
    if speed:
        entry["stepsPerSecond"] = f"{speed:.3g}" if speed < 1000 else f"{speed:.0f}"
        end = _expected_end(together, steps, speed, now=observed.now, old=old)
        if end is not None:
            entry[_END] = rfc3339(end)
    last = straggler(observed.waits, steps_per_second=speed)
    given = {
        "metrics": dict(together.metrics),
        "url": together.url,
        "usualStepsPerSecond": together.usual if together.slow else None,
        "straggler": None if last is None else table.write(last),
        "phase": together.phase,
    }
    return entry | {name: value for name, value in given.items() if value}


def combined(jobs: Sequence[JobStatus]) -> SubJobTraining | None:
    """Return the furthest step of the sub-jobs, and the last checkpoint that all of them have.

    Only the first replicatedJob with a progress line counts. If any of its sub-jobs has a progress
    line of the present attempt, its other sub-jobs do not count.
    """
    found = [(each, each.training) for each in jobs if each.training and each.training.reported]
    if not found:
        return None
    group = found[0][0].replicated_job
    mine = [(each, training) for each, training in found if each.replicated_job == group]
    present = [training for each, training in mine if training.attempt == each.attempt]
    trainings = present or [training for _, training in mine]
    furthest = max(trainings, key=lambda each: (each.step, each.updated))
    first = min(trainings, key=lambda each: each.started)
    saving = [each for each in trainings if each.saved_step is not None]
    saved = min(saving, key=lambda each: each.saved_step or 0) if saving else None
    steps = next((each.steps for each in (furthest, *trainings) if each.steps is not None), None)
    return replace(
        furthest,
        start_step=first.start_step,
        started=first.started,
        saved_step=saved.saved_step if saved is not None else None,
        saved=saved.saved if saved is not None else None,
        steps=steps,
    )


def goodput_status(
    observed: Observed,
    state: State,
    training: Object | None,
    *,
    share: float = 0.0,
    stall: StallStatus | None = None,
) -> Object:
    """Return `status.goodput`; the stored one if no transition occurred.

    `share` is the share of the sub-jobs that train while the HyperJob is Degraded, from 0 to 1.
    """
    hyperjob, now = observed.hyperjob, observed.now
    old = mapping(hyperjob.status.get("goodput"))
    was = table.read(StallStatus, hyperjob.status.get("stall"))
    moment = Moment(
        now=now,
        created=timestamp(hyperjob.created) or now,
        phase=state.phase,
        reason=state.reason,
        share=share,
        stopped_by=observed.stopped_by,
        before=table.read(SubJobTraining, hyperjob.status.get("training")),
        work=_with_resumption(observed, table.read(SubJobTraining, training)),
        steps=integer(mapping(training).get("steps")),
        stalled=stall.since if stall is not None and stall.whole else None,
        was_stalled=None if was is None or not was.whole else was.since,
        announced=any(each.phase for each in observed.trainings.values()),
    )
    account, size = parse_account(old, _size_of(hyperjob)), choice_text(choice_of(hyperjob))
    after = advance(account or begin(moment, size), moment).with_size(size, now)
    unchanged = after == account and training == hyperjob.status.get("training")
    return old if unchanged else account_object(after, now=now)


def _size_of(hyperjob: HyperJob) -> str:
    """Return the text of the size or the alternatives in the status."""
    known = taken(hyperjob.status)
    return choice_text(
        tuple((e.name, known[e.name].name) for e in hyperjob.replicated_jobs if e.name in known)
    )


def _with_resumption(observed: Observed, work: SubJobTraining | None) -> SubJobTraining | None:
    """Return the progress with the time of the first step after the programs made none."""
    times = [each.resumed for each in observed.trainings.values() if each.resumed is not None]
    return work if work is None or not times else replace(work, resumed=max(times))


def _expected_end(
    training: SubJobTraining, steps: int | None, speed: float, *, now: datetime, old: Object
) -> datetime | None:
    """Return the expected time of the last step; the stored estimate if it is still good."""
    if not steps or training.step >= steps:
        return None
    seconds = (steps - training.step) / speed
    if seconds > _LONGEST.total_seconds():
        return None
    left = timedelta(seconds=seconds)
    end = training.updated + left
    before, steady = timestamp(old.get(_END)), max(_STEADY, left * _STEADY_PART)
    is_good = before is not None and before > now and abs(before - end) < steady
    return before if is_good else end
