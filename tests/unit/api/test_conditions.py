"""A condition's time moves when its status flips, and at no other time."""

from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api import conditions
from hyperjob_core.api.model import Condition

EARLY, LATE = "2026-11-21T03:43:16Z", "2026-11-21T03:44:00Z"


def condition(type_: str = "Completed", status: str = "True", **more: str) -> Condition:
    return Condition(type=type_, status=status, **more)


def test_a_new_condition_gets_the_time_it_was_set() -> None:
    (only,) = conditions.set_condition((), condition(), now=EARLY)
    assert only.last_transition_time == EARLY


def test_the_time_stays_while_the_status_does() -> None:
    first = conditions.set_condition((), condition(reason="A"), now=EARLY)
    (only,) = conditions.set_condition(first, condition(reason="B", message="more"), now=LATE)
    assert (only.last_transition_time, only.reason, only.message) == (EARLY, "B", "more")


def test_the_time_moves_when_the_status_flips() -> None:
    first = conditions.set_condition((), condition(status="False"), now=EARLY)
    (only,) = conditions.set_condition(first, condition(status="True"), now=LATE)
    assert only.last_transition_time == LATE


def test_conditions_keep_their_order() -> None:
    current = (condition("A"), condition("B"), condition("C"))
    changed = conditions.set_condition(current, condition("B", "False"), now=LATE)
    assert [item.type for item in changed] == ["A", "B", "C"]
    assert [item.type for item in conditions.remove(changed, "A")] == ["B", "C"]


def test_only_true_is_true() -> None:
    current = (condition("A"), condition("B", "Unknown"))
    assert conditions.is_true(current, "A")
    assert not conditions.is_true(current, "B")
    assert not conditions.is_true(current, "C")
    assert conditions.find(current, "C") is None


def test_what_is_no_condition_is_left_out_when_reading() -> None:
    good = {"type": "Scheduled", "status": "True", "reason": "Success", "more": 1}
    status = {"conditions": [good, {"status": "Pending"}, "x", None]}
    (only,) = conditions.parse(status)
    assert only.to_object() == good
    assert conditions.parse(None) == conditions.parse({}) == ()
    assert conditions.parse({"conditions": "x"}) == ()


one = st.builds(Condition, type=st.sampled_from("ABC"), status=st.sampled_from(["True", "False"]))


@given(st.lists(one, unique_by=lambda item: item.type), one)
def test_setting_twice_changes_nothing_more(current: list[Condition], new: Condition) -> None:
    once = conditions.set_condition(current, new, now=EARLY)
    assert conditions.set_condition(once, new, now=LATE) == once
    assert conditions.find(once, new.type) is not None
    assert len(once) == len({item.type for item in current} | {new.type})
