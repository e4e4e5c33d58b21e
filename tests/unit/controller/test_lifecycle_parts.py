"""Decisions of the lifecycle, each by itself: attempts, requests, deadlines, refusals, starts."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.checkpoint import StopCause
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.expansion.expand import expand, sub_jobs
from hyperjob_engine.gang.giveback import gave_back, next_try
from hyperjob_engine.gang.rejections import check_rejection
from hyperjob_engine.lifecycle.causes import unread
from hyperjob_engine.lifecycle.decisions import Member
from hyperjob_engine.lifecycle.history import kept, next_attempt
from hyperjob_engine.lifecycle.outage import records_share
from hyperjob_engine.lifecycle.quorum import has_trained
from hyperjob_engine.lifecycle.requests import answer
from hyperjob_engine.lifecycle.stops import going_on, is_over
from hyperjob_engine.lifecycle.unstarted import closed_in, not_started
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.observed import GangRecord, Observed, QueueAdmission, Refusal, Stop
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.model.request import ClosedQueue
from hyperjob_engine.model.runs import Run
from hyperjob_engine.model.training import JobTraining
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.detail import GaveBack
from hyperjob_engine.reasons.failure import ContainerFailure
from hyperjob_engine.reasons.outcomes import Loss, RequestProblem
from hyperjob_engine.reasons.podsrefused import PodsRefused
from hyperjob_engine.reasons.shortage import Shortage, ShortageCode
from hyperjob_engine.steps.deadline import until_deadline
from tests.unit.controller.builders import (
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    owner,
    policy,
    vcjob_status,
)

NAME = "hj-trainer-0"
SECOND = timedelta(seconds=1)


def members_of(seen: Observed) -> list[Member]:
    groups = expand(seen.hyperjob)
    indices = {each.name: range(each.replicas) for each in seen.hyperjob.replicated_jobs}
    return [(each, child_of(seen, each.name)) for each in sub_jobs(seen.hyperjob, groups, indices)]


def entry(number: int = 0, **fields: Any) -> Object:
    known = {"name": f"hj-trainer-{number}", "replicatedJob": "trainer", "index": number}
    return {**known, "phase": "Running", "cluster": "a", **fields}


def applied(name: str = NAME, *, phase: str = "Pending", **pods: int) -> Object:
    """Build a ResourceBinding that cluster a has applied a minute ago."""
    made = binding(name, cluster="a", status=vcjob_status(phase, pods))
    since = rfc3339(NOW - timedelta(minutes=1))
    made["status"]["conditions"] = [
        {"type": "FullyApplied", "status": "True", "lastTransitionTime": since}
    ]
    return made


RUN = {"attempt": 2, "cluster": "a", "phase": "Running"}
ATTEMPTS: dict[str, tuple[list[Object], list[Object], str, int]] = {
    "its run has its own": ([RUN], [], "Unplaced", 3),
    "it has not run": ([], [], "Unplaced", 2),
    "only an earlier attempt has run": ([{**RUN, "attempt": 1}], [], "Unplaced", 2),
    "its vcjob is there": ([RUN], [job(NAME)], "Running", 2),
    "its policy is there": ([RUN], [policy(NAME)], "Running", 2),
    "it has ended": ([RUN], [], "Completed", 2),
}


@pytest.mark.parametrize(
    ("history", "objects", "phase", "attempt"), ATTEMPTS.values(), ids=list(ATTEMPTS)
)
def test_the_next_vcjob_has_a_new_attempt_after_a_run_of_this_one(
    history: list[Object], objects: list[Object], phase: str, attempt: int
) -> None:
    status = {"jobs": [entry(attempt=2, phase=phase, history=history)]}
    for each in objects:
        each["metadata"]["labels"]["training.volcano.sh/attempt"] = "2"
    seen = observed(hyperjob(group(replicas=1), status=status), *objects)
    assert next_attempt(child_of(seen, NAME)) == attempt


def test_runs_without_last_lines_take_no_place_of_those_that_have_them() -> None:
    def run(end: int, message: str) -> Run:
        failure = ContainerFailure(pod="p", message=message) if message else None
        return Run(attempt=0, cluster="a", start="", end=f"{end:03}", phase="Failed",
                   reason="", message="", failure=failure)  # fmt: skip

    failed = [[run(number, "Traceback:\nValueError: no data")] for number in range(64)]
    later = [[run(100, "")], [run(101, "exit")], [run(102, "")]]
    found = kept([*failed, *later])
    assert all(runs[0].failure and runs[0].failure.last_lines for runs in found[:64])


def test_names_that_no_sub_job_has_are_refused_and_the_others_start_again() -> None:
    annotations = {"training.volcano.sh/restart": "t1 gone hj-trainer-1"}
    raw = hyperjob(status={"jobs": [entry(0), entry(1)]})
    raw["metadata"]["annotations"] = annotations
    seen = observed(raw, job(NAME), job("hj-trainer-1"))
    found = answer(seen.hyperjob, members_of(seen), no_target=lambda _: ())
    assert found is not None
    assert [each.name for each in found.restart.again] == ["hj-trainer-1"]
    (refused,) = found.refused
    assert (refused.problem, list(refused.names)) == (RequestProblem.UNKNOWN_SUB_JOB, ["gone"])


def test_of_the_named_sub_jobs_those_move_that_have_another_cluster() -> None:
    raw = hyperjob(group(replicas=4), status={"jobs": [entry(number) for number in range(4)]})
    raw["metadata"]["annotations"] = {
        "training.volcano.sh/migrate": "t1 hj-trainer-0 hj-trainer-1 hj-trainer-2"
    }
    objects = [
        each for n in range(3) for each in (job(f"hj-trainer-{n}"), policy(f"hj-trainer-{n}"))
    ]
    objects[0] = job(NAME, phase="Completed")
    seen = observed(raw, *objects)
    short = Shortage(code=ShortageCode.NO_ROOM)
    found = answer(
        seen.hyperjob,
        members_of(seen),
        no_target=lambda name: (short,) if name == "hj-trainer-1" else (),
    )
    assert found is not None
    (moved,) = found.restart.again
    assert (moved.name, moved.leave) == ("hj-trainer-2", ("a",))
    completed, full = found.refused
    assert (completed.problem, list(completed.names)) == (RequestProblem.COMPLETED, [NAME])
    assert (full.problem, full.cluster, list(full.shortages)) == (
        RequestProblem.NO_OTHER_CLUSTER,
        "a",
        [short],
    )


@pytest.mark.parametrize(
    ("created", "mode", "account", "left"),
    [
        ("2026-01-02T03:00:00Z", "Total", {}, timedelta(seconds=355)),
        ("2026-01-02T02:54:05Z", "Total", {}, None),
        ("", "Total", {}, None),
        ("2026-01-02T03:00:00Z", "RunTime", {}, None),
        ("2026-01-02T03:00:00Z", "RunTime", {"state": "productive"}, timedelta(seconds=540)),
        ("2026-01-02T03:00:00Z", "RunTime", {"state": "suspended"}, None),
    ],
)
def test_the_deadline_comes_closer_while_its_time_runs(
    created: str, mode: str, account: Object, left: timedelta | None
) -> None:
    goodput = {"since": "2026-01-02T03:03:05.000000Z", "milliseconds": {}, **account}
    raw = hyperjob(
        activeDeadlineSeconds=600,
        activeDeadlineMode=mode,
        status={"goodput": goodput} if account else {},
    )
    raw["metadata"]["creationTimestamp"] = created
    assert until_deadline(observed(raw)) == left


def test_the_earliest_refusal_that_counts_or_ends_is_waited_for() -> None:
    rejections = [
        {"cluster": name, "times": 1, "retryTime": rfc3339(NOW + timedelta(seconds=seconds))}
        for name, seconds in (("a", 30), ("b", 10), ("c", -5))
    ]
    status = {"jobs": [entry(phase="Unplaced", cluster="", rejections=rejections)]}
    seen = observed(hyperjob(status=status))
    found = check_rejection(child_of(seen, NAME), now=NOW)
    assert found.wait == timedelta(seconds=10)
    assert found.excluded == {"a", "b"}
    assert [each.cluster for each in found.left_out] == ["a", "b"]


READ = JobTraining(step=1, updated=NOW, start_step=0, started=NOW)


@pytest.mark.parametrize(
    ("phase", "training", "waits"),
    [
        ("Completed", READ, True),
        ("Running", READ, False),
        ("Completed", replace(READ, ended=True), False),
        ("Completed", replace(READ, attempt=1), False),
        ("Completed", replace(READ, reported=False), False),
        ("Completed", None, False),
        ("Completed", replace(READ, ends=NOW - timedelta(hours=1)), False),
    ],
)
def test_the_end_waits_for_the_last_lines_of_a_sub_job_that_reports(
    phase: str, training: JobTraining | None, waits: bool
) -> None:
    status = vcjob_status(phase, since=rfc3339(NOW - 2 * SECOND))
    seen = observed(
        hyperjob(group(replicas=1)), job(NAME), binding(NAME, cluster="a", status=status)
    )
    seen = replace(seen, trainings={NAME: training} if training is not None else {})
    found = unread(seen, members_of(seen))
    assert (found is not None) is waits
    ahead = vcjob_status("Completed", since=rfc3339(NOW + timedelta(hours=1)))
    far = replace(
        observed(hyperjob(group(replicas=1)), job(NAME), binding(NAME, cluster="a", status=ahead)),
        trainings={NAME: READ},
    )
    near = replace(far, now=NOW + timedelta(hours=1))
    assert unread(far, members_of(far)) == unread(near, members_of(near)), "a clock that is ahead"


def test_a_gang_that_never_gave_back_says_nothing_of_it() -> None:
    retry = NOW + timedelta(minutes=5)
    records: dict[str, GangRecord | None] = {
        "none": None,
        "incomplete": GangRecord(incomplete_since=NOW, attempts=1),
        "given back": GangRecord(attempts=2, retry_time=retry),
    }
    seen = observed()
    found = {
        name: gave_back(replace(seen, hyperjob=replace(seen.hyperjob, gang=record)))
        for name, record in records.items()
    }
    assert found == {
        "none": None,
        "incomplete": None,
        "given back": GaveBack(2, retry, (), ""),
    }


def test_only_a_gang_that_left_a_cluster_says_why_it_refused_its_pods() -> None:
    gang = GangRecord(attempts=1, retry_time=NOW)
    seen = observed()
    seen = replace(
        seen,
        hyperjob=replace(seen.hyperjob, gang=gang),
        pods_refused={NAME: PodsRefused("quota", NOW, NOW)},
    )
    found = [gave_back(seen, ["a"], name=NAME), gave_back(seen, [], name=NAME)]
    assert [each and each.refused for each in found] == ["quota", ""]
    other = gave_back(seen, ["a"], name="other")
    assert other is not None
    assert (list(other.left), other.refused) == (["a"], "")


def test_a_gang_waits_longer_each_time_in_whole_seconds() -> None:
    seen = replace(observed(admission=QueueAdmission.BUILTIN), gang_timeout=timedelta(minutes=4))
    tries = [next_try(seen, number, False) for number in (1, 2, 3)]
    waits = [each.retry_time - NOW for each in tries if each and each.retry_time]
    assert [wait.microseconds for wait in waits] == [0, 0, 0]
    # A window of a quarter of the timeout, doubled each time, and up to as much again.
    for wait, window in zip(waits, (60, 120, 240), strict=True):
        assert window * SECOND <= wait <= 2 * window * SECOND + SECOND
    soon = next_try(seen, 1, True)
    assert soon is not None
    assert soon.retry_time is not None
    assert 2 * SECOND <= soon.retry_time - NOW <= 5 * SECOND
    assert next_try(replace(seen, admission=QueueAdmission.NONE), 1, False) is None


CLOSED = {"default": ClosedQueue("default", frozenset({"a"}))}


@pytest.mark.parametrize(
    ("bound", "suspend", "queue"),
    [
        (applied(), False, "default"),
        (applied(phase="Aborting"), False, ""),
        (applied(), True, ""),
        (applied(pending=8), False, ""),
        (binding(NAME, cluster="a"), False, ""),
    ],
)
def test_a_closed_queue_holds_the_pods_that_volcano_has_not_created(
    bound: Object, suspend: bool, queue: str
) -> None:
    raw = hyperjob(group(replicas=1), suspend=suspend)
    seen = observed(raw, job(NAME), policy(NAME), bound, clusters=(cluster("a"),))
    ((sub_job, child),) = members_of(replace(seen, closed_queues=CLOSED))
    assert closed_in(replace(seen, closed_queues=CLOSED), sub_job, child) == queue


@pytest.mark.parametrize(
    ("refused", "soon"), [([], False), ([NAME], False), ([NAME, "hj-trainer-1"], True)]
)
def test_a_gang_tries_again_soon_if_every_late_sub_job_was_refused(
    refused: Sequence[str], soon: bool
) -> None:
    names = (NAME, "hj-trainer-1")
    objects = [
        each
        for name in names
        for each in (job(name), policy(name), applied(name, pending=0 if name in refused else 1))
    ]
    long_ago = NOW - timedelta(seconds=30)
    seen = replace(
        observed(hyperjob(), *objects, clusters=(cluster("a"), cluster("b"))),
        start_timeout=SECOND,
        pods_refused={name: PodsRefused("quota", long_ago, NOW) for name in refused},
    )
    tries: list[tuple[int, bool]] = []

    def try_again(number: int, early: bool) -> GangRecord | None:
        tries.append((number, early))
        return None

    found = not_started(seen, members_of(seen), minimum=2, next_try=try_again)
    assert found is not None
    assert found.gives_back
    assert [each.name for each in found.again] == list(names)
    assert tries == [(1, soon)]


@pytest.mark.parametrize(
    ("pods", "ended", "left", "over"),
    [
        (1, True, None, True),
        (1, False, None, False),
        (2, True, None, False),
        (2, True, 0, True),
        (2, False, 0, False),
        (2, True, 1, False),
    ],
)
def test_a_planned_stop_is_over_when_no_pod_is_left_and_the_last_lines_are_read(
    pods: int, ended: bool, left: int | None, over: bool
) -> None:
    seen = observed(hyperjob(group(replicas=1, gpus=pods)))
    stop = Stop(cause=StopCause.SUSPENDED, until=NOW + SECOND, jobs=(NAME,))
    seen = replace(
        seen,
        hyperjob=replace(seen.hyperjob, stop=stop),
        trainings={NAME: replace(READ, ended=ended)},
        pods_left={NAME: left},
    )
    assert is_over(seen, members_of(seen)) is over


def ended(*conditions: Object, **status: Any) -> Object:
    """Build a HyperJob that completed, with conditions as the Go controller writes them too."""
    end = {"type": "Completed", "status": "True", "reason": "JobsCompleted", "message": "m"}
    state = {"phase": "Completed", "reason": "JobsCompleted", "message": "m"}
    return {"state": state, "conditions": [{**end, **each} for each in conditions], **status}


TIMES = [{"lastTransitionTime": f"2026-01-02T03:0{minute}:05Z"} for minute in range(5)]
ENDS: dict[str, tuple[Object, timedelta]] = {
    "its completionTime": (
        ended(TIMES[4], completionTime="2026-01-02T03:02:05Z"),
        timedelta(minutes=8),
    ),
    "the last condition that is true": (
        ended(TIMES[1], TIMES[3], {"type": "Suspended", "status": "False", **TIMES[4]}),
        timedelta(minutes=9),
    ),
    "now, without a time": (ended({}), timedelta(minutes=10)),
}


@pytest.mark.parametrize(("status", "left"), ENDS.values(), ids=list(ENDS))
def test_the_time_to_live_counts_from(status: Object, left: timedelta) -> None:
    found = plan(observed(hyperjob(ttlSecondsAfterFinished=600, status=status)))
    assert (found.actions, found.requeue_after) == ((), left)


LEFT: dict[str, tuple[Object, list[Object], list[str]]] = {
    "a policy without a vcjob and a record": (entry(1), [policy(NAME)], [NAME]),
    "its own vcjob without a record": (entry(1), [job(NAME)], [NAME]),
    "its own vcjob without the labels": (entry(1), [job(NAME, marked={})], []),
    "the vcjob of another": (entry(1), [job(NAME, owners=owner("other"))], []),
    "one that completed": (entry(phase="Completed"), [job(NAME, phase="Completed")], []),
    "one that its end stopped": (
        entry(phase="Terminated", reason="EndedWithHyperJob"),
        [job(NAME, phase="Running")],
        [NAME],
    ),
    "one of an earlier attempt": (entry(attempt=1), [job(NAME, phase="Running")], [NAME]),
    "one that failed": (entry(phase="Failed"), [job(NAME, phase="Failed")], []),
    "one that failed and runs again": (entry(phase="Failed"), [job(NAME, phase="Running")], [NAME]),
    "one that completed and runs again": (
        entry(phase="Completed"),
        [job(NAME, phase="Running")],
        [],
    ),
}


@pytest.mark.parametrize(("record", "objects", "deleted"), LEFT.values(), ids=list(LEFT))
def test_an_ended_hyperjob_keeps_its_sub_jobs_except(
    record: Object, objects: list[Object], deleted: list[str]
) -> None:
    status = ended({}, jobs=[record])
    found = plan(observed(hyperjob(status=status), *objects))
    assert [each.name for each in found.actions] == deleted


@pytest.mark.parametrize(
    ("stop", "seconds"),
    [
        ({}, 0),
        ({"keptTime": "2026-01-02T03:01:00Z"}, 30),
        ({"keptTime": "2026-01-02T03:02:00Z"}, 0),
        ({"keptTime": "2026-01-02T03:03:00Z"}, 0),
        ({"keptTime": "2026-01-02T03:01:00Z", "keptStep": 100}, 0),
    ],
)
def test_lost_steps_took_their_part_of_the_time_since_the_step_that_was_kept(
    stop: Object, seconds: int
) -> None:
    checkpoint = {
        "stopCause": "Failure",
        "stoppedTime": "2026-01-02T03:02:00Z",
        "stoppedStep": 100,
        "keptStep": 20,
        "resumeStep": 60,
        **stop,
    }
    resumed = replace(READ, start_step=60, started=NOW, step=70)
    raw = hyperjob(group(replicas=1), status={"jobs": [entry()], "checkpoint": checkpoint})
    seen = replace(observed(raw, job(NAME)), trainings={NAME: resumed})
    found = going_on(seen, members_of(seen))
    assert found["checkpoint"] == {"resumeStep": 60}
    assert found["lostWork"] == [
        {"cause": "Failure", "stops": 1, "steps": 40, "milliseconds": seconds * 1000}
    ]
    silent = replace(seen, trainings={NAME: replace(resumed, reported=False)})
    assert going_on(silent, members_of(silent)) == {"checkpoint": checkpoint}
    before = replace(seen, trainings={NAME: replace(resumed, started=NOW - timedelta(hours=1))})
    assert going_on(before, members_of(before)) == {"checkpoint": checkpoint}


@pytest.mark.parametrize(
    ("lost", "decided"), [(None, False), (False, False), (True, True)], ids=str
)
def test_a_sub_job_on_a_lost_cluster_does_not_keep_a_completed_training_from_its_end(
    lost: bool | None, decided: bool
) -> None:
    """A cluster that is not Ready for a moment is no lost one."""
    raw = hyperjob(quorum=1)
    seen = observed(raw, job(NAME, phase="Completed"), job("hj-trainer-1", phase="Running"))
    losses = (
        {} if lost is None else {"hj-trainer-1": Loss(cluster="a", at=NOW, is_lost=lost, since=NOW)}
    )
    found = has_trained(seen.hyperjob, members_of(seen), losses)
    assert (found is not None) is decided


@pytest.mark.parametrize(
    ("records", "live", "since", "shown"),
    [
        ([{"admitted": True}, {}], [], -1, True),
        ([{"admitted": True}, {}], [job(NAME)], -1, False),
        ([{"admitted": True}, {}], [], 1, False),
        ([{}, {}], [], -1, False),
    ],
)
def test_the_share_of_a_missing_sub_job_is_recorded_while_an_outage_gives_its_room_back(
    records: list[Object], live: list[Object], since: int, shown: bool
) -> None:
    jobs = [entry(number, phase="Queued", **fields) for number, fields in enumerate(records)]
    refusal = Refusal(
        reason="FailedCreate",
        message="m",
        retry_at=NOW + SECOND,
        gives_back_at=NOW + since * SECOND,
    )
    seen = observed(hyperjob(status={"jobs": jobs}), *live, refusals={NAME: refusal})
    assert records_share(seen, [child for _, child in members_of(seen)]) is shown
    over = replace(seen, now=NOW + SECOND)
    assert not records_share(over, [child for _, child in members_of(over)])


def test_a_success_policy_for_no_sub_job_is_never_satisfied() -> None:
    policy_ = {"operator": "All", "targetReplicatedJobs": ["nobody"]}
    status = {"state": {"phase": "Running"}}
    objects = [job(NAME, phase="Completed"), job("hj-trainer-1", phase="Running")]
    decided = plan(observed(hyperjob(successPolicy=policy_, status=status), *objects))
    assert decided.status is not None
    assert decided.status["state"]["phase"] != "Completed"


@pytest.mark.parametrize(
    ("admission", "bound", "held"),
    [
        (QueueAdmission.BUILTIN, binding(NAME, cluster="a", gate="held"), True),
        (QueueAdmission.BUILTIN, binding(NAME, cluster="a", gate="open"), False),
        (QueueAdmission.NONE, binding(NAME, cluster="a", gate="held"), False),
    ],
)
def test_a_policy_that_a_person_deleted_is_created_with_the_gate_of_its_vcjob(
    admission: QueueAdmission, bound: Object, held: bool
) -> None:
    seen = observed(
        hyperjob(group(replicas=1), status={"jobs": [entry(phase="Placed")]}),
        job(NAME),
        bound,
        clusters=(cluster("a"),),
        admission=admission,
    )
    created = next(each for each in plan(seen).actions if isinstance(each, CreateChild))
    assert created.job is None
    assert created.policy is not None
    suspension = created.policy["spec"].get("suspension") or {}
    assert bool(suspension.get("dispatching")) is held
    (affinity,) = created.policy["spec"]["placement"]["clusterAffinities"]
    # The webhook closes the gate of a ResourceBinding with this name.
    named = "hyperjob-held" if admission is QueueAdmission.BUILTIN else "hyperjob"
    assert affinity["affinityName"] == named


def test_the_start_stays_while_a_hyperjob_waits_again() -> None:
    first = "2026-01-02T03:01:00Z"
    waits = plan(observed(hyperjob(status={"startTime": first}), clusters=(cluster("a", 0),)))
    assert waits.status is not None
    assert waits.status["state"]["phase"] == "Pending"
    assert waits.status["startTime"] == first
    new = plan(observed(hyperjob(), clusters=(cluster("a", 0),)))
    assert new.status is not None
    assert "startTime" not in new.status
