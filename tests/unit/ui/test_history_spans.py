"""What follows from one look at a HyperJob after another: spans that tell the whole of it."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hyperjob.client.summary import read
from hyperjob.ui.history.backfill import missing, past, resumed
from hyperjob.ui.history.spans import TICK, Span, follow, states, tidy

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)


def at(seconds):
    return BEGIN + timedelta(seconds=seconds)


def text(seconds):
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(phase, begin, end=None, *, job="llm-w-0", attempt=1, cluster="c1", reason="", message=""):
    return Span(
        job=job,
        attempt=attempt,
        cluster=cluster,
        phase=phase,
        reason=reason,
        message=message,
        begin=at(begin),
        end=None if end is None else at(end),
    )


def seen(*spans):
    return {one.job: one for one in spans}


def summary(*, jobs=(), phase="Running", since=0, created=0, restarts=0):
    return read(
        {
            "metadata": {"namespace": "a", "name": "llm", "creationTimestamp": text(created)},
            "status": {
                "state": {"phase": phase, "lastTransitionTime": text(since)},
                "restarts": restarts,
                "jobs": list(jobs),
            },
        }
    )


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


def test_the_first_look_opens_a_span_at_the_last_transition():
    looked = states(summary(jobs=[job("Running", 30)], since=40), at(60))
    written, after = follow({}, looked, at(60))
    assert written == [
        span("Running", 40, job="", cluster=""),
        span("Running", 30),
    ]
    assert after == seen(*written)


def test_nothing_is_written_while_nothing_changes():
    before = seen(span("Running", 30))
    assert follow(before, [span("Running", 30)], at(60)) == ([], before)


def test_a_new_phase_ends_the_one_before_at_its_transition():
    written, after = follow(seen(span("Queued", 0)), [span("Running", 30)], at(60))
    assert written == [span("Queued", 0, 30), span("Running", 30)]
    assert after == seen(span("Running", 30))


def test_a_change_that_is_no_transition_is_as_old_as_the_look():
    before = seen(span("Queued", 0, reason="Waiting"))
    written, _ = follow(before, [span("Queued", 0, reason="NoCapacity")], at(60))
    assert written == [
        span("Queued", 0, 60, reason="Waiting"),
        span("Queued", 60, reason="NoCapacity"),
    ]


def test_a_new_message_is_no_new_span():
    written, _ = follow(seen(span("Queued", 0)), [span("Queued", 0, message="3rd")], at(60))
    assert written == [span("Queued", 0, message="3rd")]


def test_an_end_is_a_moment():
    looked = states(summary(jobs=[job("Failed", 50, reason="Failed")]), at(60))
    assert looked[1] == span("Failed", 50, 50, reason="Failed")
    written, after = follow(seen(span("Running", 0)), looked[1:], at(60))
    assert written == [span("Running", 0, 50), span("Failed", 50, 50, reason="Failed")]
    assert follow(after, looked[1:], at(90)) == ([], after)


def test_a_second_attempt_follows_the_end_of_the_first():
    before = seen(span("Failed", 50, 50))
    again = span("Running", 55, attempt=2, cluster="c2")
    assert follow(before, [again], at(60)) == ([again], seen(again))


def test_what_is_gone_has_ended():
    written, after = follow(seen(span("Running", 0), span("Failed", 5, 5, job="b")), [], at(60))
    assert written == [span("Running", 0, 60)]
    assert follow(after, [], at(90)) == ([], after)
    again, _ = follow(after, [span("Running", 0)], at(100))
    assert again == [span("Running", 100)]


def test_a_clock_of_the_api_server_that_is_ahead_ends_nothing_before_it_began():
    looked = states(summary(jobs=[job("Running", 90)], since=90), at(60))
    assert all(one.begin == at(60) for one in looked)
    written, _ = follow(seen(span("Running", 50, attempt=1)), [span("Failed", 20, 20)], at(60))
    assert written == [
        span("Running", 50, 50 + TICK.total_seconds()),
        span("Failed", 50 + TICK.total_seconds(), 50 + TICK.total_seconds()),
    ]


PHASES = st.sampled_from(["Queued", "Running", "Failed", "Completed", ""])
LOOKS = st.lists(
    st.tuples(
        st.integers(0, 50),  # seconds since the look before
        st.dictionaries(
            st.sampled_from(["a", "b"]),
            st.tuples(PHASES, st.integers(-100, 0), st.integers(0, 3), st.sampled_from("xyz")),
        ),
    ),
    max_size=12,
)


@given(LOOKS)
def test_spans_of_a_track_follow_one_another_and_tell_each_look(looks):
    stored: dict = {}
    before: dict = {}
    time = 1000
    for pause, tracks in looks:
        time += pause
        jobs = [
            job(phase, time + ago, name=name, attempt=attempt, cluster=cluster)
            for name, (phase, ago, attempt, cluster) in tracks.items()
        ]
        looked = states(summary(jobs=jobs), at(time))[1:]
        written, before = follow(before, looked, at(time))
        stored |= {(one.job, one.begin): one for one in written}
        assert all(before[one.job].state == one.state for one in looked)
        assert all(before[name].end is not None for name in before if name not in tracks)
    for name in ("a", "b"):
        track = [one for key, one in sorted(stored.items()) if key[0] == name]
        assert tidy(track) == track
        for one, following in pairwise(track):
            assert one.end is not None
            assert one.begin <= one.end <= following.begin
            assert one.begin < following.begin
    assert {name for (name, _), one in stored.items() if one.end is None} == {
        name for name, one in before.items() if one.end is None
    }


def test_the_status_tells_of_runs_that_are_over():
    jobs = [job("Running", 300, attempt=2, history=[run(0, 0, 100), run(1, 120, 200)])]
    told = past(summary(jobs=jobs, created=0, since=0), at(400))
    assert told == [
        span("Running", 0, 100),
        span("Failed", 100, 100, reason="Failed", message="exit code 1"),
        span("Running", 120, 200, attempt=2),
        span("Failed", 200, 200, attempt=2, reason="Failed", message="exit code 1"),
    ]


def test_the_last_run_of_a_sub_job_that_has_ended_is_told_by_its_start():
    ended = job("Completed", 300, attempt=1, startTime=text(120), history=[run(0, 0, 100)])
    told = past(summary(jobs=[ended]), at(400))
    assert told[2:] == [span("Running", 120, 300, attempt=2)]


def test_a_failure_of_a_container_is_the_cause_that_is_kept():
    failure = {"pod": "llm-w-0-0", "container": "main", "exitCode": 137, "reason": "OOMKilled"}
    failed = job("Failed", 50, failure=failure, message="a pod failed")
    cause = (
        "pod llm-w-0-0, container main: exit code 137 (killed by the kernel for its memory),"
        " OOMKilled"
    )
    assert states(summary(jobs=[failed]), at(60))[1].message == cause
    before = job("Running", 300, attempt=1, history=[{**run(0, 0, 100), "failure": failure}])
    assert past(summary(jobs=[before]), at(400))[1].message == cause


def test_the_time_until_the_present_phase_of_a_hyperjob_is_not_known():
    told = past(summary(created=0, since=90), at(100))
    assert told == [span("", 0, 90, job="", cluster="")]


def test_a_run_without_begin_is_told_by_its_end():
    jobs = [job("Queued", 300, history=[run(0, None, 100)])]
    told = past(summary(jobs=jobs), at(400))
    assert told == [span("Failed", 100, 100, reason="Failed", message="exit code 1")]


RUNS = st.lists(
    st.tuples(
        st.integers(0, 5), st.none() | st.integers(0, 500), st.integers(0, 500), PHASES, PHASES
    ),
    max_size=8,
)


@given(RUNS)
def test_what_is_told_never_overlaps_and_never_comes_from_the_future(runs):
    jobs = [job("Queued", 300, history=[run(*one) for one in runs])]
    told = past(summary(jobs=jobs), at(400))
    assert tidy(told) == told
    assert all(one.begin <= one.end <= at(400) for one in told)
    for one, following in pairwise(told):
        assert one.begin < following.begin
        assert one.end <= following.begin


def test_what_was_seen_is_better_than_what_is_told():
    told = [span("Running", 0, 100), span("Failed", 100, 100), span("Running", 120, 200)]
    known = [span("Running", 150)]
    assert missing(known, told) == [
        span("Running", 0, 100),
        span("Failed", 100, 100),
        span("Running", 120, 150),
    ]
    assert missing([], told) == told
    assert missing([span("Running", 0)], told) == []


def test_the_time_in_which_nobody_looked_is_filled_in():
    before = seen(span("Running", 0))
    told = [span("Running", 0, 100), span("Failed", 100, 100), span("Running", 120, 200, attempt=2)]
    written, after = resumed(before, told, at(60))
    assert written == [
        span("Running", 0, 60),
        span("Running", 60, 100),
        span("Failed", 100, 100),
        span("Running", 120, 200, attempt=2),
    ]
    assert after == seen(span("Running", 120, 200, attempt=2))


def test_nothing_is_filled_in_where_nothing_happened():
    before = seen(span("Running", 50))
    told = [span("Running", 0, 40), span("Failed", 40, 40)]
    assert resumed(before, told, at(60)) == ([], before)


@given(RUNS, st.integers(0, 400))
def test_filling_in_leaves_no_overlap(runs, until):
    before = seen(span("Running", 0))
    jobs = [job("Queued", 300, history=[run(*one) for one in runs])]
    written, after = resumed(before, past(summary(jobs=jobs), at(400)), at(until))
    final, _ = follow(after, states(summary(jobs=jobs), at(400))[1:], at(400))
    stored = {one.begin: one for one in [*before.values(), *written, *final]}
    track = [stored[begin] for begin in sorted(stored)]
    assert tidy(track) == track


def test_a_lost_write_shows_as_an_end_where_the_next_span_begins():
    assert tidy([span("Running", 50), span("Queued", 0)]) == [
        span("Queued", 0, 50),
        span("Running", 50),
    ]
