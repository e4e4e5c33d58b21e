"""What the controller says while a real Karmada and Volcano go through their motions.

Of recorded events after which it said and did the same, the files have the first.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import reduce
from itertools import groupby
from operator import getitem
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
    ("name", "expected", "end"),
    [
        (
            "llm-training",
            ["Queued", "Starting", "Running", "Completed"],
            {("conditions", 0, "type"): "Completed", ("jobsReady",): "2/2"},
        ),
        (
            "fails",
            ["Queued", "Starting", "Degraded", "Failed"],
            {("conditions", 0, "reason"): "SomeChildVCJobsUnsuccessful", ("jobsReady",): "1/2"},
        ),
        ("nofit", ["Queued", "Starting"], {("state", "reason"): "NoClusterFit"}),
    ],
)
def test_a_recorded_hyperjob_has_its_phases_and_its_end(
    name: str, expected: list[str], end: dict[tuple[str | int, ...], str]
) -> None:
    plans = list(replay("karmada.jsonl", recorded(name), settled=5, only=f"{name}-"))
    assert phases(plans) == expected
    assert all(not item.actions for item in plans)
    status = plans[-1].status
    assert {path: reduce(getitem, path, status) for path in end} == end


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
