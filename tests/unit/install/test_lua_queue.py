"""What Karmada makes of one Queue in many members by our scripts."""

from typing import Any

import pytest

from tests.unit.install.karmadalua import Script


def queue(**content: Any) -> Any:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        **content,
    }


def aggregate(*statuses: Any, before: Any = None) -> Any:
    items = [
        {"clusterName": f"member{i}", "applied": True, **({"status": each} if each else {})}
        for i, each in enumerate(statuses)
    ]
    obj = queue(status=before) if before is not None else queue()
    return Script("queue_status_aggregation.lua").call(obj, items)


STATES = {
    "open everywhere": (["Open", "Open"], "Open"),
    "closed in one member": (["Closed", "Open"], "Open"),
    "closed everywhere": (["Closed", "Closed"], "Closed"),
    "jobs run out": (["Closed", "Closing"], "Closing"),
    "unknown somewhere": (["Unknown", "Closed"], "Closed"),
    "unknown everywhere": (["Unknown"], "Unknown"),
    "one member has not said": (["", "Open"], "Open"),
    "nobody has said": ([""], None),
}


@pytest.mark.parametrize("case", STATES)
def test_a_queue_is_open_while_any_member_takes_jobs(case: str) -> None:
    states, expected = STATES[case]
    for order in (states, states[::-1]):
        found = aggregate(*({"state": state, "running": 0} for state in order))
        assert found["status"].get("state") == expected


QUANTITIES = {
    "plain": (["1", "2"], "3"),
    "milli": (["500m", "250m"], "750m"),
    "milli and whole": (["1500m", "1"], "2500m"),
    "binary": (["1Gi", "512Mi"], "1536Mi"),
    "binary fractions": (["1.5Gi", "2.5Gi"], "4Gi"),
    "three members": (["1.5Gi", "1.5Gi", "1Gi"], "4Gi"),
    "large": (["1Ti", "1Ti"], "2Ti"),
    "small": (["512Ki", "512Ki"], "1Mi"),
    "decimal": (["1k", "2k"], "3k"),
    "exponents": (["1e3", "1e3"], "2e3"),
    "numbers": ([3, 4], "7"),
    "one member only": (["8"], "8"),
}


@pytest.mark.parametrize("case", QUANTITIES)
@pytest.mark.parametrize("name", ["cpu", "memory", "nvidia.com/gpu"])
def test_quantities_add_up_whatever_their_unit(case: str, name: str) -> None:
    amounts, expected = QUANTITIES[case]
    found = aggregate(*({"allocated": {name: amount}} for amount in amounts))
    assert found["status"]["allocated"] == {name: expected}


def test_every_count_and_reservation_adds_up() -> None:
    found = aggregate(
        {
            "state": "Open",
            "pending": 1,
            "inqueue": 2,
            "running": 3,
            "completed": 4,
            "unknown": 5,
            "allocated": {"cpu": "1"},
            "reservation": {"nodes": ["b", "a"], "resource": {"cpu": "500m"}},
        },
        {
            "state": "Open",
            "pending": 10,
            "running": 30,
            "allocated": {"memory": "1Gi"},
            "reservation": {"nodes": ["c", "a"], "resource": {"cpu": "500m"}},
        },
    )
    assert found["status"] == {
        "state": "Open",
        "pending": 11,
        "inqueue": 2,
        "running": 33,
        "completed": 4,
        "unknown": 5,
        "allocated": {"cpu": "1", "memory": "1Gi"},
        "reservation": {"nodes": ["a", "b", "c"], "resource": {"cpu": "1"}},
    }


@pytest.mark.parametrize("statuses", [(), (None,), (None, None)], ids=["none", "one", "two"])
def test_a_status_stays_while_no_member_reports(statuses: tuple[None, ...]) -> None:
    before = {"state": "Open", "running": 3}
    assert aggregate(*statuses, before=before)["status"] == before


def test_what_was_there_is_replaced_whole() -> None:
    before = {"state": "Closed", "running": 99, "allocated": {"cpu": "99"}}
    found = aggregate({"state": "Open", "running": 1}, before=before)
    assert (found["status"]["state"], found["status"]["running"]) == ("Open", 1)
    assert "allocated" not in found["status"]


def retain(desired: Any, observed: Any) -> Any:
    return Script("queue_retention.lua").call(desired, observed, like=[desired, observed])


def test_a_queue_keeps_what_the_member_filled_in() -> None:
    there = {"weight": 1, "reclaimable": True, "parent": "root", "dequeueStrategy": "traverse"}
    assert retain(queue(), queue(spec=there))["spec"] == there
    assert retain(queue(spec={}), queue(spec=there))["spec"] == there


def test_what_the_control_plane_says_of_a_queue_wins() -> None:
    ours = {"weight": 4, "reclaimable": False, "parent": "research", "dequeueStrategy": "fifo"}
    theirs = {"weight": 1, "reclaimable": True, "parent": "root", "dequeueStrategy": "traverse"}
    assert retain(queue(spec=ours), queue(spec=theirs))["spec"] == ours


def test_a_limit_that_is_lifted_is_lifted_in_the_member() -> None:
    there = {"weight": 2, "capability": {"cpu": "8"}, "deserved": {"cpu": "4"}, "priority": 9}
    assert retain(queue(spec={"weight": 2}), queue(spec=there))["spec"] == {"weight": 2}
