"""The whole status of a HyperJob, from the observed objects and the outlook of each sub-job.

Every pass computes the whole status. From the old status it carries on times and last known
states, the number of restarts, the handled requests, the records of stops and the goodput account.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import CONDITION_ADMITTED
from hyperjob_core.api.overlay import taken
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.status import (
    MOST_SPEEDS,
    AlternativeStatus,
    ClusterStatus,
    ExpectedStart,
    JobStatus,
    MeasuredSpeed,
)
from hyperjob_core.api.wire import at, condition, mapping, objects, one_of, rfc3339, string
from hyperjob_engine.lifecycle.finished import trainers
from hyperjob_engine.lifecycle.records import kept
from hyperjob_engine.lifecycle.silence import stall_of
from hyperjob_engine.lifecycle.stops import going_on
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import HyperJob, Observed, QueueVerdict
from hyperjob_engine.model.subjobs import Choice, SubJob, choice_text, mix_text, speeds_of
from hyperjob_engine.reasons.reason import Reason, stop_text
from hyperjob_engine.status.jobs import JobState, Outlooks, job_state
from hyperjob_engine.status.phase import (
    STARTED,
    TRAINS,
    State,
    conditions_of,
    end_condition,
    state_of,
)
from hyperjob_engine.status.training import goodput_status, slow_text, training_status, without_end

_CLUSTERS_SHOWN: Final = 8
_WAITING: Final = frozenset({Phase.PENDING, Phase.QUEUED})
_STOPPED: Final = frozenset(
    {
        Phase.STOPPING,
        Phase.SUSPENDED,
        Phase.RESTARTING,
        Phase.PENDING,
        Phase.QUEUED,
        Phase.STARTING,
    }
)
_STEADY: Final = 0.05
"""The part by which a speed must differ from the one in the status to be written again."""
_MESSAGES: Final[Mapping[Chosen, str]] = {
    Chosen.EARLIEST_END: "it is expected to end first, by its expected start and its speed",
    Chosen.FIRST_WITH_ROOM: "it is the first in order that had room",
    Chosen.FIRST: "no alternative had room, and it is the first in order that can have some",
    Chosen.LARGEST: "it is the largest number of {units} that had room",
    Chosen.SMALLEST: "no number of {units} had room, and the smallest starts first",
    Chosen.WANTED: "it is the number that the spec asks for, and the queue has not decided yet",
    Chosen.SPARED: "the {units} beyond it made way for another HyperJob",
    Chosen.GREW: "there was room that no other HyperJob could start with",
    Chosen.LEFT: "it is the largest number of {units} that had room after a restart",
}
_COUNTERS: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


def derive(observed: Observed, outlooks: Outlooks) -> Object:
    """Return the status to write, the `new` of `merge_patch`.

    A top-level field of None is removed, and an absent one stays as it is. An empty list or text
    is returned only to empty a field that the old status has. `observed.hyperjob.status` must be
    the stored status with what this pass records, such as a restart.
    """
    hyperjob, old = observed.hyperjob, observed.hyperjob.status
    now = rfc3339(observed.now)
    jobs = [job_state(observed, outlook) for outlook in outlooks.items]
    members = [(item.sub_job, item.child) for item in outlooks.items]
    stall = None if outlooks.end is not None else stall_of(observed, members)
    training = training_status(observed, jobs)
    state = state_of(observed, jobs, outlooks, stall=stall, slow=slow_text(training))
    clusters = _cluster_entries(jobs)
    status: Object = {
        "replicatedJobsStatus": _group_entries(observed, jobs),
        "splitCount": len(jobs),
        "observedGeneration": hyperjob.generation,
        "state": _state_entry(state, old, now),
        "jobs": _job_entries(jobs),
        "clusters": clusters,
        "jobsReady": f"{sum(job.is_ready for job in jobs)}/{len(jobs)}",
        "runningPods": sum(job.running for job in jobs),
        "clusterNames": _joined([string(item["name"]) for item in clusters]),
        "queue": _joined(sorted({job.queue for job in jobs})),
        "restarts": old.get("restarts", 0),
    }
    status |= _occasional(observed, outlooks, state)
    if stall is not None or "stall" in old:
        status["stall"] = None if stall is None else table.write(stall)
    stops = going_on(observed, members)
    if state.phase.is_terminal and "stop" in stops:
        stops["stop"] = None
    if state.phase in _STOPPED and (saved := stop_text(stops)):
        state = replace(state, message=f"{state.message}; {saved}")
        status["state"] = _state_entry(state, old, now)
    status |= stops
    dispatched = sum(job.is_dispatched for job in jobs) >= outlooks.minimum
    generation = hyperjob.generation
    conditions = conditions_of(old, state, dispatched=dispatched, generation=generation, now=now)
    if (end := outlooks.end) is not None:
        conditions.insert(0, end_condition(old, jobs, end, generation=generation, now=now))
    status["conditions"] = conditions
    if training is not None:
        stalled = stall.step if stall is not None else None
        still = without_end(training, phase=state.phase, stalled=stalled)
        status["training"] = training if state.phase in TRAINS and stall is None else still
    share = _ready_share(jobs, hyperjob) if state.reason == Reason.QUORUM_MET else 0.0
    status["goodput"] = goodput_status(observed, state, training, share=share, stall=stall)
    devices = sum(job.accelerators or 0 for job in jobs)
    status |= _alternatives(observed, training, state.phase, devices, jobs)
    return {key: value for key, value in status.items() if value not in ([], "") or key in old}


def _occasional(observed: Observed, outlooks: Outlooks, state: State) -> Object:
    """Return the fields that a HyperJob has at times; None removes a field of the old status."""
    old, now = observed.hyperjob.status, rfc3339(observed.now)
    found: Object = {}
    if "requests" in old:
        found["requests"] = old["requests"]
    if outlooks.gang is not None or "gang" in old:
        found["gang"] = None if outlooks.gang is None else table.write(outlooks.gang)
    expected = _expected_start(state, observed.verdict)
    if expected is not None or "expectedStart" in old:
        found["expectedStart"] = expected
    start = string(old.get("startTime"))
    if start or state.phase in STARTED or state.phase.is_terminal:
        found["startTime"] = start or now
    if state.phase.is_terminal:
        found["completionTime"] = string(old.get("completionTime")) or now
    return found


def _expected_start(state: State, verdict: QueueVerdict | None) -> Object | None:
    """Return when a waiting HyperJob is expected to have room; None if estimates give no time."""
    start = verdict.wait.start if verdict is not None and verdict.wait is not None else None
    if start is None or start.overdue or state.phase not in _WAITING:
        return None
    return table.write(ExpectedStart(time=start.at, after=start.after, by=start.by))


def _ready_share(jobs: Sequence[JobState], hyperjob: HyperJob) -> float:
    """Return the share, from 0 to 1, of the sub-jobs that train on without the others."""
    groups = trainers(hyperjob)
    training = [job for job in jobs if job.replicated_job in groups]
    return sum(job.is_ready for job in training) / len(training) if training else 0.0


def derive_refusal(observed: Observed, message: str) -> Object:
    """Return the status of a HyperJob with an invalid spec."""
    phase = one_of(Phase, at(observed.hyperjob.status, "state", "phase")) or Phase.PENDING
    state = State(phase=phase, reason=Reason.INVALID_SPEC, message=message)
    old, generation, now = observed.hyperjob.status, observed.hyperjob.generation, observed.now
    forgotten: Object = {"expectedStart": None} if "expectedStart" in old else {}
    dispatched = condition(old, CONDITION_ADMITTED).get("status") == "True"
    return {
        **old,
        **forgotten,
        "conditions": conditions_of(
            old, state, dispatched=dispatched, generation=generation, now=rfc3339(now)
        ),
        "observedGeneration": generation,
        "state": _state_entry(state, old, rfc3339(now)),
        "goodput": goodput_status(observed, state, mapping(old.get("training"))),
    }


def derive_fault(old: Object, incident: str, *, now: datetime) -> Object:
    """Return the part of the status that names a bug of the controller; the rest stays as it is.

    The log of the controller has the stack under the number of the incident.

    It reads nothing but the old state: the bug may be in the derivation of any other field.
    """
    phase = one_of(Phase, at(old, "state", "phase")) or Phase.PENDING
    text = (
        f"the controller failed at this HyperJob (incident {incident}) and tries again later; its"
        " log has the stack of the error, and sub-jobs in member clusters go on"
    )
    state = State(phase=phase, reason=Reason.INTERNAL_ERROR, message=text)
    return {"state": _state_entry(state, old, rfc3339(now))}


def _state_entry(state: State, old: Object, now: str) -> Object:
    """Return `status.state`; an equal phase keeps its time from the stored status `old`."""
    since = now
    if string(at(old, "state", "phase")) == state.phase:
        since = string(at(old, "state", "lastTransitionTime")) or now
    return {
        "phase": str(state.phase),
        "reason": state.reason,
        "message": state.message,
        "lastTransitionTime": since,
    }


def _group_entries(observed: Observed, jobs: Sequence[JobState]) -> list[Object]:
    """Return `status.replicatedJobsStatus`: states of placed sub-jobs, and sums of their pods.

    The recorded state of a sub-job stays while its cluster reports none.
    """
    old_states: Object = {}
    for item in objects(observed.hyperjob.status.get("replicatedJobsStatus")):
        old_states |= mapping(item.get("jobStates"))
    result = []
    for group in observed.hyperjob.replicated_jobs:
        members = [job for job in jobs if job.replicated_job == group.name]
        entry: Object = {"name": group.name}
        states = {
            job.name: _vcjob_state(job, mapping(old_states.get(job.name)))
            for job in members
            if job.is_placed
        }
        if states:
            entry["jobStates"] = states
        for counter in _COUNTERS:
            number = sum(_pod_count(job, counter) for job in members)
            if number:
                entry[counter] = number
        result.append(entry)
    return result


def _pod_count(job: JobState, counter: str) -> int:
    """Return the pods of a counter; without a report only the last known running ones."""
    if job.report is not None:
        return int(getattr(job.report.pods, counter))
    return job.running if counter == "running" else 0


def _vcjob_state(job: JobState, old: Object) -> Object:
    """Return Volcano's state of a sub-job; the last known one if the cluster reports none."""
    if job.report is None and job.reason == Reason.ENDED:
        return {"phase": job.phase}
    if job.report is None:
        return old if job.job_phase is not JobPhase.UNKNOWN else {}
    state = {
        "phase": job.report.phase_text,
        "reason": job.report.reason,
        "message": job.report.message,
        "lastTransitionTime": job.report.last_transition,
    }
    return {key: value for key, value in state.items() if value}


def _job_entries(jobs: Sequence[JobState]) -> list[Object]:
    """Return `status.jobs`, with the runs that are kept."""
    runs = kept([each.history for each in jobs])
    return [
        table.write(job if ran is job.history else replace(job, history=tuple(ran)), JobStatus)
        for job, ran in zip(jobs, runs, strict=True)
    ]


def _cluster_entries(jobs: Iterable[JobState]) -> list[Object]:
    """Return `status.clusters`, sorted by name; numbers that are 0 are left out."""
    by_name: dict[str, list[JobState]] = {}
    for job in jobs:
        if job.cluster and job.is_placed:
            by_name.setdefault(job.cluster, []).append(job)
    result = []
    for name, members in sorted(by_name.items()):
        entry = ClusterStatus(
            name=name,
            jobs=len(members),
            ready=sum(job.is_ready for job in members),
            running=sum(job.running for job in members),
            accelerators=sum(job.accelerators or 0 for job in members) or None,
        )
        result.append(table.write(entry))
    return result


def _joined(names: Sequence[str]) -> str:
    """Return names for a column of `kubectl get`: the first eight, and how many more."""
    shown = ",".join(names[:_CLUSTERS_SHOWN])
    hidden = len(names) - _CLUSTERS_SHOWN
    return f"{shown},+{hidden}" if hidden > 0 else shown


def is_recorded(observed: Observed, sub_jobs: Iterable[SubJob]) -> bool:
    """Return whether the status has the present alternatives: else the pass does nothing yet.

    A controller that is killed in between would give later sub-jobs other alternatives.
    """
    hyperjob = observed.hyperjob
    if not any(each.options for each in hyperjob.replicated_jobs):
        return True
    found = {group: each.name for group, each in taken(hyperjob.status).items()}
    whole = {each.name: each.alternative for each in hyperjob.replicated_jobs if each.own is None}
    if any(found.get(key) != name for key, name in whole.items() if name):
        return False
    own = {each.name: each.alternative for each in sub_jobs if each.alternative}
    known = table.read_all(JobStatus, hyperjob.status.get("jobs") if own else ())
    return own.items() <= {each.name: each.alternative for each in known}.items()


def _alternatives(
    observed: Observed,
    training: Object | None,
    phase: Phase,
    devices: int,
    jobs: Sequence[JobState],
) -> Object:
    """Return the fields of the alternatives; none for a HyperJob that has and had none.

    `devices` are the accelerators of all sub-jobs.
    """
    old, choice = observed.hyperjob.status, _choice(observed.hyperjob, jobs)
    if not choice and "alternatives" not in old:
        return {}
    known, verdict, elastic = taken(old), observed.verdict, observed.hyperjob.elastic
    chosen = verdict.chosen if verdict is not None else None
    entries = []
    for group, name in choice:
        before = known.get(group)
        entry = before if before is not None and before.name == name else None
        if chosen is not None or entry is None:
            why = chosen or (Chosen.WANTED if elastic is not None else Chosen.FIRST)
            since = entry.last_transition_time if entry is not None else rfc3339(observed.now)
            entry = AlternativeStatus(
                replicated_job=group,
                name=name,
                reason=why,
                message=_MESSAGES[why].format(units=elastic.counts if elastic is not None else ""),
                last_transition_time=since if elastic is not None else "",
            )
        entries.append(table.write(entry))
    found: Object = {"alternatives": entries}
    if choice or "speeds" in old:
        text = choice_text(choice) if phase in TRAINS else ""
        speed = string(mapping(training).get("stepsPerSecond")) if phase is Phase.RUNNING else ""
        found["speeds"] = _speeds(old, text, speed, devices, observed.now)
    return found


def _choice(hyperjob: HyperJob, jobs: Sequence[JobState]) -> Choice:
    """Return the alternative of each replicated job; of different ones their numbers."""
    mixes = {
        group.name: mix_text(
            each.alternative
            for each in jobs
            if each.alternative and each.replicated_job == group.name
        )
        for group in hyperjob.replicated_jobs
        if group.options
    }
    return tuple(
        (group.name, mixes[group.name] or group.alternative)
        for group in hyperjob.replicated_jobs
        if group.options
    )


def _speeds(old: Object, text: str, speed: str, devices: int, now: datetime) -> list[Object]:
    """Return the speeds and times by alternatives; `text` are those with which it runs now.

    The entry of these is not written again while its speed hardly changes: commands add the time
    since then.
    """
    known = {each.alternatives: each for each in table.read_all(MeasuredSpeed, old.get("speeds"))}
    found = {name: each if name == text else each.until(now) for name, each in known.items()}
    if text:
        entry = found.get(text, MeasuredSpeed(alternatives=text))
        measured, before = float(speed or 0), speeds_of(old).get(text)
        if measured and (before is None or abs(measured - before) > _STEADY * before):
            entry = replace(entry, steps_per_second=f"{measured:.3g}")
        since = entry.since or micro_time(now)
        found[text] = replace(entry, since=since, accelerators=devices)
    longest = sorted(found.values(), key=lambda each: (not each.since, -each.milliseconds))
    kept = sorted(longest[:MOST_SPEEDS], key=lambda each: each.alternatives)
    return [table.write(each) for each in kept]
