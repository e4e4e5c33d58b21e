"""The content of a Lease, the turns of namespaces, and texts in kubectl's forms."""

from datetime import UTC, datetime

import pytest

from hyperjob_core.kube.leaderelection import Sight, held, new_lease, released
from hyperjob_core.kube.workqueue import Turns
from hyperjob_core.text import printable

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
FIRST, SECOND = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:05.000000Z"


def sight(version: str = "1", *, since: float = 100.0, uid: str = "u", **spec: object) -> Sight:
    made = new_lease("ns", "name", "a", seconds=15, now=NOW)
    metadata = {**made["metadata"], "uid": uid, "resourceVersion": version}
    return Sight({**made, "metadata": metadata, "spec": made["spec"] | spec}, since)


@pytest.mark.parametrize(
    ("seconds", "until"),
    [(1, 101.0), (3600, 3700.0), (2**31 - 1, 3700.0), (0, 115.0), (-5, 115.0), ("x", 115.0)],
)
def test_a_lease_expires_after_its_duration_of_at_most_an_hour(
    seconds: object, until: float
) -> None:
    assert sight(leaseDurationSeconds=seconds).expires(15) == until


@pytest.mark.parametrize(
    ("before", "after"), [(0, 1), (2**31 - 1, 2**31 - 1), (2**63, 2**31 - 1), (None, 1), ("x", 1)]
)
def test_the_transitions_of_a_lease_stay_in_their_type(before: object, after: int) -> None:
    taken = held(sight(leaseTransitions=before), "b", seconds=15, now=LATER)
    assert taken["spec"]["leaseTransitions"] == after


def test_a_holder_renews_and_another_acquires() -> None:
    renewed = held(sight(), "a", seconds=20, now=LATER)
    assert renewed["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 20,
        "acquireTime": FIRST,
        "renewTime": SECOND,
        "leaseTransitions": 0,
    }
    assert renewed["metadata"]["resourceVersion"] == "1"
    taken = held(sight(leaseTransitions=3, other="kept"), "b", seconds=15, now=LATER)["spec"]
    assert (taken["holderIdentity"], taken["acquireTime"], taken["leaseTransitions"]) == (
        *("b", SECOND, 4),
    )
    assert taken["other"] == "kept"
    untimed = held(sight(acquireTime=None), "a", seconds=15, now=LATER)["spec"]
    assert untimed["acquireTime"] == SECOND


def test_a_released_lease_has_no_holder_and_expires_at_once() -> None:
    spec = released(sight(leaseTransitions=2), now=LATER)["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
    assert (spec["renewTime"], spec["acquireTime"], spec["leaseTransitions"]) == (
        *(SECOND, SECOND, 2),
    )


def test_a_lease_expires_its_duration_after_its_last_observed_change() -> None:
    seen = sight()
    assert (seen.holder, seen.transitions, seen.expires(9)) == ("a", 0, 115)
    assert sight(leaseDurationSeconds=None).expires(9) == 109
    assert Sight({"metadata": {}}, 5).holder == ""
    assert Sight({"metadata": {}}, 5).expires(9) == 14
    assert seen.updated(sight().lease, 200).since == 100
    assert seen.updated(sight("2").lease, 200).since == 200
    assert seen.updated(sight(uid="v").lease, 200).since == 200
    assert seen.updated(sight("2").lease, 200).lease["metadata"]["resourceVersion"] == "2"


def test_a_namespace_holds_at_most_its_bound_and_items_that_do_not_fit_wait() -> None:
    turns: Turns[str] = Turns(most=1)
    for item in ("a1", "a2", "b1"):
        turns.put(item[0], item)
    assert turns.take(lambda item: item == "a2") == "a2"
    assert turns.take(lambda item: item.startswith("a")) is None
    assert turns.take() == "b1"
    assert turns.take() is None
    turns.release("a")
    assert turns.take() == "a1"
    turns.put("c", "c1")
    turns.discard("c", "c1")
    turns.discard("c", "c1")
    assert (len(turns), turns.take()) == (0, None)


def test_characters_that_a_terminal_obeys_or_nobody_sees_are_escaped() -> None:
    assert printable("a\tb\nc") == "a\tb\nc"
    assert printable("\x1b[31m\r\u202e") == "\\u001b[31m\\u000d\\u202e"
    assert printable("\U000e0041") == "\\udb40\\udc41"
    assert printable("\u00e9\U0001f600\ufe0f") == "\u00e9\U0001f600\ufe0f"
