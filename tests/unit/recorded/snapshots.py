"""One pass each over HyperJobs whose objects and status are in any state, one beside another.

Histories come into such states only now and then; here each sub-job has a state of its own, and
the status says of it what a pass may have written at any time before.
"""

import copy
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from hyperjob_controller.insight.explain import QueueState, explain
from hyperjob_controller.insight.measures import change_of, opened_after, placed
from hyperjob_controller.training.watch import sources_of
from hyperjob_core.api.checkpoint import StopCause
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.text import shortened
from hyperjob_engine.expansion.expand import SpecError, expand, sub_jobs
from hyperjob_engine.lifecycle.decisions import End
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.observed import (
    Binding,
    GangRecord,
    HyperJob,
    Job,
    Observed,
    Ownership,
    PodCounts,
    Policy,
    QueueAdmission,
    QueueVerdict,
    Refusal,
    ReportedStatus,
    Task,
)
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.record import Record, Rejection, Silence
from hyperjob_engine.model.runs import Run
from hyperjob_engine.model.subjobs import SubJob
from hyperjob_engine.model.training import JobTraining, training_object
from hyperjob_engine.plan import plan
from hyperjob_engine.queueing.read import unit_of
from hyperjob_engine.reasons.detail import Delayed, Detail
from hyperjob_engine.reasons.failure import ContainerFailure
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.derive import derive, derive_refusal
from hyperjob_engine.status.diff import weigh
from hyperjob_engine.status.outlook import Outlook, Outlooks
from hyperjob_engine.status.transitions import status_events
from tests.unit.controller.builders import NOW
from tests.unit.recorded.arbitrary import arbitrary, made
from tests.unit.recorded.generated import hyperjob_of, some
from tests.unit.recorded.passes import cluster_of
from tests.unit.recorded.plans import plan_lines
from tests.unit.recorded.recording import Case, changes, line

REASONS = [each for each in Reason if each is not Reason.INTERNAL_ERROR]
"""No plan has the reason that the controller writes after its own failure."""
BASES: Final = ("nothing", "made", "placed", "runs", "runs", "runs", "ended", "any")
SHOWN: Final = 300
PODS: Final = {"running": (0, 1, 4), "pending": (0, 1), "succeeded": (0, 4), "failed": (0, 1)}


def snapshot_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"snapshot {seed}")
        raw = hyperjob_of(rng, most=2)
        seen = observed_of(rng, raw)
        if seen is not None:
            yield f"snapshot {seed}", list(_decided(seen, raw, explained=seed % 4 == 0))


def state_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"states {seed}")
        raw = hyperjob_of(rng, most=2)
        yield f"HyperJob {seed}", list(_derived(rng, raw))


def _decided(seen: Observed, raw: Object, *, explained: bool) -> Iterator[str]:
    for name in sorted({*seen.hyperjob.records, *seen.jobs, *seen.policies}):
        record, job = seen.hyperjob.records.get(name), seen.jobs.get(name)
        bound = seen.bindings.get(binding_name(name))
        shown = [line(each) for each in (record, job, bound) if each is not None]
        yield shortened(f"{name}: {' '.join(shown)}", SHOWN)
    old = copy.deepcopy(seen.hyperjob.status)
    templates = {each["name"]: each["templateSpec"] for each in raw["spec"]["replicatedJobs"]}
    decided = plan(seen)
    yield from plan_lines(old, templates, decided)
    new = decided.status
    measured: list[Any] = [placed(decided), opened_after(seen.hyperjob, decided.actions, now=NOW)]
    if new is not None:
        measured += [change_of(seen.hyperjob, new, now=NOW), weigh(old, new)]
    yield f"  measured {line(measured)}"
    queued = unit_of(seen)
    kept = None if queued is None else [queued.since, queued.kept]
    yield shortened(f"  queued {line(kept)} {line(queued)}", 3 * SHOWN)
    for source in sources_of(seen):
        yield shortened(f"  {line(source)}", SHOWN)
    if not explained:
        return
    reserved = {each.name: each.free for each in seen.clusters[:1]}
    state = QueueState(failures=2, due_in=1.5)
    told = explain(seen, replace(decided, status=None), queue=state, reserved=reserved)
    yield shortened(f"  explained {line(told)}", 6 * SHOWN)


def _derived(rng: random.Random, raw: Object) -> Iterator[str]:
    """Derive the status of arbitrary intentions, each with the status before."""
    for number in range(4):
        seen = observed_of(rng, raw, fresh=number == 0)
        if seen is None:
            return
        moment = NOW + number * timedelta(minutes=1)
        seen = replace(seen, now=moment)
        outlooks = _outlooks(rng, seen)
        old = seen.hyperjob.status
        if some(rng, 0.05):
            new = derive_refusal(seen, "minAvailable is 3, and there are 2 sub-jobs")
        else:
            new = derive(seen, outlooks)
        yield f"{number}. {', '.join(map(_outlook, outlooks.items))}"
        yield shortened(f"   {line(replace(outlooks, items=()))}", SHOWN)
        yield from (f"  .{each}" for each in changes(old, new))
        for event in status_events(old, new):
            yield f"  {event.type} {event.reason} {event.action}: {event.note}"
        yield f"  {weigh(old, new).name} {line(change_of(seen.hyperjob, new, now=moment))}"
        raw["status"] = copy.deepcopy(new)


def _outlook(each: Outlook) -> str:
    told = [name for name in ("blocked", "loss", "ended", "unheard") if getattr(each, name)]
    return f"{each.child.phase or 'Unknown'} {' '.join(told)}".strip()


def _outlooks(rng: random.Random, seen: Observed) -> Outlooks:
    items = []
    wanted = wanted_of(seen.hyperjob)
    alike = some(rng, 0.5)
    blocked = rng.choice((None, *REASONS))
    for each in wanted:
        here = blocked if alike else rng.choice((None, None, *REASONS))
        detail = None
        if here is Reason.RESTARTING and some(rng, 0.7):
            detail = Delayed(rng.choice((each.name, "another")) + " is Failed", NOW)
        elif here is not None:
            detail = arbitrary(rng, Detail, deep=2)
        known: dict[str, Any] = {"blocked": here, "detail": detail, "left_out": ()}
        if some(rng, 0.9):
            known["ended"] = None
        if some(rng, 0.8):
            known |= {"loss": None}
        if some(rng, 0.7):
            known |= {"unheard": None}
        items.append(
            made(rng, Outlook, sub_job=each, child=child_of(seen, each.name), deep=3, **known)
        )
    known = {"end": None} if some(rng, 0.85) else {"end": made(rng, End, rest=0.2)}
    groups = [each.name for each in seen.hyperjob.replicated_jobs]
    return made(
        rng,
        Outlooks,
        items=items,
        minimum=rng.choice((1, len(items), len(items), max(1, len(items) - 1))),
        suspended=some(rng, 0.1),
        trainers=rng.choice((groups, groups[:1])),
        **known,
    )


def observed_of(rng: random.Random, raw: Object, *, fresh: bool = True) -> Observed | None:
    """Make everything around a HyperJob; None where its spec cannot be carried out."""
    try:
        bare = parse_hyperjob(raw)
        wanted = wanted_of(bare)
    except SpecError:
        return None
    base = rng.choice(BASES)
    if some(rng, 0.2) and wanted:
        wanted.append(replace(wanted[-1], name="hj-g0-9", index=9))  # more than the spec wants
    if fresh:
        raw["status"] = _status(rng, wanted, base)
        _ask(rng, raw, [each.name for each in wanted])
    hyperjob = parse_hyperjob(raw)
    jobs, policies, bindings = {}, {}, {}
    for each in wanted:
        here = base if some(rng, 0.75) else rng.choice(BASES)
        if here == "any":
            here = rng.choice(BASES[:-1])
        record = hyperjob.records.get(each.name)
        if here != "nothing":
            jobs[each.name] = _job(rng, each, record, here)
        if here != "nothing" or some(rng, 0.2):
            policies[each.name] = _policy(rng, each, record)
        if here not in ("nothing", "made") or some(rng, 0.1):
            bindings[binding_name(each.name)] = _binding(rng, each, here)
    names = [each.name for each in wanted]
    return made(
        rng,
        Observed,
        rest=0.7,
        hyperjob=hyperjob,
        jobs=jobs,
        policies=policies,
        bindings=bindings,
        clusters=tuple(cluster_of(rng, name, NOW) for name in ("a", "b", "c") if some(rng, 0.9)),
        refusals={name: made(rng, Refusal) for name in names if some(rng, 0.05)},
        admission=rng.choice(list(QueueAdmission)),
        now=NOW,
        verdict=_verdict(rng, names),
        queues=rng.choice((None, {"q0": "Open", "default": "Open", "q1": "Closed"})),
        passed_over=frozenset(name for name in names if some(rng, 0.1)),
        unanswered=frozenset(name for name in names if some(rng, 0.1)),
        forgotten=frozenset(name for name in names if some(rng, 0.1)),
        split_answers=None,
        trainings={name: _training(rng) for name in names if some(rng, 0.3)},
        causes=_causes(rng, names),
        followers=[f"uid-{name}" for name in names if some(rng, 0.2)],
        cluster_lost_timeout=timedelta(minutes=5),
        gang_timeout=timedelta(minutes=5),
        silence_timeout=timedelta(seconds=30),
        start_timeout=timedelta(minutes=15),
    )


def _causes(rng: random.Random, names: list[str]) -> dict[str, ContainerFailure | None] | None:
    if some(rng, 0.4):
        return None
    return {
        f"uid-{name}": None if some(rng, 0.1) else made(rng, ContainerFailure, pod="p-0")
        for name in names
    }


def wanted_of(hyperjob: HyperJob) -> list[SubJob]:
    groups = expand(hyperjob)
    indices = {each.replicated_job.name: range(len(each.sizes)) for each in groups}
    return [*sub_jobs(hyperjob, groups, indices)]


def _job(rng: random.Random, each: SubJob, record: Record | None, here: str) -> Job:
    attempt = record.attempt if record is not None else 0
    template = each.size.template
    return made(
        rng,
        Job,
        name=each.name,
        uid=f"uid-{each.name}",
        resource_version="7",
        deleting=some(rng, 0.08),
        ownership=rng.choice((Ownership.OURS,) * 18 + tuple(Ownership)),
        labelled=some(rng, 0.95),
        attempt=max(0, attempt - 1) if some(rng, 0.06) else attempt,
        tasks=tuple(
            Task(name=item["name"], replicas=item["replicas"] + some(rng, 0.05), min_available=None)
            for item in template["tasks"]
        ),
        min_available=template.get("minAvailable"),
        priority_class=template.get("priorityClassName", ""),
        queue=template.get("queue", "") if some(rng, 0.95) else "q9",
        report=_report(rng, here),
        created=NOW - timedelta(seconds=rng.choice((1, 60, 5000))),
        world=rng.choice(("", "", "w1")),
        spec=template,
    )


def _report(rng: random.Random, here: str) -> ReportedStatus | None:
    if here in ("made", "placed") and some(rng, 0.6):
        return None
    phases = {
        "runs": (JobPhase.RUNNING,) * 6 + (JobPhase.RESTARTING, JobPhase.COMPLETING),
        "ended": (JobPhase.COMPLETED,) * 3
        + (JobPhase.FAILED, JobPhase.FAILED, JobPhase.ABORTED, JobPhase.TERMINATED),
    }.get(here, (JobPhase.PENDING,) * 4 + tuple(JobPhase))
    phase = rng.choice(phases)
    pods = PodCounts(**{name: rng.choice(numbers) for name, numbers in PODS.items()})
    return made(rng, ReportedStatus, phase=phase, phase_text=str(phase), pods=pods, rest=0.3)


def _policy(rng: random.Random, each: SubJob, record: Record | None) -> Policy:
    cluster = record.cluster if record is not None and record.cluster else "a"
    return made(
        rng,
        Policy,
        name=each.name,
        uid=f"pp-{each.name}",
        deleting=some(rng, 0.05),
        ownership=rng.choice((Ownership.OURS,) * 18 + tuple(Ownership)),
        labelled=some(rng, 0.95),
        attempt=record.attempt if record is not None and some(rng, 0.95) else 0,
        clusters=rng.choice(((cluster,),) * 8 + ((), ("b",), ("a", "b"))),
        suspended=some(rng, 0.3),
        gate=rng.choice(("", "held", "open")),
    )


def _binding(rng: random.Random, each: SubJob, here: str) -> Binding:
    known: dict[str, Any] = {}
    if some(rng, 0.8):
        known = {"unscheduled_reason": "", "unscheduled_message": ""}
    if some(rng, 0.85):
        known["apply_error"] = ""
    return made(
        rng,
        Binding,
        name=binding_name(each.name),
        uid=f"rb-{each.name}",
        job_uid=f"uid-{each.name}" if some(rng, 0.95) else "other",
        stranger="" if some(rng, 0.95) else "apps/v1 Deployment x",
        cluster=rng.choice(("a", "a", "a", "b", "")),
        pins=rng.choice((("a",), ("a",), ("b",), ())),
        scheduling_suspended=some(rng, 0.1 if here == "runs" else 0.4),
        dispatching_suspended=some(rng, 0.3),
        gate=rng.choice(("", "held", "held", "open")),
        report=_report(rng, here) if some(rng, 0.8) else None,
        **known,
    )


def _training(rng: random.Random) -> JobTraining:
    step = rng.choice((0, 10, 500))
    since = NOW - timedelta(seconds=rng.choice((20, 100, 4000)))
    saved = step + rng.choice((0, 5, 40)) if some(rng, 0.6) else None
    return made(
        rng,
        JobTraining,
        step=step + rng.choice((0, 40)),
        updated=since + timedelta(seconds=rng.choice((0, 15, 19))),
        start_step=step,
        started=since,
        saved_step=saved,
        saved=None if saved is None else since + timedelta(seconds=5),
        attempt=rng.choice((0, 0, 1, 2)),
        uid="",
        steps=rng.choice((None, 40, 1000)),
    )


def _verdict(rng: random.Random, names: list[str]) -> QueueVerdict | None:
    if some(rng, 0.5):
        return None
    return made(
        rng,
        QueueVerdict,
        undecided=some(rng, 0.02),
        admitted=frozenset(name for name in names if some(rng, 0.7)),
        reason=rng.choice(("WaitingForQueue", "QueueNotOpen", "InsufficientCapacity")),
        reclaimed_for="" if some(rng, 0.9) else "default/other",
    )


def _status(rng: random.Random, wanted: list[SubJob], base: str) -> Object:
    """Write what a pass may have written before."""
    if some(rng, 0.1):
        return {}
    phase = rng.choice(list(Phase)[:7] if some(rng, 0.9) else list(Phase))
    status: Object = {
        "state": {
            "phase": str(phase),
            "reason": str(rng.choice(REASONS)),
            "message": "as before",
            "lastTransitionTime": "2026-01-02T03:00:00Z",
        },
        "restarts": rng.choice((0, 0, 1, 3)),
        "jobs": [_entry(rng, each, base) for each in wanted if some(rng, 0.93)],
    }
    if some(rng, 0.6):
        status["startTime"] = "2026-01-02T03:00:10Z"
    if phase.is_terminal:
        status["completionTime"] = "2026-01-02T03:03:00Z"
        kind = str(phase)
        status["conditions"] = [
            {"type": kind, "status": "True", "reason": "r", "message": "m",
             "lastTransitionTime": "2026-01-02T03:03:00Z"}
        ]  # fmt: skip
    if some(rng, 0.2):
        record = made(rng, GangRecord, rest=0.2)
        gang: Object = {"admitted": record.admitted, "attempts": record.attempts}
        if record.incomplete_since is not None:
            gang["incompleteSince"] = rfc3339(record.incomplete_since)
        if record.retry_time is not None:
            gang["retryTime"] = rfc3339(record.retry_time)
        status["gang"] = gang
    if some(rng, 0.2):
        status["requests"] = {"restart": "t0"}
    if some(rng, 0.3):
        status["checkpoint"] = {
            key: value
            for key, value in {
                "resumeStep": 500,
                "stoppedStep": rng.choice((500, 540)),
                "stoppedTime": "2026-01-02T03:03:00Z",
                "keptStep": rng.choice((480, 500)),
                "keptTime": "2026-01-02T03:02:00Z",
                "stopCause": str(rng.choice(list(StopCause))),
            }.items()
            if some(rng, 0.9)
        }
    if some(rng, 0.2):
        status["stop"] = {
            "cause": str(rng.choice(list(StopCause))),
            "since": "2026-01-02T03:03:00Z",
            "until": rfc3339(NOW + timedelta(seconds=rng.choice((-1, 0, 1, 40)))),
            "jobs": [each.name for each in wanted if some(rng, 0.7)],
        }
    if some(rng, 0.2):
        status["lostWork"] = [{"cause": "Suspended", "stops": 1, "steps": 4, "milliseconds": 900}]
    if some(rng, 0.4):
        training = _training(rng)
        status["training"] = {**training_object(training), "progress": "step 1", "steps": 1000}
    if some(rng, 0.4):
        status["goodput"] = {
            "since": "2026-01-02T03:01:00.000000Z",
            "state": str(rng.choice(list(TimeUse))),
            "milliseconds": {"Productive": 60000, "Starting": 5000},
            "ratio": "0.900",
        }
    if some(rng, 0.2):
        status["expectedStart"] = {"time": "2026-01-02T04:00:00Z", "after": "other"}
    return status


def _entry(rng: random.Random, each: SubJob, base: str) -> Object:
    phases = {
        "nothing": ("Unplaced", "Unplaced", "Queued"),
        "made": ("Placed", "Queued"),
        "placed": ("Placed", "Pending"),
        "runs": ("Running",) * 5 + ("Pending", "Placed"),
        "ended": ("Completed", "Completed", "Failed", "Running"),
    }.get(base, (*map(str, JobPhase), "Unplaced", "Queued", "Placed"))
    phase = rng.choice(phases)
    entry: Object = {
        "name": each.name,
        "replicatedJob": each.group.name,
        "index": each.index,
        "phase": phase,
        "cluster": "" if phase == "Unplaced" else rng.choice(("a", "a", "b")),
        "pods": each.size.pods,
        "accelerators": each.size.accelerators,
        "lastTransitionTime": rfc3339(NOW - timedelta(seconds=rng.choice((0, 9, 31, 301, 1000)))),
    }
    if phase == "Running":
        entry |= {"running": each.size.pods, "startTime": "2026-01-02T03:01:00Z"}
    odd: dict[str, Any] = {
        "reason": rng.choice(("Restarting", "GangBackOff", "PodsPending", "JobFailed")),
        "message": rng.choice(("hj-g0-0 is Failed on a", "words")),
        "attempt": rng.choice((1, 2)),
        "admitted": True,
        "excludedClusters": rng.choice((["a"], ["b", "c"])),
        "retryTime": rfc3339(NOW + timedelta(seconds=rng.choice((-1, 0, 1, 30)))),
        "rejections": [_rejection(rng) for _ in range(rng.choice((1, 2)))],
        "silence": _silence(rng),
        "startTime": "2026-01-02T03:00:50Z",
        "failure": made(rng, ContainerFailure, pod=f"{each.name}-worker-0").to_object(),
        "history": [made(rng, Run, rest=0.3).to_object() for _ in range(rng.choice((1, 3)))],
        "training": {**training_object(_training(rng)), "attempt": 0, "uid": ""},
        "running": 1,
    }
    return entry | {key: value for key, value in odd.items() if some(rng, 0.12)}


def _rejection(rng: random.Random) -> Object:
    each = made(rng, Rejection, rest=0.2, cluster=rng.choice(("a", "b")))
    entry: Object = {"cluster": each.cluster, "times": each.times}
    if each.since is not None:
        entry["since"] = rfc3339(NOW - timedelta(seconds=rng.choice((0, 9, 10, 11))))
    if each.retry_time is not None:
        entry["retryTime"] = rfc3339(each.retry_time)
    return entry


def _silence(rng: random.Random) -> Object:
    each = made(rng, Silence, rest=0.0)
    moment = NOW + timedelta(seconds=rng.choice((-1, 0, 1, 60)))
    return {"times": each.times, "retryTime": rfc3339(moment)}


def _ask(rng: random.Random, raw: Object, names: list[str]) -> None:
    """Let users ask for something."""
    metadata, spec = raw["metadata"], raw["spec"]
    if some(rng, 0.15):
        kind = rng.choice(("restart", "migrate"))
        words = " ".join(["t1", *rng.sample(names, min(len(names), rng.choice((0, 1, 2))))])
        metadata["annotations"] = {f"training.volcano.sh/{kind}": words}
    if some(rng, 0.1):
        spec["suspend"] = True
    if some(rng, 0.03):
        metadata["deletionTimestamp"] = "2026-01-02T03:04:00Z"
