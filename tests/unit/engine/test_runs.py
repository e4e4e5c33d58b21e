"""How the runs of a sub-job are written down: when each began and ended, where, and why."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api import table
from hyperjob_core.api.status import ContainerFailure, Run
from hyperjob_engine.lifecycle.records import kept
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.parse import parse_report
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import bounded, container_text
from hyperjob_engine.status.transitions import status_events
from tests.unit.engine.builders import (
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
)

A, B = cluster("a"), cluster("b")
NAME = "hj-trainer-0"
BEGAN, ENDED, NOW_TEXT = "2026-01-02T03:00:30Z", "2026-01-02T03:02:00Z", "2026-01-02T03:04:05Z"
POLICY = {"maxRestarts": 9, "rules": [{"action": "RestartJob"}]}
OOM = {"pod": f"{NAME}-worker-3", "container": "main", "exitCode": 137, "reason": "OOMKilled"}


def after(old: Object, *objects: Object, **spec: Any) -> Object:
    """Give the entry of the only sub-job after one pass that finds this status."""
    status = {"state": {"phase": "Running"}, "jobs": [old]} if old else {}
    raw = hyperjob(group(replicas=1), status=status, **({"failurePolicy": POLICY} | spec))
    return plan(observed(raw, *objects, clusters=(A, B))).status["jobs"][0]


def entry(**fields: Any) -> Object:
    known = {"phase": "Running", "cluster": "a", "startTime": BEGAN, "lastTransitionTime": BEGAN}
    return job_status(0, **known | fields)


def test_a_run_begins_when_the_vcjob_runs_and_goes_on_through_its_end() -> None:
    assert "startTime" not in after({}, *child(0, "Pending"))
    running = after({}, *child(0, "Running"))
    assert running["startTime"] == BEGAN
    restarted_by_volcano = after(running, *child(0, "Restarting", since=ENDED))
    assert restarted_by_volcano["startTime"] == BEGAN
    completed = after(restarted_by_volcano, *child(0, "Completed", since=ENDED))
    assert (completed["startTime"], completed["lastTransitionTime"]) == (BEGAN, ENDED)
    assert "history" not in completed


def test_the_conditions_of_a_vcjob_say_when_it_began_where_no_pass_saw_it_run() -> None:
    conditions = [
        {"status": "Pending", "lastTransitionTime": "2026-01-02T03:00:00Z"},
        {"status": "Running", "lastTransitionTime": BEGAN},
        {"status": "Failed", "lastTransitionTime": ENDED},
    ]
    state = {"phase": "Failed", "lastTransitionTime": ENDED}
    report = parse_report({"state": state, "conditions": conditions})
    assert report.began == BEGAN


ENDS = {
    "a failure": (child(0, "Failed", since=ENDED), {}, "JobFailed", "Failed", ENDED),
    "a lost cluster": (child(0, "Running"), {"lost": "a"}, "ClusterLost", "Running", NOW_TEXT),
    "a requested restart": (
        child(0, "Running"),
        {"annotation": ("restart", "now")},
        "RestartRequested",
        "Running",
        NOW_TEXT,
    ),
    "a requested move": (
        child(0, "Running"),
        {"annotation": ("migrate", f"now {NAME}")},
        "MigrateRequested",
        "Running",
        NOW_TEXT,
    ),
}


@pytest.mark.parametrize(
    ("objects", "world", "reason", "phase", "end"), ENDS.values(), ids=list(ENDS)
)
def test_a_run_that_is_made_again_becomes_history_with_its_reason(
    objects: list[Object], world: Object, reason: str, phase: str, end: str
) -> None:
    raw = hyperjob(
        group(replicas=1),
        failurePolicy=POLICY,
        status={"state": {"phase": "Running"}, "jobs": [entry()]},
    )
    if "annotation" in world:
        kind, text = world["annotation"]
        raw["metadata"]["annotations"] = {f"training.volcano.sh/{kind}": text}
    clusters = (A, B)
    if "lost" in world:
        gone = replace(
            cluster("a", unusable="is not Ready"), not_ready_since=NOW - timedelta(hours=1)
        )
        clusters = (gone, B)
    decided = plan(observed(raw, *objects, clusters=clusters))
    (again,) = decided.status["jobs"]
    assert again["attempt"] == 1
    assert "startTime" not in again
    (run,) = again["history"]
    assert run.pop("message", "") or reason == "JobFailed"
    assert run == {
        "attempt": 0,
        "cluster": "a",
        "startTime": BEGAN,
        "endTime": end,
        "phase": phase,
        "reason": reason,
    }


def test_a_sub_job_that_never_ran_leaves_no_run_unless_it_failed() -> None:
    never = {key: value for key, value in entry(phase="Pending").items() if key != "startTime"}
    raw = hyperjob(
        group(replicas=1), failurePolicy=POLICY, status={"jobs": [never], "state": {"phase": "x"}}
    )
    raw["metadata"]["annotations"] = {"training.volcano.sh/restart": "now"}
    decided = plan(observed(raw, *child(0, "Pending"), clusters=(A,)))
    assert "history" not in decided.status["jobs"][0]
    failed = after(never, *child(0, "Failed", since=ENDED))
    assert [run["reason"] for run in failed["history"]] == ["JobFailed"]
    assert "startTime" not in failed["history"][0]


def test_a_suspension_ends_the_run_once_its_vcjob_goes() -> None:
    stays = after(entry(), *child(0, "Running"), suspend=True)
    assert (stays["startTime"], stays["reason"]) == (BEGAN, "Suspended")
    gone = after(stays, suspend=True)
    assert "startTime" not in gone
    (run,) = gone["history"]
    assert (run["reason"], run["startTime"], run["endTime"]) == ("Suspended", BEGAN, NOW_TEXT)
    assert (run["phase"], run["cluster"], run["attempt"]) == ("Running", "a", 0)
    assert after(gone, suspend=True)["history"] == [run], "and is told once"


def test_what_failed_first_goes_into_history_with_the_run_and_into_one_event() -> None:
    old, new = entry(), entry(failure=OOM)
    (event,) = status_events(
        {"state": {"phase": "Running"}, "jobs": [old]},
        {"state": {"phase": "Running"}, "jobs": [new]},
    )
    assert (event.type, event.reason) == ("Warning", "JobFailed")
    assert event.note == (
        f"{NAME} failed on a: pod {NAME}-worker-3, container main: exit code 137"
        " (killed by the kernel for its memory), OOMKilled"
    )
    again = after(new, *child(0, "Failed", since=ENDED))
    assert again["history"][0]["failure"] == OOM
    assert "failure" not in again


def run(end: str) -> Run:
    return Run(attempt=0, cluster="a", start=BEGAN, end=end, phase="Failed", reason="JobFailed")


@given(st.lists(st.lists(st.text("0123456789", max_size=3), max_size=30), max_size=200))
def test_the_latest_runs_are_kept_ten_of_each_and_five_hundred_of_all(ends: list[Any]) -> None:
    histories = [[run(end) for end in sorted(each)] for each in ends]
    found = kept(histories)
    assert all(len(each) <= 10 for each in found)
    assert sum(map(len, found)) == min(500, sum(min(10, len(each)) for each in histories))
    for before, after_ in zip(histories, found, strict=True):
        assert list(after_) == before[len(before) - len(after_) :]


def test_runs_and_failures_read_back_as_they_were_written() -> None:
    failure = ContainerFailure(
        pod="p", task="worker", container="c", exit_code=0, reason="Error", time=ENDED
    )
    written = replace(run(ENDED), failure=failure)
    assert table.read_all(Run, [table.write(written)]) == (written,)
    assert table.read(ContainerFailure, {"exitCode": 3}) is None
    assert table.read_all(Run, "nothing") == ()


TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3\nValueError: no data\n'


def test_the_last_lines_of_a_failure_are_kept_bounded_and_printable() -> None:
    failure = ContainerFailure(pod="p", reason="R" * 999, message="\x1b[2J" + "a\n b" * 999)
    kept_text = table.write(bounded(failure))
    assert len(kept_text["reason"]) == 64
    assert len(kept_text["message"]) == 2048
    assert kept_text["message"].endswith("a\n b"), "the end of a log says why its program ended"
    assert "\x1b" not in bounded(ContainerFailure(pod="p", message="\x1b[2J")).message


def test_a_traceback_is_read_back_and_its_last_line_is_the_cause_in_short() -> None:
    failure = ContainerFailure(pod="p", container="main", exit_code=1, message=TRACEBACK)
    read = table.read(ContainerFailure, table.write(bounded(failure)))
    assert read.last_lines == tuple(TRACEBACK.splitlines())
    assert container_text(read) == "pod p, container main: exit code 1: ValueError: no data"


def test_the_latest_failures_keep_their_last_lines() -> None:
    failure = ContainerFailure(pod="p", message=TRACEBACK)
    runs = [replace(run(f"{number:03}"), failure=failure) for number in range(84)]
    found = [each.failure for (each,) in kept([[each] for each in runs])]
    assert [bool(each and each.last_lines) for each in found] == [False] * 20 + [True] * 64
    assert all(each and each.last_line == "ValueError: no data" for each in found)


EXITS: dict[str, tuple[Object, str]] = {
    "a signal": ({"exit_code": 139}, "exit code 139 (SIGSEGV)"),
    "SIGKILL without a word": (
        {"exit_code": 137, "message": "memory limit 32Gi"},
        "exit code 137 (SIGKILL, probably by the kernel for lack of memory): memory limit 32Gi",
    ),
    "the memory limit": (
        {"exit_code": 137, "reason": "OOMKilled", "message": "memory limit 32Gi"},
        "exit code 137 (killed by the kernel for its memory), OOMKilled: memory limit 32Gi",
    ),
    "no signal": ({"exit_code": 128}, "exit code 128"),
    "no signal of this number": ({"exit_code": 255}, "exit code 255"),
}


@pytest.mark.parametrize(("fields", "text"), EXITS.values(), ids=list(EXITS))
def test_the_end_of_a_container_is_told_by_its_signal_and_reason(fields: Object, text: str) -> None:
    failure = ContainerFailure(pod="p", container="main", **fields)
    assert container_text(failure) == f"pod p, container main: {text}"


def test_a_sub_job_that_ran_before_a_suspension_comes_back_as_a_new_attempt() -> None:
    stopped = after(entry(attempt=1), suspend=True)
    assert (stopped["attempt"], len(stopped["history"])) == (1, 1)
    gone = after(stopped, suspend=True)
    assert (gone["attempt"], gone["history"][-1]["attempt"]) == (2, 1)
    assert after(gone, suspend=True)["attempt"] == 2, "once"
    raw = hyperjob(group(replicas=1), status={"jobs": [gone]}, plugins={"env": []})
    (created,) = plan(observed(raw, clusters=(A, B))).actions
    assert isinstance(created, CreateChild)
    assert created.job["metadata"]["labels"]["training.volcano.sh/attempt"] == "2"


def test_a_sub_job_that_never_ran_keeps_its_attempt_through_a_suspension() -> None:
    waiting = entry(attempt=1, phase="Unplaced")
    del waiting["startTime"]
    assert after(after(waiting, suspend=True), suspend=True)["attempt"] == 1


def test_sub_jobs_that_start_again_stay_on_their_clusters() -> None:
    def over(name: str, where: str) -> Object:
        run = {
            "attempt": 0,
            "cluster": where,
            "startTime": BEGAN,
            "endTime": ENDED,
            "phase": "Failed",
        }
        return entry(name=name, phase="Unplaced", attempt=1, cluster="", history=[run])

    jobs = [over("hj-trainer-0", "b"), over("hj-trainer-1", "a")]
    jobs[1]["index"] = 1

    def places(*clusters: Cluster, **more: Any) -> dict[str, str]:
        given = [jobs[0] | more, jobs[1]]
        raw = hyperjob(group(replicas=2), status={"jobs": given}, failurePolicy=POLICY)
        actions = plan(observed(raw, clusters=clusters)).actions
        return {each.name: each.cluster for each in actions if isinstance(each, CreateChild)}

    assert places(A, B) == {"hj-trainer-0": "b", "hj-trainer-1": "a"}
    full = cluster("b", 0, total=100)
    assert places(A, full, cluster("c"))["hj-trainer-0"] != "b", "its cluster has no room"
    left = places(A, B, cluster("c"), excludedClusters=["b"])
    assert left["hj-trainer-0"] != "b", "it was moved away"


@pytest.mark.parametrize(
    ("phase", "again", "said"),
    [
        ("Failed", 3, "Volcano has restarted it 3 times, as often as `maxRetry` allows"),
        ("Failed", 0, ""),
        ("Running", 3, ""),
    ],
)
def test_a_vcjob_that_volcano_restarts_no_more_says_so(phase: str, again: int, said: str) -> None:
    report = parse_report({"state": {"phase": phase}, "retryCount": again})
    assert report.message == said
