"""Programs that make no steps: when the reader says it, and what the plan does about it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperjob_controller.training.watch import Watch, watch
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.training import Hang, Stall
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.reasons.stacks import Pod, Stack, comparison, parse_stack, survey_of
from tests.unit.controller.test_training_reader import T0, Bench, hear, job, refusal, seen, source
from tests.unit.controller.test_training_reader import text as line
from tests.unit.engine.builders import NOW, Object, child, cluster, group, hyperjob, observed

REDUCE = [["all_reduce", "/x/site-packages/torch/distributed.py", 288], ["step", "/w/train.py", 88]]
LOADER = [["__next__", "/w/loader.py", 412]]


def at(second: float) -> datetime:
    return T0 + timedelta(seconds=second)


def said(second: float, **fields: Any) -> bytes:
    stamp = at(second).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    return f"{stamp} {json.dumps({'hyperjob': fields})}\n".encode()


def stacks(second: float, frames: Any = REDUCE, **fields: Any) -> bytes:
    return said(second, stacks={"threads": [frames], **fields})


def looked(*looks: tuple[float, bytes], pace: float = 1.0) -> Watch:
    """Read a program that made a step every `pace` seconds up to second 30, and then each look."""
    made = watch(source(pods=1))
    times = [pace * number for number in range(1 + int(30 / pace))]
    hear(made, b"".join(line(each, step) for step, each in enumerate(times)), now=at(31))
    for second, log in looks:
        hear(made, log, now=at(second))
    return made


CASES: dict[str, tuple[Sequence[tuple[float, bytes]], bool]] = {
    "one look never decides": ([(90, b"")], False),
    "two looks do": ([(52, b""), (62, b"")], True),
    "two looks at once are one": ([(52, b""), (53, b"")], False),
    "a pause within its patience": ([(45, b""), (49, b"")], False),
    "a step in between": ([(52, b""), (62, line(60, 31))], False),
    "it has announced an evaluation": (
        [(40, said(35, phase="evaluate")), (99, b""), (299, b"")],
        False,
    ),
    "it has announced an evaluation in the instant of its last step": (
        [(40, line(35, 31) + said(35, phase="evaluate")), (99, b""), (299, b"")],
        False,
    ),
    "it makes steps again, and stops": (
        [(40, said(35, phase="save")), (99, line(98, 31)), (140, b""), (150, b"")],
        True,
    ),
    "it has made its last step, and ends slowly": (
        [(32, said(31, step=31, steps=32)), (80, b""), (90, b"")],
        False,
    ),
    "it does not end after its last step": (
        [(32, said(31, step=31, steps=32)), (640, b""), (660, b"")],
        True,
    ),
    "its stacks stay": ([(52, stacks(50)), (62, stacks(60))], True),
    "its stacks stay, those of one process elsewhere than those of another": (
        [
            (52, stacks(50, pid=7) + stacks(50, LOADER, pid=8)),
            (62, stacks(60, LOADER, pid=8) + stacks(60, pid=7)),
        ],
        True,
    ),
    "the stacks of one of two processes change": (
        [(52, stacks(50, pid=7) + stacks(50, pid=8)), (62, stacks(60, LOADER, pid=8))],
        False,
    ),
    "its stacks change: it does something": ([(52, stacks(50)), (62, stacks(60, LOADER))], False),
    "its stacks change for very long": (
        [(52, stacks(50)), (62, stacks(60, LOADER)), (155, stacks(90))],
        True,
    ),
}


@pytest.mark.parametrize(("looks", "stalled"), CASES.values(), ids=list(CASES))
def test_a_stall_is_a_silence_against_its_own_pace_in_two_looks(
    looks: Sequence[tuple[float, bytes]], stalled: bool
) -> None:
    assert (looked(*looks).stall is not None) is stalled


def test_a_slow_program_has_more_time_and_one_that_paused_before_too() -> None:
    slow = looked((65, b""), (75, b""), pace=15)
    assert slow.stall is None
    assert looked((76, b""), (99, b""), pace=15).stall is not None
    made = looked((71, line(70, 31)), (72, line(71, 32)))
    hear(made, b"", now=at(125))
    hear(made, b"", now=at(135))
    assert made.track.longest == timedelta(seconds=40)
    assert made.stall is None, "it has paused for 40 s before"


def test_a_second_stall_is_found_as_soon_as_the_first_one() -> None:
    made = looked((52, b""), (62, b""))
    assert made.stall is not None
    hear(made, b"".join(line(120 + each, 31 + each) for each in range(10)), now=at(130))
    assert made.stall is None
    assert made.track.longest == timedelta(seconds=1), "a stall is no pause that may come again"
    assert made.track.resumed == at(120)
    hear(made, b"", now=at(151))
    hear(made, b"", now=at(161))
    assert made.stall is not None


def test_the_clock_of_a_node_that_is_behind_is_no_silence() -> None:
    made = watch(source(pods=1))
    for second in range(0, 600, 15):
        # The node says that it is two minutes earlier.
        hear(made, line(second, second), now=at(second + 121))
        assert made.stall is None


def test_before_its_third_line_a_program_may_compile_for_ten_minutes() -> None:
    made = watch(source(pods=1))
    hear(made, line(0, 0), now=at(1))
    for second in (60, 300, 590):
        hear(made, b"", now=at(second))
        assert made.stall is None
    hear(made, b"", now=at(610))
    hear(made, b"", now=at(620))
    assert made.stall is not None


# Who is waited for.


def stack(frames: Any, rank: int | None, *, of: int | None = 4, where: str = "a") -> Stack:
    fields = {"rank": rank, "of": of, "pid": rank}
    pod = Pod(where, f"hj-trainer-{rank}-worker-0", f"hj-trainer-{rank}", "worker")
    raw = json.dumps({"hyperjob": {"stacks": {"threads": [frames], **fields}}}).encode()
    found = parse_stack(raw, pod=pod)
    assert found is not None
    return found


SILENT = Pod("b", "hj-trainer-3-worker-0", "hj-trainer-3", "worker")
OTHER = Pod("b", "hj-lighthouse-0-main-0", "hj-lighthouse-0", "main")


WAITING = [stack(REDUCE, rank) for rank in range(3)]
TWO_EACH = [replace(each, pod=WAITING[(each.rank or 0) // 2].pod) for each in WAITING]
FORWARDS = [["broadcast", "/x/site-packages/torch/distributed.py", 9]]
# the stacks, the pods without one -> the ranks in whose pods the others' process is looked for
SUSPECTS: dict[str, tuple[list[Stack], list[Pod], list[int]]] = {
    "one without a stack": (WAITING, [*(each.pod for each in WAITING), SILENT, OTHER], [3]),
    "a pod with one stack of two": (TWO_EACH, [], [1]),
    "two of four ranks may be in any pod": (TWO_EACH[:2], [], []),
    "one that loads": ([*WAITING, stack(LOADER, 3, where="b")], [OTHER], [3]),
    "one that loads beside two operations": (
        [*WAITING[:2], stack(FORWARDS, 2), stack(LOADER, 3)],
        [],
        [3],
    ),
    "another operation": ([*WAITING, stack(FORWARDS, 3)], [], [3]),
    "one of two that loads": ([stack(LOADER, 0, of=2), stack(REDUCE, 1, of=2)], [], [0]),
    "all of them load": ([stack(LOADER, rank, of=2) for rank in (0, 1)], [], []),
    "each is elsewhere": (
        [stack(LOADER, 0, of=2), stack([["x", "y.py", 1]], 1, of=2)],
        [],
        [],
    ),
}


@pytest.mark.parametrize(("stacks", "silent", "ranks"), SUSPECTS.values(), ids=SUSPECTS)
def test_the_pods_for_which_the_others_wait_are_those_elsewhere_and_those_without_a_stack(
    stacks: list[Stack], silent: list[Pod], ranks: list[int]
) -> None:
    found = survey_of(stacks, silent)
    assert [each.name for each in found.suspects()] == [f"hj-trainer-{n}-worker-0" for n in ranks]
    if SILENT in silent:
        text = comparison(found)
        assert text.endswith("no stack from rank 3 (pod b/hj-trainer-3-worker-0)")


# The plan.


def training(step: int = 40, **fields: Any) -> SubJobTraining:
    since = NOW - timedelta(minutes=10)
    return SubJobTraining(step=step, updated=since, start_step=0, started=since, **fields)


def stall(minutes: float = 1, step: int = 40) -> Stall:
    return Stall(
        since=NOW - timedelta(minutes=minutes), step=step, attempt=0,
        patience=timedelta(seconds=20), usual=timedelta(seconds=1),
    )  # fmt: skip


def running(
    *stalls: int, wish: str = "", minutes: float = 1, silent: Pod | None = None, **spec: Any
) -> Observed:
    """Observe two sub-jobs that run and report, some of which make no steps."""
    given = {"onNoProgress": wish} if wish else {}
    status = spec.pop("status", {})
    raw = hyperjob(group(replicas=2), status=status, **given, **spec)
    seen = observed(
        raw,
        *child(0, "Running", on="a"),
        *child(1, "Running", on="b"),
        clusters=(cluster("a"), cluster("b"), cluster("c")),
    )
    found = [stack(REDUCE, 0, of=2)] if silent is not None else []
    survey = survey_of(found, [silent] if silent is not None else [])
    hang = Hang(stalls={f"hj-trainer-{each}": stall(minutes) for each in stalls}, survey=survey)
    trainings = {f"hj-trainer-{each}": training() for each in (0, 1)}
    return replace(seen, trainings=trainings, hang=hang if stalls else None)


def status_of(seen: Observed) -> Object:
    status = plan(seen).status
    assert status is not None
    return status


def test_a_training_that_makes_no_steps_says_so_in_status_reason_and_event() -> None:
    gone = Pod("b", "hj-trainer-1-worker-0", "hj-trainer-1", "worker")
    decided = plan(running(0, 1, silent=gone))
    state = decided.status["state"]
    assert (state["phase"], state["reason"]) == (Phase.RUNNING, Reason.NO_PROGRESS)
    assert "no stack from rank 1 (pod b/hj-trainer-1-worker-0)" in state["message"]
    assert decided.status["stall"]["suspects"] == [
        {"cluster": "b", "pod": "hj-trainer-1-worker-0", "job": "hj-trainer-1"}
    ]
    assert [event.reason for event in decided.events if event.type == "Warning"] == ["NoProgress"]
    assert decided.status["goodput"]["state"] == TimeUse.STALLED
    assert "estimatedCompletionTime" not in decided.status["training"]
    assert decided.actions == ()


def test_one_of_two_programs_that_stalls_is_named_and_the_time_stays_productive() -> None:
    found = status_of(running(1))
    assert found["stall"]["jobs"] == ["hj-trainer-1"]
    assert found["stall"].get("whole", False) is False
    assert found["goodput"]["state"] == TimeUse.PRODUCTIVE


def test_the_record_stays_until_a_program_makes_a_step() -> None:
    before = status_of(running(0, 1))
    read_nothing = replace(running(status=before), trainings={})
    assert status_of(read_nothing)["stall"] == before["stall"]
    moved = replace(
        running(status=before), trainings={f"hj-trainer-{each}": training(41) for each in (0, 1)}
    )
    after = status_of(moved)
    assert after["stall"] is None
    assert after["state"]["reason"] == Reason.JOBS_RUNNING


@pytest.mark.parametrize(
    ("wish", "minutes", "restarts"),
    [("", 60, False), ("Notify", 60, False), ("Restart", 1.9, False), ("Restart", 2.1, True)],
)
def test_a_restart_is_asked_for_and_waits_for_longer_than_a_notice(
    wish: str, minutes: float, restarts: bool
) -> None:
    seen = running(0, 1, wish=wish, minutes=minutes, failurePolicy={"maxRestarts": 2})
    decided = plan(seen)
    assert decided.status.get("restarts", 0) == int(restarts)
    if restarts:
        jobs = decided.status["jobs"]
        assert [each["attempt"] for each in jobs] == [1, 1]
        assert {each["history"][-1]["reason"] for each in jobs} == {Reason.NO_PROGRESS}
        assert decided.status.get("stall") is None
    elif wish == "Restart":
        assert decided.requeue_after is not None
        assert decided.requeue_after <= timedelta(seconds=7)


def test_a_move_leaves_the_cluster_for_which_the_others_wait() -> None:
    gone = Pod("b", "hj-trainer-1-worker-0", "hj-trainer-1", "worker")
    policy = {"maxRestarts": 2}
    seen = running(0, 1, wish="Migrate", minutes=9, silent=gone, failurePolicy=policy)
    excluded = [each.get("excludedClusters") for each in status_of(seen)["jobs"]]
    assert excluded == [None, ["b"]]


def test_the_cause_of_a_restart_is_the_pod_for_which_the_others_wait() -> None:
    gone = Pod("b", "hj-trainer-1-worker-0", "hj-trainer-1", "worker")
    seen = running(0, 1, wish="Restart", minutes=9, silent=gone, failurePolicy={"maxRestarts": 2})
    healthy, suspect = (each["history"][-1] for each in status_of(seen)["jobs"])
    assert (healthy["reason"], suspect["reason"]) == (Reason.RESTARTED_WITH_ALL, Reason.NO_PROGRESS)
    assert "the others wait for pod b/hj-trainer-1-worker-0: no step since" in suspect["message"]


def test_with_a_quorum_the_stalled_sub_job_restarts_alone() -> None:
    seen = running(1, wish="Restart", minutes=9, failurePolicy={"maxRestarts": 2}, quorum=1)
    assert [each.get("attempt", 0) for each in status_of(seen)["jobs"]] == [0, 1]
    both = replace(running(0, 1, wish="Restart", minutes=9, quorum=1), hyperjob=seen.hyperjob)
    assert status_of(both)["restarts"] == 2, "each alone, and each costs one"


def test_a_stall_of_all_leaves_what_has_completed_and_may_use_the_last_restart() -> None:
    seen = running(1, wish="Restart", minutes=9, failurePolicy={"maxRestarts": 1})
    done = observed(hyperjob(), *child(0, "Completed"))
    seen = replace(
        seen,
        jobs=seen.jobs | done.jobs,
        bindings=seen.bindings | done.bindings,
        trainings={"hj-trainer-1": training()},
    )
    decided = status_of(seen)
    assert decided["restarts"] == 1
    assert [each.get("attempt", 0) for each in decided["jobs"]] == [0, 1]


def test_after_the_last_restart_it_fails_with_the_reason() -> None:
    seen = running(
        0, 1, wish="Restart", minutes=9, failurePolicy={"maxRestarts": 2}, status={"restarts": 2}
    )
    state = status_of(seen)["state"]
    assert (state["phase"], state["reason"]) == (Phase.FAILED, Reason.MAX_RESTARTS)
    assert "has reported no step since" in state["message"]


# Reading.


async def test_all_pods_are_read_when_a_program_makes_no_steps() -> None:
    async with Bench(interval=0.02) as bench:
        clock = [at(31)]
        bench.reader._now = lambda: clock[0]
        steps = b"".join(line(number, number) for number in range(31))
        bench.logs.answers["a/hj-trainer-0-worker-0"] = steps
        for number in range(1, 4):
            pod = f"a/hj-trainer-0-worker-{number}"
            bench.logs.answers[pod] = stacks(52, REDUCE, rank=number, of=4)
        bench.logs.answers["a/hj-trainer-0-worker-1"] = stacks(52, LOADER, rank=1, of=4)
        bench.logs.answers["a/hj-trainer-0-worker-3"] = refusal(500, "InternalError")
        bench.planned(seen(job(phase="Running", gpus=4)))
        await bench.until(lambda: bench.reader.trainings("default/hj"))
        assert bench.reader.hang("default/hj") is None
        for second in (60, 90, 120):
            clock[0] = at(second)
            asked = len(bench.logs.asked)
            await bench.until(lambda: len(bench.logs.asked) > asked)  # noqa: B023
        await bench.until(lambda: bench.reader.hang("default/hj"))
        hang = bench.reader.hang("default/hj")
        assert hang.stalls["hj-trainer-0"].step == 30
        assert [each.rank for each in hang.survey.stacks] == [1, 2]
        assert [pod.name for pod in hang.survey.silent] == ["hj-trainer-0-worker-0"]
        bench.logs.answers["a/hj-trainer-0-worker-0"] = steps + line(121, 31)
        await bench.until(lambda: bench.reader.hang("default/hj") is None)
