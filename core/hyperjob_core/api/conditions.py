"""Conditions of an object's status, with the rules of apimachinery's `meta.SetStatusCondition`.

`lastTransitionTime` changes only with the status of the condition; the caller passes the time.
"""

from collections.abc import Iterable

from pydantic import ValidationError

from hyperjob_core.api.meta import Object
from hyperjob_core.api.model import Condition


def parse(status: Object | None) -> tuple[Condition, ...]:
    """Parse `conditions` of a status, without malformed entries."""
    raw = (status or {}).get("conditions")
    conditions: list[Condition] = []
    for item in raw if isinstance(raw, list) else ():
        try:
            conditions.append(Condition.model_validate(item))
        except ValidationError:
            continue
    return tuple(conditions)


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Return whether the condition of a type exists and is True."""
    found = find(conditions, type_)
    return found is not None and found.status == "True"


def set_condition(
    conditions: Iterable[Condition], new: Condition, *, now: str
) -> tuple[Condition, ...]:
    """Add or replace a condition in its place; its time stays unless the status changes."""
    current = tuple(conditions)
    old = find(current, new.type)
    if old is not None and old.status == new.status:
        time = old.last_transition_time or new.last_transition_time or now
    else:
        time = new.last_transition_time or now
    new = new.model_copy(update={"last_transition_time": time})
    if old is None:
        return (*current, new)
    return tuple(new if condition.type == new.type else condition for condition in current)


def remove(conditions: Iterable[Condition], type_: str) -> tuple[Condition, ...]:
    """Return the conditions without that of a type."""
    return tuple(condition for condition in conditions if condition.type != type_)
