"""The last lines of attempts that are over, from the status: their pods and logs are deleted."""

from typing import Any

import pytest

from hyperjob.client.errors import ClientError
from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.reading import kept_lines, last_failure
from hyperjob.client.summary import read
from tests.unit.cli.objects import hyperjob, sub_job


def failure(text: str, pod: str = "llm-trainer-0-worker-0") -> Any:
    return {"pod": pod, "task": "worker", "container": "main", "exitCode": 1, "message": text}


def run(attempt: int, text: str = "", **fields: Any) -> Any:
    found = {"attempt": attempt, "cluster": "east", "endTime": f"2026-01-02T03:0{attempt}:00Z"}
    return {
        **found,
        "reason": "JobFailed",
        **({"failure": failure(text)} if text else {}),
        **fields,
    }


RUNS = [
    run(0, "Traceback\nValueError: one"),
    run(1, "Traceback\nValueError: two", cluster="west"),
    run(2, reason="Preempted"),
]
SUMMARY = read(hyperjob("Running", sub_job(phase="Running", attempt=3, history=RUNS)))


@pytest.mark.parametrize(("attempt", "cluster", "last"), [(1, "east", "one"), (2, "west", "two")])
def test_each_failed_attempt_has_its_traceback(attempt: int, cluster: str, last: str) -> None:
    lines = kept_lines(SUMMARY, Wanted(attempt=attempt)) or []
    assert [line for _, line in lines] == [b"Traceback", f"ValueError: {last}".encode()]
    assert {source.label for source, _ in lines} == {f"{cluster}/llm-trainer-0-worker-0"}


def test_without_lines_the_error_says_how_the_attempt_ended_and_which_have_some() -> None:
    with pytest.raises(ClientError, match=r"attempt 3 .* Preempted; there are .* attempt 1, 2"):
        kept_lines(SUMMARY, Wanted(attempt=3))
    with pytest.raises(ClientError, match="no last lines of attempt 9"):
        kept_lines(SUMMARY, Wanted(attempt=9))
    with pytest.raises(ClientError, match=r"there are those of attempt 1$"):
        kept_lines(SUMMARY, Wanted(cluster="east", attempt=2))


def test_ranks_and_a_container_select_among_the_containers_that_failed() -> None:
    runs = [run(0, failure={**failure("Traceback\nValueError: one"), "rank": 3})]
    summary = read(hyperjob("Running", sub_job(phase="Running", attempt=1, history=runs)))
    assert kept_lines(summary, Wanted(ranks=frozenset({3}), container="main", attempt=1))
    for wanted in (Wanted(ranks=frozenset({0}), attempt=1), Wanted(container="other", attempt=1)):
        with pytest.raises(ClientError, match="no last lines of attempt 1"):
            kept_lines(summary, wanted)


def test_the_present_attempt_has_its_logs() -> None:
    assert kept_lines(SUMMARY, Wanted(attempt=4)) is None


def test_the_last_failure_is_that_of_the_attempt_that_failed_the_hyperjob() -> None:
    found = last_failure(SUMMARY)
    assert (found.label, found.text[-3:]) == ("west/llm-trainer-0-worker-0", "two")
    ended = sub_job(phase="Failed", attempt=3, history=RUNS, failure=failure("NameError: last"))
    found = last_failure(read(hyperjob("Failed", ended)))
    assert found.text == "NameError: last"
    assert last_failure(read(hyperjob("Running", sub_job(phase="Running")))) is None


def test_of_sub_jobs_that_failed_together_the_cause_has_the_last_words() -> None:
    peer = {**failure("Traceback\nConnectionError: a rank is gone", pod="first"), "rank": 0}
    own = {**failure("Traceback\nValueError: no labels", pod="second"), "rank": 5}
    old = {**failure("Traceback\nKeyError: 'old'", pod="third"), "rank": 9}
    end = {"phase": "Failed", "attempt": 1, "cluster": "west"}
    jobs = [
        sub_job(0, failure=peer, lastTransitionTime="2026-01-02T03:09:09Z", **end),
        sub_job(1, failure=own, lastTransitionTime="2026-01-02T03:09:07Z", **end),
        sub_job(2, phase="Running", attempt=1, history=[run(0, failure=old)]),
    ]
    found = last_failure(read(hyperjob("Failed", *jobs)))
    assert (found.label, found.text[-9:]) == ("west/second (rank 5)", "no labels")
