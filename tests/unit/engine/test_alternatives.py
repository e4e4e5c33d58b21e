"""Alternatives of replicatedJobs: what they change, and how long a HyperJob keeps one."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperjob_core.api.overlay import applied
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import Cluster, QueueVerdict
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.model.subjobs import choice_of, choices, choosing
from hyperjob_engine.plan import plan
from hyperjob_engine.status.transitions import status_events
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.sizes import remaining, template_of
from tests.unit.engine.builders import (
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    policy,
)

HOUR = timedelta(hours=1)


def container(**fields: Any) -> Object:
    return {"tasks": [{"name": "w", "template": {"spec": {"containers": [fields]}}}]}


def fields(job: Object) -> Object:
    """Give by short names what an alternative may change, and what it must not."""
    first, second = job["templateSpec"]["tasks"]
    pods = first["template"]["spec"]
    main, side = pods["containers"]
    return {
        **{key: job.get(key) for key in ("replicas", "clusterNames")},
        "minAvailable": job["templateSpec"].get("minAvailable"),
        "pods": first["replicas"],
        "nodeSelector": pods["nodeSelector"],
        **{key: main.get(key) for key in ("image", "args", "env", "resources")},
        "others": (second, side),
    }


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"replicas": 4}, {"replicas": 4}, id="the number of sub-jobs"),
        pytest.param({"clusterNames": ["b"]}, {"clusterNames": ["b"]}, id="clusters"),
        pytest.param(
            {"templateSpec": {"minAvailable": 3}}, {"minAvailable": 3}, id="pods of the gang"
        ),
        pytest.param(
            {"templateSpec": {"tasks": [{"name": "w", "replicas": 9}]}},
            {"pods": 9},
            id="pods of a task, and no other task",
        ),
        pytest.param(
            {
                "templateSpec": {
                    "tasks": [{"name": "w", "template": {"spec": {"nodeSelector": {"gpu": "a"}}}}]
                }
            },
            {"nodeSelector": {"pool": "x", "gpu": "a"}},
            id="labels of nodes, beside those of the template",
        ),
        pytest.param(
            {"templateSpec": container(name="main", image="j", args=["b"])},
            {"image": "j", "args": ["b"]},
            id="image and arguments of one container",
        ),
        pytest.param(
            {"templateSpec": container(name="main", env=[{"name": "B", "value": "2"}])},
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            id="a new variable",
        ),
        pytest.param(
            {"templateSpec": container(name="main", env=[{"name": "A", "value": "2"}])},
            {"env": [{"name": "A", "value": "2"}]},
            id="a variable of the template",
        ),
        pytest.param(
            {"templateSpec": container(name="main", resources={"limits": {"npu": 8}})},
            {"resources": {"limits": {"npu": 8}}},
            id="resources as a whole, so that no other accelerator stays",
        ),
        pytest.param(
            {"templateSpec": container(name="other", image="j")},
            {},
            id="a container that the template lacks is none",
        ),
    ],
)
def test_an_alternative_changes_what_it_names(overlay: Object, expected: Object) -> None:
    main: Object = {
        "name": "main",
        "image": "i",
        "env": [{"name": "A", "value": "1"}],
        "resources": {"limits": {"gpu": 8}, "requests": {"cpu": 1}},
    }
    pods = {"nodeSelector": {"pool": "x"}, "containers": [main, {"name": "side", "image": "s"}]}
    tasks = [
        {"name": "w", "replicas": 2, "template": {"spec": pods}},
        {"name": "v", "replicas": 1},
    ]
    job: Object = {
        "name": "t",
        "replicas": 1,
        "templateSpec": {"tasks": tasks},
        "alternatives": [{"name": "a", **overlay}],
    }
    made = applied(job, job["alternatives"][0])
    assert fields(made) == {**fields(job), **expected}
    assert "alternatives" not in made


def shaped(status: Object | None = None, **spec: Any) -> Object:
    """Make a HyperJob of 16 GPUs on `fast`, or of twice 8 on `slow` clusters."""
    alternatives = [
        {"name": "one", "replicas": 1},
        {
            "name": "two",
            "replicas": 2,
            "clusterNames": ["slow", "slower"],
            "templateSpec": {"tasks": [{"name": "worker", "replicas": 8}]},
        },
    ]
    made = group(
        gpus=16, clusterNames=["fast"], clusterPolicy="Required", alternatives=alternatives
    )
    return hyperjob(made, status=status, **spec)


def chosen(name: str) -> list[Object]:
    told = {"reason": "FirstWithRoom", "message": "it has room"}
    return [{"replicatedJob": "trainer", "name": name, **told}]


def record(since: datetime) -> Object:
    return job_status(
        0,
        phase="Unplaced",
        reason="Restarting",
        attempt=1,
        admitted=True,
        lastTransitionTime=rfc3339(since),
    )


SLOW = (cluster("slow", 8), cluster("slower", 8))


def test_a_hyperjob_has_the_alternative_of_its_status_and_else_the_first() -> None:
    first = parse_hyperjob(shaped())
    (one,) = first.replicated_jobs
    assert (one.alternative, one.replicas, one.cluster_names) == ("one", 1, ("fast",))
    assert choices(first, lambda _: ()) == [(("trainer", "one"),), (("trainer", "two"),)]
    second = parse_hyperjob(shaped({"alternatives": chosen("two")}))
    (two,) = second.replicated_jobs
    assert (two.alternative, two.replicas, two.cluster_names) == ("two", 2, ("slow", "slower"))
    assert two.template["minAvailable"] == 8, "defaults follow from the changed numbers"
    assert choosing(first, choice_of(second)).replicated_jobs == second.replicated_jobs
    assert parse_hyperjob(shaped({"alternatives": chosen("gone")})).replicated_jobs == (one,)


def test_no_sub_job_is_created_before_the_status_has_the_alternative() -> None:
    verdict = QueueVerdict(
        admitted=frozenset({"hj-trainer-0", "hj-trainer-1"}), chosen=Chosen.FIRST_WITH_ROOM
    )
    seen = observed(shaped(), clusters=SLOW)
    hyperjob_ = choosing(seen.hyperjob, (("trainer", "two"),))
    first = plan(replace(seen, hyperjob=hyperjob_, verdict=verdict))
    assert (first.actions, first.requeue_after) == ((), timedelta())
    (written,) = first.status["alternatives"]
    assert (written["name"], written["reason"]) == ("two", "FirstWithRoom")
    assert [each["admitted"] for each in first.status["jobs"]] == [True, True], "a share is kept"
    second = plan(replace(observed(shaped(first.status), clusters=SLOW), verdict=verdict))
    made = {each.name: each.cluster for each in second.actions if isinstance(each, CreateChild)}
    assert made == {"hj-trainer-0": "slow", "hj-trainer-1": "slower"}


@pytest.mark.parametrize(
    ("clusters", "minutes", "keeps"),
    [
        pytest.param((cluster("fast", 16), *SLOW), 0, True, id="its clusters have room"),
        pytest.param((cluster("fast", 0, total=16), *SLOW), 0, True, id="others will leave them"),
        pytest.param((cluster("fast", 0, total=16), *SLOW), 2, False, id="others stay for long"),
        pytest.param((cluster("fast", 16, unusable="lost"), *SLOW), 0, False, id="they are lost"),
        pytest.param(SLOW, 0, False, id="they are gone"),
    ],
)
def test_a_restarted_hyperjob_keeps_share_and_alternative_while_it_may_have_room(
    clusters: tuple[Cluster, ...], minutes: int, keeps: bool
) -> None:
    since = NOW - timedelta(minutes=minutes)
    status = {"alternatives": chosen("one"), "jobs": [record(since=since)]}
    seen = observed(shaped(status), clusters=clusters)
    admitted = QueueVerdict(admitted=frozenset({"hj-trainer-0"}))
    decided = plan(replace(seen, verdict=admitted))
    assert decided.status["jobs"][0].get("admitted", False) is keeps
    again = observed(shaped(decided.status), clusters=clusters)
    queued = unit_of(again)
    assert bool(queued.variants) is not keeps
    if keeps and minutes == 0 and not decided.actions:
        assert decided.requeue_after == timedelta(minutes=1)


def test_a_hyperjob_without_alternatives_keeps_its_share_without_room() -> None:
    raw = hyperjob(group(replicas=1), status={"jobs": [record(since=NOW - HOUR)]})
    admitted = QueueVerdict(admitted=frozenset({"hj-trainer-0"}))
    decided = plan(replace(observed(raw, clusters=()), verdict=admitted))
    assert decided.status["jobs"][0]["admitted"]
    assert "alternatives" not in decided.status


@pytest.mark.parametrize(
    ("status", "estimate", "left"),
    [
        pytest.param({}, None, None, id="nothing is known"),
        pytest.param({}, "2h", 2 * HOUR, id="an estimate"),
        pytest.param(
            {"training": {"step": 50, "steps": 200}}, "2h", 1.5 * HOUR, id="a part of an estimate"
        ),
        pytest.param(
            {
                "training": {"step": 100, "steps": 1900},
                "speeds": [{"alternatives": "trainer=one", "stepsPerSecond": "0.5"}],
            },
            "9h",
            HOUR,
            id="a measured speed",
        ),
        pytest.param(
            {
                "training": {"step": 100, "steps": 1900},
                "speeds": [{"alternatives": "trainer=two", "stepsPerSecond": "0.5"}],
            },
            None,
            None,
            id="the speed of another alternative",
        ),
        pytest.param(
            {
                "training": {"step": 100},
                "speeds": [{"alternatives": "trainer=one", "stepsPerSecond": "0.5"}],
            },
            None,
            None,
            id="a number of steps that is not known",
        ),
    ],
)
def test_the_remaining_time_of_an_alternative(
    status: Object, estimate: str | None, left: timedelta | None
) -> None:
    raw = shaped(status)
    if estimate is not None:
        alternative = raw["spec"]["replicatedJobs"][0]["alternatives"][0]
        alternative["templateSpec"] = {"runningEstimate": estimate}
    assert remaining(parse_hyperjob(raw)) == left


def test_without_speed_and_estimate_earlier_runs_with_the_same_alternative_count() -> None:
    runs = {template_of(parse_hyperjob(shaped({"alternatives": chosen("two")}))): 3 * HOUR}
    waits = unit_of(observed(shaped({}), clusters=SLOW), runs.get)
    assert [each.remaining for each in waits.variants] == [None, 3 * HOUR]


def test_the_event_of_a_start_names_the_alternative() -> None:
    def status(phase: str) -> Object:
        return {"state": {"phase": phase}, "alternatives": chosen("two")}

    (event,) = status_events(status("Queued"), status("Starting"))
    assert "trainer takes two: " in event.note
    (event,) = status_events(status("Starting"), status("Running"))
    assert "takes" not in event.note


@pytest.mark.parametrize(
    ("before", "speed", "after"),
    [
        pytest.param([], "2", {"trainer=one": "2"}, id="first measured"),
        pytest.param([("trainer=one", "2")], "2.05", {"trainer=one": "2"}, id="hardly changed"),
        pytest.param([("trainer=one", "2")], "3", {"trainer=one": "3"}, id="changed"),
        pytest.param(
            [("trainer=two", "1")],
            "2",
            {"trainer=one": "2", "trainer=two": "1"},
            id="beside that of another alternative",
        ),
    ],
)
def test_the_speed_of_a_running_alternative_stays_in_the_status(
    before: list[tuple[str, str]], speed: str, after: dict[str, str]
) -> None:
    speeds = [{"alternatives": text, "stepsPerSecond": each} for text, each in before]
    training = {"step": 5, "steps": 50, "stepsPerSecond": speed}
    status = {"alternatives": chosen("one"), "speeds": speeds, "training": training}
    raw = shaped(status)
    running = child(0, "Running", on="fast", gpus=16)
    decided = plan(observed(raw, *running, clusters=(cluster("fast", 0, total=16),)))
    assert decided.status["state"]["phase"] == "Running"
    found = {each["alternatives"]: each["stepsPerSecond"] for each in decided.status["speeds"]}
    assert found == after
    assert decided.status["alternatives"] == chosen("one"), "the reason of the choice stays"


def test_what_runs_or_has_ended_in_part_has_no_other_choice() -> None:
    raw = shaped({"alternatives": chosen("two")})
    seen = observed(raw, job(gpus=8), policy(cluster="slow"), clusters=SLOW)
    queued = unit_of(seen)
    assert (queued.choice, queued.variants) == ((("trainer", "two"),), ())
    raw["status"]["jobs"] = [job_status(0, phase="Completed", cluster="slow")]
    assert unit_of(observed(raw, clusters=SLOW)).variants == ()
    del raw["status"]["jobs"]
    free = unit_of(observed(raw, clusters=SLOW))
    assert [each.choice for each in free.variants] == [(("trainer", "one"),), (("trainer", "two"),)]
