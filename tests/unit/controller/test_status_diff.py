"""What differs between two statuses."""

import pytest

from controller.status.diff import differs_in_words_only
from tests.unit.controller.builders import Object

BASE: Object = {
    "splitCount": 1,
    "state": {"phase": "Pending", "reason": "InsufficientCapacity", "message": "a lacks 1"},
    "jobs": [{"name": "x", "phase": "Unplaced", "reason": "r", "message": "a lacks 1"}],
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"state": {**BASE["state"], "message": "a lacks 2"}}, True),
        ({"jobs": [{**BASE["jobs"][0], "message": "a lacks 2"}]}, True),
        ({"state": {**BASE["state"], "reason": "Refused"}}, False),
        ({"jobs": [{**BASE["jobs"][0], "phase": "Placed"}]}, False),
        ({"jobs": [*BASE["jobs"], {"name": "y"}]}, False),
        ({"splitCount": 2}, False),
        ({"gang": {"attempts": 1}}, False),
    ],
)
def test_words_are_told_from_facts(change: Object, expected: bool) -> None:
    assert differs_in_words_only(BASE, BASE | change) is expected
