"""JSON patch, merge patch and strategic merge patch, as a PATCH request applies them."""

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.errors import ApiError
from hyperjob_sandbox.apiserver.patches.patch import json_patch, merge_patch, strategic_merge_patch

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=10,
)
objects = st.dictionaries(st.sampled_from("abcd"), json_values, max_size=4)

MERGE_CASES = {
    "a value replaces": ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    "a new key is added": ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    "null removes": ({"a": "b"}, {"a": None}, {}),
    "null leaves the rest": ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    "a list is replaced whole": ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    "a value becomes a list": ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    "objects merge": ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    "list items do not merge": ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    "null in the object stays": ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    "nulls of a new object vanish": ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    "a scalar gives way to an object": ({"a": 1}, {"a": {"b": 2, "c": None}}, {"a": {"b": 2}}),
    "nulls inside lists stay": ({}, {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}),
}


@pytest.mark.parametrize(("obj", "patch", "expected"), MERGE_CASES.values(), ids=MERGE_CASES)
def test_merge_patch(obj, patch, expected):
    assert merge_patch(obj, patch) == expected


@pytest.mark.parametrize("patch", [[], "x", 1, None, [{"op": "add"}]])
def test_merge_patch_must_be_an_object(patch):
    with pytest.raises(ApiError, match="Invalid JSON Patch") as caught:
        merge_patch({}, patch)
    assert caught.value.code == 400


JSON_CASES = {
    "add a member": ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    "append": ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    "insert": ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    "remove": ({"a": 1, "b": 2}, [{"op": "remove", "path": "/b"}], {"a": 1}),
    "replace": ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
    "move": ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
    "copy": ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    "escaped": ({"a/b": {"~": 1}}, [{"op": "remove", "path": "/a~1b/~0"}], {"a/b": {}}),
    "test passes": ({"a": [1, {"b": 2.0}]}, [{"op": "test", "path": "/a/1/b", "value": 2}], None),
    "whole document": ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
}


@pytest.mark.parametrize(("obj", "ops", "expected"), JSON_CASES.values(), ids=JSON_CASES)
def test_json_patch(obj, ops, expected):
    before = copy.deepcopy(obj)
    assert json_patch(obj, ops) == (before if expected is None else expected)
    assert obj == before


REJECTED = {
    "test fails": [{"op": "test", "path": "/spec/size", "value": 9}],
    "remove nothing": [{"op": "remove", "path": "/spec/nope"}],
    "replace nothing": [{"op": "replace", "path": "/nope", "value": 1}],
    "add below nothing": [{"op": "add", "path": "/no/pe", "value": 1}],
    "add below a scalar": [{"op": "add", "path": "/one/a", "value": 1}],
    "index out of range": [{"op": "add", "path": "/list/9", "value": 1}],
    "not a pointer": [{"op": "add", "path": "one", "value": 1}],
    "unknown operation": [{"op": "frob", "path": "/one"}],
    "no operation": [{"path": "/one"}],
    "no path": [{"op": "add", "value": 1}],
    "path is no string": [{"op": "add", "path": 1, "value": 1}],
    "no value": [{"op": "add", "path": "/x"}],
}


@pytest.mark.parametrize("ops", REJECTED.values(), ids=REJECTED)
def test_json_patch_that_does_not_apply(ops):
    with pytest.raises(ApiError) as caught:
        json_patch({"spec": {"size": 5}, "one": 1, "list": [1]}, ops)
    assert caught.value.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


def test_json_patch_must_be_a_list_of_operations():
    with pytest.raises(ApiError, match="cannot unmarshal object into Go value of type") as caught:
        json_patch({}, {"op": "add"})
    assert caught.value.code == 400


operations = st.dictionaries(
    st.sampled_from(["op", "path", "value", "from"]),
    st.sampled_from(["add", "remove", "move", "copy", "/a", "/b/0", "/a/-", "", 1, None]),
)


@given(objects, st.lists(operations, max_size=4))
def test_json_patch_applies_or_is_refused_and_leaves_its_input(obj, ops):
    before = copy.deepcopy(obj)
    with contextlib.suppress(ApiError):
        json_patch(obj, ops)
    assert obj == before


def pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


STRATEGIC_CASES = {
    "containers merge by name": (
        pod({"name": "a", "image": "1"}, {"name": "b", "image": "1"}),
        pod({"name": "b", "image": "2"}),
        pod({"name": "a", "image": "1"}, {"name": "b", "image": "2"}),
    ),
    "a new container is appended": (
        pod({"name": "a"}),
        pod({"name": "b", "env": [{"name": "X", "value": None}]}),
        pod({"name": "a"}, {"name": "b", "env": [{"name": "X"}]}),
    ),
    "a container is deleted": (
        pod({"name": "a"}, {"name": "b"}),
        pod({"name": "a", "$patch": "delete"}),
        pod({"name": "b"}),
    ),
    "an unknown list is atomic": (
        pod(tolerations=[{"key": "a"}]),
        {"spec": {"tolerations": [{"key": "b"}]}},
        pod(tolerations=[{"key": "b"}]),
    ),
    "finalizers are a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["b", "c"]}},
        {"metadata": {"finalizers": ["a", "b", "c"]}},
    ),
    "primitives are deleted": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    "null removes": ({"data": {"a": "1", "b": "2"}}, {"data": {"a": None}}, {"data": {"b": "2"}}),
    "order is set": (
        pod({"name": "a"}, {"name": "x"}, {"name": "b"}),
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "a", "image": "1"}],
            }
        },
        pod({"name": "x"}, {"name": "b"}, {"name": "a", "image": "1"}),
    ),
    "only some keys are retained": (
        {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}},
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        {"spec": {"strategy": {"type": "Recreate"}}},
    ),
    "conditions merge by type": (
        {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "X"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "X"}]}},
    ),
}


@pytest.mark.parametrize(
    ("obj", "patch", "expected"), STRATEGIC_CASES.values(), ids=STRATEGIC_CASES
)
def test_strategic_merge_patch(obj, patch, expected):
    before = copy.deepcopy(obj)
    assert strategic_merge_patch(obj, patch) == expected
    assert obj == before


def test_strategic_merge_patch_needs_the_merge_key():
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        strategic_merge_patch(pod({"name": "a"}), pod({"image": "x"}))
