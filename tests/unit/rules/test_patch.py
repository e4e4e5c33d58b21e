"""The patch between an object and what the webhook makes of it, which shares unchanged parts."""

import pytest

from hyperjob_rules.patch import additions, pointer

SHARED = {"b": [1, {"c": 2}]}
CASES = {
    "nothing changes": (SHARED, SHARED, []),
    "a field is added": (SHARED, {**SHARED, "a": 1}, [{"op": "add", "path": "/a", "value": 1}]),
    "a field of an item is added": (
        [SHARED, {"a": 1}],
        [SHARED, {"a": 1, "c": {}}],
        [{"op": "add", "path": "/1/c", "value": {}}],
    ),
    "a value is replaced": ({"a": 1}, {"a": "1"}, [{"op": "replace", "path": "/a", "value": "1"}]),
    "null is a value": ({"a": None}, {"a": ""}, [{"op": "replace", "path": "/a", "value": ""}]),
    "a label's slash is escaped": (
        {"l": {}},
        {"l": {"x/y~z": "1"}},
        [{"op": "add", "path": "/l/x~1y~0z", "value": "1"}],
    ),
}


@pytest.mark.parametrize(("before", "after", "patch"), CASES.values(), ids=CASES.keys())
def test_additions(before, after, patch):
    assert list(additions(before, after)) == patch


def test_pointer_joins_and_escapes():
    assert pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"
