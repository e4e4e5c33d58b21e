"""The patch between two documents: exact, minimal, and as the API server applies it."""

import copy

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_rules.patch import diff, pointer, same

CASES = {
    "nothing changes": ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
    "a field is added": ({}, {"a": 1}, [{"op": "add", "path": "/a", "value": 1}]),
    "a nested field is added": (
        {"a": [{"b": 1}]},
        {"a": [{"b": 1, "c": 2}]},
        [{"op": "add", "path": "/a/0/c", "value": 2}],
    ),
    "a value is replaced": ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
    "a field is removed": ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
    "a list grows at its end": (
        {"a": [1]},
        {"a": [1, 2]},
        [{"op": "add", "path": "/a/1", "value": 2}],
    ),
    "a list grows at its front": (
        {"a": [1]},
        {"a": [2, 1]},
        [{"op": "add", "path": "/a/0", "value": 2}],
    ),
    "a list shrinks in its middle": (
        {"a": [1, 2, 3, 4]},
        {"a": [1, 4]},
        [{"op": "remove", "path": "/a/2"}, {"op": "remove", "path": "/a/1"}],
    ),
    "true is not 1": ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
    "1.0 is not 1": ({"a": 1}, {"a": 1.0}, [{"op": "replace", "path": "/a", "value": 1.0}]),
    "null is not absent": ({"a": None}, {}, [{"op": "remove", "path": "/a"}]),
    "a label's slash is escaped": (
        {"l": {}},
        {"l": {"x/y~z": "1"}},
        [{"op": "add", "path": "/l/x~1y~0z", "value": "1"}],
    ),
    "an item changes in a list that shrinks": (
        {"a": [1, {"b": 1}, 3, 4]},
        {"a": [1, {"b": 2}, 4]},
        [{"op": "replace", "path": "/a/1/b", "value": 2}, {"op": "remove", "path": "/a/2"}],
    ),
    "an object becomes a list": (
        {"a": {}},
        {"a": [1]},
        [{"op": "replace", "path": "/a", "value": [1]}],
    ),
    "a type changes": ({"a": [1]}, {"a": {}}, [{"op": "replace", "path": "/a", "value": {}}]),
}


@pytest.mark.parametrize(("before", "after", "patch"), CASES.values(), ids=CASES.keys())
def test_diff(before, after, patch):
    assert diff(before, after) == patch


def test_pointer_joins_and_escapes():
    assert pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2)
    | st.text("a/~0é", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("a/~1", max_size=2), inner, max_size=3)
    ),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text("ab/~", max_size=2), JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_applying_the_diff_gives_exactly_the_intended_object(before, after):
    kept = copy.deepcopy((before, after))
    patched = jsonpatch.apply_patch(before, diff(before, after))
    assert same(patched, after)
    assert same([before, after], list(kept)), "neither document is changed"


@given(JSON)
def test_equal_documents_need_no_patch(value):
    assert diff(value, copy.deepcopy(value)) == []


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [([[1]], [[1]], True), ([[1]], [[2]], False), ([[1]], [[1, 2]], False), ([], [1], False)],
)
def test_lists_are_the_same_where_all_of_both_is(left, right, equal):
    assert same(left, right) is equal
