"""What the controller says while a real Karmada and Volcano go through their motions."""

import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path

import pytest

from hyperjob_engine.model.observed import Cluster, QueueAdmission
from hyperjob_engine.model.planned import OpenGate, Plan
from hyperjob_engine.plan import plan
from tests.support.structural import assert_status
from tests.unit.engine.builders import (
    NOW,
    Object,
    cluster,
    group,
    hyperjob,
    observed,
    task,
    template,
)

DATA = Path(__file__).parent / "data"


def events(file: str) -> Iterator[tuple[float, str, Object]]:
    for line in (DATA / file).read_text().splitlines():
        event = json.loads(line)
        yield event["t"], event["type"], event["object"]


def replay(
    file: str, raw: Object, *, settled: int, only: str = "", clusters: tuple[Cluster, ...] = ()
) -> Iterator[Plan]:
    """Give the plan after each event, from when `settled` objects are there until one goes."""
    store: dict[tuple[str, str], Object] = {}
    status: Object = {}
    for t, kind, obj in events(file):
        name = obj["metadata"]["name"]
        if obj["kind"] == "HyperJob" or not name.startswith(only):
            continue
        if kind == "DELETED":
            return
        store[obj["kind"], name] = obj
        if len(store) < settled:
            continue
        seen = observed(
            raw | {"status": status},
            *store.values(),
            clusters=clusters,
            admission=QueueAdmission.VOLCANO_GLOBAL,
            now=NOW + timedelta(seconds=t),
        )
        decided = plan(seen)
        assert decided.status is not None
        assert_status(decided.status)
        status = decided.status
        yield decided


def phases(plans: list[Plan]) -> list[str]:
    told = [item.status["state"]["phase"] for item in plans if item.status is not None]
    return [phase for phase, _ in groupby(told)]


def recorded(name: str) -> Object:
    return next(
        o
        for _, _, o in events("karmada.jsonl")
        if o["kind"] == "HyperJob" and o["metadata"]["name"] == name
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llm-training", ["Queued", "Starting", "Running", "Completed"]),
        ("fails", ["Queued", "Starting", "Degraded", "Failed"]),
        ("nofit", ["Queued", "Starting"]),
    ],
)
def test_the_phases_of_a_recorded_hyperjob(name: str, expected: list[str]) -> None:
    plans = list(replay("karmada.jsonl", recorded(name), settled=5, only=f"{name}-"))
    assert phases(plans) == expected
    assert all(not item.actions for item in plans)


def test_a_completed_recording_ends_as_upstream_tells_it() -> None:
    *_, last = replay("karmada.jsonl", recorded("llm-training"), settled=5, only="llm-training-")
    assert last.status is not None
    assert last.status["conditions"][0]["type"] == "Completed"
    states = last.status["replicatedJobsStatus"][0]["jobStates"]
    assert {state["phase"] for state in states.values()} == {"Completed"}
    assert set(states) == {"llm-training-trainer-0", "llm-training-trainer-1"}
    assert last.status["jobsReady"] == "2/2"


def test_a_failed_recording_ends_as_upstream_tells_it() -> None:
    *_, last = replay("karmada.jsonl", recorded("fails"), settled=5, only="fails-")
    assert last.status is not None
    assert last.status["conditions"][0]["message"] == (
        "HyperJob failed: 1 completed, 1 failed, 0 aborted, 0 terminated"
    )


def test_a_sub_job_that_no_cluster_fits_says_so() -> None:
    *_, last = replay("karmada.jsonl", recorded("nofit"), settled=5, only="nofit-")
    assert last.status is not None
    assert last.status["state"]["reason"] == "NoClusterFit"
    assert "0/2 clusters are available" in last.status["state"]["message"]


def test_the_gate_of_a_recorded_gang() -> None:
    """Both are released at 2.4 s; one is pinned elsewhere twice before the gate opens."""
    raw = hyperjob(group("x", replicas=2, templateSpec=template(task(replicas=24))), name="gang")
    raw["metadata"]["uid"] = "gang-uid"
    raw["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"] = [
        task("master", 1),
        task("worker", 23),
    ]
    clusters = cluster("member1", 0), cluster("member2", 0)  # all is reserved, for this gang
    plans = list(replay("gang.jsonl", raw, settled=6, clusters=clusters))
    openings = [
        {action.name for action in item.actions if isinstance(action, OpenGate)} for item in plans
    ]
    assert openings[0] == set()
    first = next(found for found in openings if found)
    assert first == {"gang-x-0", "gang-x-1"}, "the gang goes together"
    assert openings[-1] == set()
    assert phases(plans) == ["Queued", "Starting", "Running", "Completed"]
