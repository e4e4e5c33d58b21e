"""What a status shows of the life of a HyperJob and its sub-jobs: spans that do not overlap."""

from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob.client.summary import read
from hyperjob_page.timeline import Span, spans_of

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)


def at(seconds):
    return BEGIN + timedelta(seconds=seconds)


def text(seconds):
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(phase, begin, end=None, *, job="llm-w-0", attempt=1, cluster="c1", reason="", message=""):
    return Span(
        job=job,
        attempt=attempt,
        cluster=cluster if job else "",
        phase=phase,
        reason=reason,
        message=message,
        begin=at(begin),
        end=None if end is None else at(end),
    )


def whole(phase, begin, end=None, **more):
    """A span of the HyperJob itself."""
    return span(phase, begin, end, job="", **more)


def told(*jobs, phase="Running", since=0, created=0, restarts=0, admitted=None, now=400):
    summary = read(
        {
            "metadata": {"namespace": "a", "name": "llm", "creationTimestamp": text(created)},
            "status": {
                "state": {"phase": phase, "lastTransitionTime": text(since)},
                "restarts": restarts,
                "jobs": list(jobs),
            },
        }
    )
    return spans_of(summary, at(now), admitted="" if admitted is None else text(admitted))


def job(phase, since, *, name="llm-w-0", attempt=0, cluster="c1", **more):
    return {
        "name": name,
        "phase": phase,
        "attempt": attempt,
        "cluster": cluster,
        "lastTransitionTime": text(since),
        **more,
    }


def run(attempt, begin, end, phase="Failed", reason="Failed", cluster="c1"):
    entry = {
        "attempt": attempt,
        "cluster": cluster,
        "endTime": text(end),
        "phase": phase,
        "reason": reason,
        "message": "exit code 1",
    }
    return entry if begin is None else {**entry, "startTime": text(begin)}


FAILED = {"reason": "Failed", "message": "exit code 1"}
LIVES = {
    "what runs began at its last transition": (
        [job("Running", 30)],
        [span("Running", 30)],
    ),
    "an end is a moment": (
        [job("Failed", 50, reason="Failed")],
        [span("Failed", 50, 50, reason="Failed")],
    ),
    "runs that are over come before the present": (
        [job("Running", 300, attempt=2, history=[run(0, 0, 100), run(1, 120, 200)])],
        [
            span("Running", 0, 100),
            span("Failed", 100, 100, **FAILED),
            span("Running", 120, 200, attempt=2),
            span("Failed", 200, 200, attempt=2, **FAILED),
            span("Running", 300, attempt=3),
        ],
    ),
    "the last run of a sub-job that has ended began with its start": (
        [job("Completed", 300, attempt=1, startTime=text(120), history=[run(0, 0, 100)])],
        [
            span("Running", 0, 100),
            span("Failed", 100, 100, **FAILED),
            span("Running", 120, 300, attempt=2),
            span("Completed", 300, 300, attempt=2),
        ],
    ),
    "a run without begin is a moment": (
        [job("Queued", 300, history=[run(0, None, 100)])],
        [span("Failed", 100, 100, **FAILED), span("Queued", 300)],
    ),
    "a run without end is left out": (
        [job("Queued", 300, history=[{"attempt": 0, "phase": "Failed"}])],
        [span("Queued", 300)],
    ),
    "a clock that is ahead ends nothing before it began": (
        [job("Queued", 100, history=[run(0, 0, 150)]), job("Running", 900, name="b")],
        [
            span("Running", 0, 150),
            span("Failed", 150, 150, **FAILED),
            span("Queued", 150),
            span("Running", 400, job="b"),
        ],
    ),
}


@pytest.mark.parametrize("name", LIVES)
def test_a_sub_job(name):
    jobs, expected = LIVES[name]
    assert [each for each in told(*jobs) if each.job] == expected


def test_a_failure_of_a_container_is_the_cause():
    failure = {"pod": "llm-w-0-0", "container": "main", "exitCode": 137, "reason": "OOMKilled"}
    cause = (
        "pod llm-w-0-0, container main: exit code 137 (killed by the kernel for its memory),"
        " OOMKilled"
    )
    failed = told(job("Failed", 50, failure=failure, message="a pod failed"))
    assert failed[-1].message == cause
    before = told(job("Running", 300, attempt=1, history=[{**run(0, 0, 100), "failure": failure}]))
    assert before[2].message == cause


def test_a_hyperjob_waits_until_it_is_admitted_and_runs_while_its_sub_jobs_ran():
    jobs = [
        job("Running", 300, attempt=1, history=[run(0, 40, 100)]),
        job("Running", 290, name="b", attempt=2, history=[run(0, 50, 120), run(1, 150, 200)]),
    ]
    found = told(*jobs, phase="Degraded", since=350, admitted=30, restarts=2)
    assert [each for each in found if not each.job] == [
        whole("Pending", 0, 30),
        whole("Running", 40, 120),
        whole("Running", 150, 200),
        whole("Degraded", 350, attempt=3),
    ]


def test_a_hyperjob_that_was_never_admitted_has_waited_all_the_time():
    assert told(phase="Queued", since=90) == [whole("Pending", 0, 90), whole("Queued", 90)]


def test_a_hyperjob_that_has_ended_ran_until_its_end():
    found = told(
        job("Completed", 300, startTime=text(60)), phase="Completed", since=300, admitted=50
    )
    assert found[:3] == [
        whole("Pending", 0, 50),
        whole("Running", 60, 300),
        whole("Completed", 300, 300),
    ]


SECONDS = st.integers(0, 600)
PHASES = st.sampled_from(["Queued", "Running", "Failed", "Completed", ""])
RUNS = st.lists(
    st.tuples(st.integers(0, 5), st.none() | SECONDS, SECONDS, PHASES, PHASES), max_size=8
)


@given(
    st.lists(st.tuples(RUNS, PHASES, SECONDS, st.none() | SECONDS), max_size=3), SECONDS, SECONDS
)
def test_spans_of_a_track_follow_one_another_and_none_begins_in_the_future(jobs, since, admitted):
    found = told(
        *(
            job(phase, changed, name=f"j{number}", history=[run(*one) for one in runs])
            | ({} if started is None else {"startTime": text(started)})
            for number, (runs, phase, changed, started) in enumerate(jobs)
        ),
        since=since,
        admitted=admitted,
    )
    for _, track in groupby(found, key=lambda each: each.job):
        spans = list(track)
        assert all(each.begin <= at(400) for each in spans)
        for one, following in pairwise(spans):
            assert one.end is not None
            assert one.begin <= one.end <= following.begin
    assert [name for name, _ in groupby(found, key=lambda each: each.job)] == [
        "",
        *(f"j{number}" for number in range(len(jobs))),
    ]
