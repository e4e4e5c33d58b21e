"""What passes tell the metrics: each change once, and nothing at rest."""

from dataclasses import replace
from typing import Any

import pytest

from hyperjob_controller.insight.measures import (
    Meter,
    Scrape,
    StatusChange,
    change_of,
    opened_after,
    placed,
)
from hyperjob_core.kube.client import EventType
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.planned import CreateChild, OpenGate, Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.resources import parse_resources
from tests.support.counts import Counts, value
from tests.unit.engine.builders import GPU, NOW, cluster, group, hyperjob, job_status, observed

Object = dict[str, Any]
SIZES = ("below", "wanted", "beyond")
GATE = OpenGate(
    name="hj-trainer-0",
    binding="hj-trainer-0-job",
    binding_uid="rb-hj-trainer-0",
    policy_uid="pp-hj-trainer-0",
    release_scheduling=False,
)


def entry(index: int, phase: str, attempt: int = 0, since: str = "") -> Object:
    return job_status(
        index, phase=phase, attempt=attempt, lastTransitionTime=since or "2026-01-02T03:04:00Z"
    )


def state(phase: str, **fields: Any) -> Object:
    return {"state": {"phase": phase}, **fields}


def started(phase: str, *, at: str = "2026-01-02T03:01:00Z", **fields: Any) -> Object:
    return state(phase, startTime=at, **fields)


def sized(number: int, reason: str = "Grew") -> list[Object]:
    return [
        {"replicatedJob": "trainer", "name": str(number), "reason": reason, "message": "it has"}
    ]


ADMITTED = "2026-01-02T03:04:05Z"
NOTHING = StatusChange()
FAILED, MADE_AGAIN = entry(0, "Failed", 3), entry(0, "Unplaced", 4)
GIVES_BACK = [
    entry(0, "Placed", since="2026-01-02T03:03:30Z"),
    entry(1, "Placed", since="2026-01-02T03:03:50Z"),
    entry(2, "Queued", since="2026-01-02T03:00:00Z"),
]
CHANGES: dict[str, tuple[Object, Object, StatusChange]] = {
    "nothing changed": (started("Running"), started("Running"), NOTHING),
    "waits for its queue": (state("Pending"), state("Queued"), NOTHING),
    "admitted, 245 s after its creation": (
        state("Queued"),
        started("Starting", at=ADMITTED),
        StatusChange(queue_wait=245.0),
    ),
    "resumed: it had been admitted before": (started("Suspended"), started("Starting"), NOTHING),
    "failed before it ever started": (
        state("Pending"),
        started("Failed", at=ADMITTED),
        StatusChange(finished="Failed"),
    ),
    "completed": (started("Running"), started("Completed"), StatusChange(finished="Completed")),
    "completed before": (state("Completed"), state("Completed"), NOTHING),
    "restarted whole": (
        started("Running", restarts=1, jobs=[entry(0, "Failed"), entry(1, "Running")]),
        started("Restarting", restarts=2, jobs=[entry(each, "Unplaced", 1) for each in (0, 1)]),
        StatusChange(restarts=1, attempts=2),
    ),
    "one of it made again on request": (
        started("Running", restarts=1, jobs=[FAILED]),
        started("Restarting", restarts=1, jobs=[MADE_AGAIN]),
        StatusChange(attempts=1),
    ),
    "grew": (
        started("Running", alternatives=sized(2, "LargestWithRoom")),
        started("Restarting", alternatives=sized(4, "Grew")),
        StatusChange(resized="Grew"),
    ),
    "has another alternative": (
        state("Queued", alternatives=sized(2, "Wanted")),
        state("Queued", alternatives=sized(4, "LargestWithRoom")),
        NOTHING,
    ),
    "gave back, 35 s after its first was admitted": (
        state("Queued", gang={"attempts": 1}, jobs=GIVES_BACK),
        state("Pending", gang={"attempts": 2}),
        StatusChange(given_back_after=35.0),
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_a_written_status_is_measured_by_what_is_new_in_it(
    old: Object, new: Object, expected: StatusChange
) -> None:
    assert change_of(observed(hyperjob(status=old)).hyperjob, new, now=NOW) == expected


def test_the_wait_of_a_gang_counts_from_its_first_admitted_sub_job() -> None:
    jobs = [entry(0, "Placed", since="2026-01-02T03:03:00Z"), entry(1, "Queued")]
    mine = observed(hyperjob(status=state("Queued", jobs=jobs))).hyperjob
    assert opened_after(mine, [], now=NOW) is None
    assert opened_after(mine, [GATE], now=NOW) == 65.0
    assert opened_after(observed(hyperjob()).hyperjob, [GATE], now=NOW) == 0.0


def test_a_pass_tells_whether_it_found_places() -> None:
    room, none = (cluster("a", 100),), (cluster("a", 0),)
    assert placed(plan(observed(hyperjob(), clusters=room))) is True
    assert placed(plan(observed(hyperjob(), clusters=none))) is False
    assert placed(Plan()) is None
    again = CreateChild(name="x", policy={}, job=None, cluster="a", demand={})
    assert placed(Plan(actions=(again,))) is None, "its policy was lost; its place was not"


def scrape(
    meter: Meter, clusters: tuple[Cluster, ...] = (), reserved: dict[str, Any] | None = None
) -> Scrape:
    return Scrape(
        lambda _: (clusters, reserved or {}), meter=meter, mode=lambda: "builtin", now=lambda: NOW
    )


def test_phases_are_followed_through_a_life() -> None:
    meter = Meter()
    first, running = hyperjob(), hyperjob(status=state("Running", jobs=[entry(0, "Running")]))
    meter.seen(EventType.ADDED, None, first)
    assert value(scrape(meter), "hyperjob_hyperjobs", phase="Pending") == 1
    meter.seen(EventType.MODIFIED, first, running)
    assert value(scrape(meter), "hyperjob_hyperjobs", phase="Pending") == 0
    assert value(scrape(meter), "hyperjob_hyperjobs", phase="Running") == 1
    assert value(scrape(meter), "hyperjob_jobs", phase="Running") == 1
    meter.seen(EventType.DELETED, running, None)
    assert value(scrape(meter), "hyperjob_hyperjobs", phase="Running") == 0
    assert value(scrape(meter), "hyperjob_jobs", phase="Running") == 0


def test_sizes_are_compared_with_those_that_running_hyperjobs_would_like() -> None:
    meter = Meter()
    split = {"mode": "auto", "accelerators": 4, "minAccelerators": 1, "acceleratorType": GPU}
    for bounds in ({"replicas": 4, "maxReplicas": 8}, {"splitPolicy": split}):
        before = None
        for number, size in ((2, "below"), (4, "wanted"), (8, "beyond"), (1, "below")):
            made = hyperjob(group() | bounds, status=state("Running", alternatives=sized(number)))
            meter.seen(EventType.MODIFIED, before, made)
            own = {
                each: value(scrape(meter), "hyperjob_elastic_hyperjobs", size=each)
                for each in SIZES
            }
            assert own == {**dict.fromkeys(SIZES, 0), size: 1}
            before = made
        meter.seen(EventType.DELETED, before, None)
        meter.seen(EventType.ADDED, None, hyperjob(status=state("Queued", alternatives=sized(1))))
    assert value(scrape(meter), "hyperjob_elastic_hyperjobs", size="below") == 0


def test_what_was_written_and_done_arrives_in_the_series() -> None:
    counts, meter = Counts(), Meter()
    for old, new, _ in CHANGES.values():
        meter.written(observed(hyperjob(status=old)).hyperjob, new, now=NOW)
    meter.carried_out(observed(hyperjob()).hyperjob, [GATE], now=NOW)
    meter.placed(plan(observed(hyperjob(), clusters=(cluster("a", 0),))))
    meter.refused("Invalid")
    assert counts("hyperjob_queue_wait_seconds_sum", queue="") == 245
    assert counts("hyperjob_gang_wait_seconds_count", outcome="gave_back") == 1
    assert counts("hyperjob_gang_wait_seconds_count", outcome="opened") == 1
    assert counts("hyperjob_restarts_total") == 1
    assert counts("hyperjob_job_attempts_total") == 3
    assert counts("hyperjob_resized_total", reason="Grew") == 1
    assert counts("hyperjob_finished_total", phase="Failed") == 1
    assert counts("hyperjob_finished_total", phase="Completed") == 1
    assert counts("hyperjob_placement_attempts_total", result="no_room") == 1
    assert counts("hyperjob_placement_attempts_total", result="placed") == 0
    assert counts("hyperjob_refusals_total", reason="Invalid") == 1


def test_a_cluster_with_an_endless_amount_of_a_device_is_shown_too() -> None:
    amounts = parse_resources({GPU: "1e400"})
    endless = replace(cluster("a", 4), allocatable=amounts, free=amounts)
    shown = scrape(Meter(), (endless,), {})
    assert value(shown, "hyperjob_accelerators_free", cluster="a", type=GPU) == 2.0**63


def test_accelerators_are_shown_by_cluster_and_type() -> None:
    members = (cluster("a", 4, total=16), cluster("b", 0))
    reserved = {"a": {GPU: 8 * 10**9, "cpu": 10**9}}
    shown = scrape(Meter(), members, reserved)
    for kind, expected in (("allocatable", 16), ("free", 4), ("reserved", 8)):
        assert value(shown, f"hyperjob_accelerators_{kind}", cluster="a", type=GPU) == expected
    assert value(shown, "hyperjob_accelerators_reserved", cluster="b", type=GPU) == 0
    assert value(shown, "hyperjob_accelerators_free", cluster="a", type="cpu") is None
