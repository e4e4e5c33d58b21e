"""A pass of a TrainJob: its HyperJob, its status and its Events."""

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.trainer import RUNS_AS, TTL
from hyperjob_core.api.wire import condition
from hyperjob_trainjobs.convert import convert
from hyperjob_trainjobs.decide import NOTHING, Decided, Seen, decide, is_finished
from tests.support.trainjobs import job, runtime, stored
from tests.support.trainjobs import trainjob as written

Object = dict[str, Any]


def trainjob(**given: Any) -> Object:
    return stored(written(**given))


NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
ENABLED = {"metadata": {"name": "team", "labels": {RUNS_AS: "HyperJob"}}}


def seen(tj: Object, **changes: Any) -> Seen:
    values: Object = {"runtime": runtime(), "namespace": None, "hyperjob": None, "now": NOW}
    return Seen(trainjob=tj, **(values | changes))


def running(tj: Object, rt: Object | None = None, **status: Any) -> Object:
    """Return the HyperJob of a TrainJob with a status."""
    found = convert(tj, rt or runtime()).hyperjob
    assert found is not None
    return found | {"status": status}


def after(tj: Object, decided: Decided) -> Object:
    """Return the TrainJob with the written status."""
    status = {**tj.get("status", {}), **(decided.status or {})}
    return {**deepcopy(tj), "status": status}


def sub_job(phase: str, running: int = 0, pods: int = 1) -> Object:
    return {"name": "x", "phase": phase, "running": running, "pods": pods}


def reasons(decided: Decided) -> list[str]:
    return [event.reason for event in decided.events]


@pytest.mark.parametrize(
    ("tj", "rt", "namespace", "ours"),
    [
        (trainjob(), runtime(), None, True),
        (trainjob(labels={}), runtime(), None, False),
        (trainjob(labels={}), runtime(), ENABLED, True),
        (trainjob(labels={RUNS_AS: "TrainJob"}), runtime(), ENABLED, False),
        (trainjob(managedBy="trainer.kubeflow.org/trainjob-controller"), runtime(), None, True),
        (trainjob(managedBy="kueue.x-k8s.io/multikueue"), runtime(), ENABLED, False),
        (trainjob(labels={}), {"metadata": {"labels": {RUNS_AS: "HyperJob"}}}, None, True),
    ],
)
def test_the_nearest_label_decides_and_multikueues_trainjobs_are_left_alone(
    tj: Object, rt: Object, namespace: Object | None, ours: bool
) -> None:
    decided = decide(seen(tj, runtime=rt, namespace=namespace))
    assert (decided != NOTHING) is ours


def test_a_new_trainjob_gets_its_hyperjob_and_no_condition() -> None:
    decided = decide(seen(trainjob()))
    assert decided.create is not None
    assert decided.status is None
    assert reasons(decided) == ["HyperJobCreated"]


def test_a_trainjob_waits_for_its_runtime_and_for_a_name_that_is_taken() -> None:
    missing = decide(seen(trainjob(), runtime=None))
    assert (missing.create, reasons(missing)) == (None, ["RuntimeNotFound"])
    assert "ClusterTrainingRuntime torch" in missing.events[0].note
    other = {"metadata": {"name": "tj", "ownerReferences": [{"uid": "old", "controller": True}]}}
    taken = decide(seen(trainjob(), hyperjob=other))
    assert (taken.create, reasons(taken)) == (None, ["HyperJobExists"])
    assert "HyperJob tj exists and does not belong to this TrainJob; delete it" in (
        taken.events[0].note
    )


def test_a_refused_trainjob_fails_until_it_can_be_carried_over() -> None:
    tj = trainjob()
    refused = decide(seen(tj, runtime=runtime(policy={"flux": {}})))
    found = condition(refused.status or {}, "Failed")
    assert (found["status"], found["reason"]) == ("True", "TrainingRuntimeNotSupported")
    assert "mlPolicy.flux" in found["message"]
    tj = after(tj, refused)
    assert decide(seen(tj, runtime=runtime(policy={"flux": {}}))).status is None
    later = decide(seen(tj))
    assert later.create is not None
    assert later.status == {"conditions": []}


def test_suspend_and_resume_reach_the_hyperjob_and_the_condition() -> None:
    tj = trainjob(suspend=True)
    hyperjob = running(trainjob())
    paused = decide(seen(tj, hyperjob=hyperjob))
    assert paused.suspend is True
    assert condition(paused.status or {}, "Suspended")["status"] == "True"
    tj = after(tj, paused)
    tj["spec"]["suspend"] = False
    resumed = decide(seen(tj, hyperjob=running(trainjob(suspend=True))))
    assert resumed.suspend is False
    found = condition(resumed.status or {}, "Suspended")
    assert (found["status"], found["reason"]) == ("False", "Resumed")
    assert reasons(resumed) == ["Resumed"]
    again = decide(seen(after(tj, resumed), hyperjob=hyperjob))
    assert again == NOTHING


JOBS = [
    sub_job("Running", 2, pods=2),
    sub_job("Running", 1, pods=2),
    sub_job("Running", 0, pods=0),
    sub_job("Completed"),
    sub_job("Failed"),
    sub_job("Aborted"),
    sub_job(""),
]


@pytest.mark.parametrize(
    ("suspend", "expected"),
    [
        (False, {"ready": 1, "succeeded": 1, "failed": 2, "active": 3, "suspended": 0}),
        (True, {"ready": 1, "succeeded": 1, "failed": 0, "active": 3, "suspended": 6}),
    ],
)
def test_sub_jobs_that_failed_are_counted_unless_the_trainjob_is_suspended(
    suspend: bool, expected: Object
) -> None:
    tj = trainjob(suspend=suspend)
    decided = decide(seen(tj, hyperjob=running(tj, jobs=JOBS)))
    assert (decided.status or {})["jobsStatus"] == [{"name": "node", **expected}]


def test_the_numbers_have_the_name_that_trainer_gave_the_job_that_trains() -> None:
    tj = trainjob()
    hyperjob = deepcopy(running(tj, jobs=[sub_job("Running", 1)]))
    (task,) = hyperjob["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"]
    labels = task["template"].setdefault("metadata", {}).setdefault("labels", {})
    labels["jobset.sigs.k8s.io/replicatedjob-name"] = "trainer"
    status = decide(seen(tj, hyperjob=hyperjob)).status
    assert (status or {})["jobsStatus"][0]["name"] == "trainer"
    del labels["jobset.sigs.k8s.io/replicatedjob-name"]
    status = decide(seen(tj, hyperjob=hyperjob)).status
    assert (status or {})["jobsStatus"][0]["name"] == "node"


THEN = "2026-01-01T00:00:30Z"
PROGRESS: dict[str, tuple[Object, Object | None]] = {
    "nothing was reported": ({"percent": 40}, None),
    "a time alone": ({"updateTime": THEN}, {"lastUpdatedTime": THEN}),
    "more than all": (
        {"updateTime": THEN, "percent": 101},
        {"lastUpdatedTime": THEN, "progressPercentage": 100},
    ),
    "less than nothing": (
        {"updateTime": THEN, "percent": -1},
        {"lastUpdatedTime": THEN, "progressPercentage": 0},
    ),
    "a part and an end to come": (
        {"updateTime": THEN, "percent": 40, "estimatedCompletionTime": "2026-01-01T00:02:00Z"},
        {
            "lastUpdatedTime": THEN,
            "progressPercentage": 40,
            "estimatedRemainingSeconds": 90,
        },
    ),
    "an end that has passed": (
        {"updateTime": THEN, "estimatedCompletionTime": "2026-01-01T00:00:00Z"},
        {"lastUpdatedTime": THEN, "estimatedRemainingSeconds": 0},
    ),
    "metrics of 64 characters, in order": (
        {"updateTime": THEN, "metrics": {"x" * 64: "1", "a": "y" * 64, "b": "y" * 65, "c": ""}},
        {
            "lastUpdatedTime": THEN,
            "metrics": [{"name": "a", "value": "y" * 64}, {"name": "x" * 64, "value": "1"}],
        },
    ),
    "256 metrics at most": (
        {"updateTime": THEN, "metrics": {f"{number:03}": "1" for number in range(257)}},
        {
            "lastUpdatedTime": THEN,
            "metrics": [{"name": f"{number:03}", "value": "1"} for number in range(256)],
        },
    ),
}


@pytest.mark.parametrize(("training", "expected"), PROGRESS.values(), ids=list(PROGRESS))
def test_progress_is_written_within_the_bounds_of_the_crd_of_trainer(
    training: Object, expected: Object | None
) -> None:
    decided = decide(seen(trainjob(), hyperjob=running(trainjob(), training=training)))
    assert (decided.status or {}).get("trainerStatus") == expected


def test_a_condition_keeps_its_time_while_its_status_is_the_same() -> None:
    tj = trainjob(suspend=True)
    paused = after(tj, decide(seen(tj)))
    (before,) = paused["status"]["conditions"]
    assert before == {
        "type": "Suspended",
        "status": "True",
        "reason": "Suspended",
        "message": "TrainJob is suspended",
        "lastTransitionTime": "2026-01-01T00:01:00Z",
    }
    later = NOW + timedelta(hours=1)
    assert decide(seen(paused, hyperjob=running(tj), now=later)).status is None
    paused["spec"]["suspend"] = False
    (resumed,) = (decide(seen(paused, now=later)).status or {})["conditions"]
    assert resumed["lastTransitionTime"] == "2026-01-01T01:01:00Z"
    # Trainer's controller, which a user has gone back to, wrote the generation that it observed.
    paused["metadata"]["generation"] = 5
    paused["status"]["conditions"][0]["observedGeneration"] = 3
    (observed,) = (decide(seen(paused, now=later)).status or {})["conditions"]
    assert observed["observedGeneration"] == 5


def test_a_message_is_cut_to_the_limit_of_a_condition() -> None:
    ended = {"type": "Failed", "status": "True", "message": "x" * 40000}
    decided = decide(seen(trainjob(), hyperjob=running(trainjob(), conditions=[ended])))
    found = condition(decided.status or {}, "Failed")
    assert found["message"] == "x" * 32768
    assert found["reason"] == "Failed", "a HyperJob that gives no reason"


def test_events_say_what_was_created_what_ended_and_for_what_a_trainjob_waits() -> None:
    (created,) = decide(seen(trainjob())).events
    assert (created.type, created.action, created.note) == (
        "Normal",
        "Create",
        "created the HyperJob of the same name",
    )
    (waits,) = decide(seen(trainjob(), runtime=None)).events
    assert (waits.type, waits.action) == ("Warning", "Reconcile")
    for kind, expected in (("Completed", "Normal"), ("Failed", "Warning")):
        ended = {"type": kind, "status": "True", "reason": "Why", "message": "said"}
        decided = decide(seen(trainjob(), hyperjob=running(trainjob(), conditions=[ended])))
        (event,) = decided.events
        assert (event.type, event.action, event.note) == (expected, "Reconcile", "said")


@pytest.mark.parametrize(
    ("conditions", "finished"),
    [
        ([], False),
        ([("Suspended", "True", "")], False),
        ([("Complete", "True", "")], True),
        ([("Complete", "False", "")], False),
        ([("Failed", "True", "JobFailed")], True),
        ([("Failed", "False", "JobFailed")], False),
        ([("Failed", "True", "TrainingRuntimeNotSupported")], False),
    ],
)
def test_a_trainjob_has_ended_by_a_condition_that_stays(
    conditions: list[tuple[str, str, str]], finished: bool
) -> None:
    given = [{"type": kind, "status": value, "reason": why} for kind, value, why in conditions]
    assert is_finished({"status": {"conditions": given}}) is finished


def test_the_time_to_live_counts_from_the_end_also_of_a_failed_trainjob() -> None:
    rt = runtime(ttlSecondsAfterFinished=60)
    hyperjob = running(trainjob(), rt)
    tj = trainjob()
    ended = {"type": "Failed", "status": "True", "reason": "JobFailed"}
    tj["status"] = {"conditions": [{**ended, "lastTransitionTime": "2026-01-01T00:00:50Z"}]}
    assert decide(seen(tj, hyperjob=hyperjob)) == Decided(again=timedelta(seconds=50))
    tj["status"] = {"conditions": [ended]}
    assert decide(seen(tj, hyperjob=hyperjob)).again == timedelta(seconds=60), "its time is unknown"


@pytest.mark.parametrize(
    ("kind", "expected", "reason"),
    [("Completed", "Complete", "AllJobsCompleted"), ("Failed", "Failed", "JobFailed")],
)
def test_the_end_of_the_hyperjob_ends_the_trainjob_for_good(
    kind: str, expected: str, reason: str
) -> None:
    ended = {"type": kind, "status": "True", "reason": "JobFailed", "message": "said"}
    decided = decide(seen(trainjob(), hyperjob=running(trainjob(), conditions=[ended])))
    found = condition(decided.status or {}, expected)
    assert (found["status"], found["reason"], found["message"]) == ("True", reason, "said")
    assert decide(seen(after(trainjob(), decided))) == NOTHING


def test_the_hyperjob_is_deleted_a_time_to_live_after_the_end() -> None:
    rt = runtime(ttlSecondsAfterFinished=60)
    ended = {"type": "Completed", "status": "True"}
    hyperjob = running(trainjob(), rt, conditions=[ended])
    decided = decide(seen(trainjob(), hyperjob=hyperjob))
    assert decided.again == timedelta(seconds=60)
    tj = after(trainjob(), decided)
    soon = decide(seen(tj, hyperjob=hyperjob, now=NOW + timedelta(seconds=20)))
    assert (soon.delete, soon.again) == (False, timedelta(seconds=40))
    late = decide(seen(tj, hyperjob=hyperjob, now=NOW + timedelta(seconds=60)))
    assert late.delete
    assert decide(seen(tj, hyperjob=running(trainjob()))) == NOTHING


def test_a_missed_deadline_fails_the_trainjob_and_then_deletes_its_hyperjob() -> None:
    tj = trainjob(activeDeadlineSeconds=90)
    hyperjob = running(tj)
    early = decide(seen(tj, hyperjob=hyperjob))
    assert early.again == timedelta(seconds=30)
    late = NOW + timedelta(seconds=30)
    missed = decide(seen(tj, hyperjob=hyperjob, now=late))
    assert condition(missed.status or {}, "Failed")["reason"] == "DeadlineExceeded"
    assert not missed.delete
    tj = after(tj, missed)
    assert decide(seen(tj, hyperjob=hyperjob, now=late)).delete
    assert decide(seen(tj, now=late)) == NOTHING


TIMES = [
    *("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00"),
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "soon"),
]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("kind", ["Suspended", "Complete", "Failed"])
def test_no_time_of_a_condition_or_of_the_creation_ends_a_pass(kind: str, time: str) -> None:
    """A user may write conditions, and the API server stores any time of four-digit years."""
    tj = trainjob(activeDeadlineSeconds=2**31)
    status = "False" if kind == "Suspended" else "True"
    conditions = [
        {"type": kind, "status": status, "reason": "DeadlineExceeded", "lastTransitionTime": time}
    ]
    tj["metadata"]["creationTimestamp"] = time
    for old in ({}, {"conditions": conditions}):
        training = {"updateTime": time, "estimatedCompletionTime": TIMES[0]}
        found = running(tj, training=training)
        found["metadata"]["annotations"] = {TTL: str(2**31)}
        decide(seen({**tj, "status": old}, hyperjob=found))
        decide(seen({**tj, "status": old}))


def test_the_deadline_counts_from_the_last_resume() -> None:
    tj = trainjob(activeDeadlineSeconds=10, suspend=True)
    paused = decide(seen(tj, hyperjob=running(tj)))
    assert paused.again is None
    tj = after(tj, paused)
    tj["spec"]["suspend"] = False
    resumed = decide(seen(tj, hyperjob=running(tj), now=NOW + timedelta(hours=1)))
    assert resumed.again == timedelta(seconds=10)
    assert condition(resumed.status or {}, "Failed") == {}


def test_a_trainjob_that_is_being_deleted_is_left_alone() -> None:
    tj = trainjob()
    tj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert decide(seen(tj)) == NOTHING


def test_a_hyperjob_that_a_person_deleted_is_created_again() -> None:
    tj = trainjob()
    tj["status"] = {"jobsStatus": [{"name": "node"}]}
    assert decide(seen(tj)).create is not None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below),
    max_leaves=5,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [path] * bool(path) + [p for key, each in items for p in _places(each, (*path, key))]


WHOLE = trainjob(
    spread='{"clusters": 2}',
    initializer={"dataset": {"storageUri": "a://b", "env": [], "secretRef": {"name": "s"}}},
    trainer={"numNodes": 2, "env": [{"name": "A", "value": "b"}], "resourcesPerNode": {}},
    runtimePatches=[
        {
            "manager": "a.b/c",
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node"}]}}},
        }
    ],
)
RUNTIME = runtime(
    "torch",
    job("dataset-initializer", volumes=[{"name": "v", "emptyDir": {}}]),
    job("trainer"),
    volumeClaimPolicies=[{"templates": [{"metadata": {"name": "c"}, "spec": {}}]}],
    successPolicy={"operator": "All", "targetReplicatedJobs": ["node"]},
)


@pytest.mark.parametrize("which", ["trainjob", "runtime"])
@given(data=st.data(), value=_JSON)
def test_no_value_in_any_place_makes_a_pass_raise(
    which: str, data: st.DataObject, value: object
) -> None:
    objects = {"trainjob": deepcopy(WHOLE), "runtime": deepcopy(RUNTIME)}
    path = data.draw(st.sampled_from(_places(objects[which])))
    place: Any = objects[which]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    decide(seen(objects["trainjob"], runtime=objects["runtime"]))
