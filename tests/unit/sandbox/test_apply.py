"""Server-side apply: merging, ownership, conflicts, letting go; what other writes leave behind."""

import copy

import pytest

from hyperjob_sandbox.apiserver.errors import ApiError
from hyperjob_sandbox.apiserver.ownership.apply import (
    ApplyConflict,
)
from hyperjob_sandbox.apiserver.schema.typeinfo import BUILTIN
from tests.unit.sandbox.gadgets import (
    T1,
    T2,
    T3,
    VERSION,
    apply,
    gadget,
    managers,
    update,
    with_uid,
)


def test_the_same_value_is_owned_together():
    live = apply(None, gadget(size=5))
    live = apply(live, gadget(size=5, mode="x"), "m2", now=T2)
    assert managers(live) == {
        ("m1", "Apply"): {"f:spec": {"f:size": {}}},
        ("m2", "Apply"): {"f:spec": {"f:size": {}, "f:mode": {}}},
    }
    live = apply(live, gadget(mode="x"), "m2", now=T3)
    assert live["spec"]["size"] == 5
    live = apply(live, gadget(), "m1", now=T3)
    assert live["spec"] == {"mode": "x"}


def test_what_an_applier_drops_goes_unless_an_updater_owns_it():
    live = with_uid(apply(None, gadget(size=5, mode="x", tags=["a", "b"])))
    live = update(live, {**live, "spec": {**live["spec"], "mode": "y"}}, now=T2)
    live = apply(live, gadget(tags=["b"]), now=T3)
    assert live["spec"] == {"mode": "y", "tags": ["b"]}


def test_a_list_item_goes_with_the_applier_who_named_it():
    live = with_uid(apply(None, gadget(parts=[{"name": "a"}, {"name": "b"}])))
    new = copy.deepcopy(live)
    new["spec"]["parts"][0]["count"] = 2
    live = update(live, new, now=T2)
    live = apply(live, gadget(parts=[{"name": "b"}]), now=T3)
    assert live["spec"]["parts"] == [{"name": "b"}]
    assert managers(live) == {
        ("m1", "Apply"): {"f:spec": {"f:parts": {'k:{"name":"b"}': {".": {}, "f:name": {}}}}}
    }


def test_atomic_things_are_owned_whole():
    live = apply(None, gadget(whole={"a": "1", "b": "2"}))
    assert managers(live)["m1", "Apply"] == {"f:spec": {"f:whole": {}}}
    with pytest.raises(ApplyConflict, match=r"conflict with \"m1\": \.spec\.whole"):
        apply(live, gadget(whole={"a": "1"}), "m2")
    live = apply(live, gadget(whole={"c": "3"}), "m1")
    assert live["spec"]["whole"] == {"c": "3"}


def test_unknown_depths_merge_by_name_and_lists_there_do_not():
    live = apply(None, gadget(extra={"a": {"b": 1, "l": [1, 2]}}))
    live = apply(live, gadget(extra={"a": {"c": 2}}), "m2")
    assert live["spec"]["extra"] == {"a": {"b": 1, "c": 2, "l": [1, 2]}}
    with pytest.raises(ApplyConflict, match=r"\.spec\.extra\.a\.l"):
        apply(live, gadget(extra={"a": {"l": [1]}}), "m2")


ORDERS = {
    "new items come last": (["a", "b"], ["c"], ["a", "b", "c"]),
    "applied order rules": (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
    "others keep their place": (["a", "x", "b"], ["a", "b"], ["a", "x", "b"]),
    "a new item lies before its neighbour": (["a", "b"], ["c", "a"], ["c", "a", "b"]),
}


@pytest.mark.parametrize(("live", "applied", "expected"), ORDERS.values(), ids=ORDERS)
def test_items_keep_an_order(live, applied, expected):
    merged = apply(gadget(tags=live), gadget(tags=applied), force=True)
    assert sorted(merged["spec"]["tags"]) == sorted(expected)
    assert [tag for tag in merged["spec"]["tags"] if tag in applied] == applied


REFUSED = {
    "unknown field": (
        gadget(sizex=3),
        (
            "failed to create typed patch object (conf/g; conf.example.dev/v1, Kind=Gadget): "
            ".spec.sizex: field not declared in schema"
        ),
    ),
    "duplicate item": (
        gadget(parts=[{"name": "a"}, {"name": "a"}]),
        (
            "failed to create typed patch object (conf/g; conf.example.dev/v1, Kind=Gadget): "
            '.spec.parts: duplicate entries for key [name="a"]'
        ),
    ),
    "item without key": (
        gadget(parts=[{"count": 1}]),
        (
            "failed to create typed patch object (conf/g; conf.example.dev/v1, Kind=Gadget): "
            ".spec.parts: element 0: associative list with keys has an element that omits all key "
            'fields ["name"] (and doesn\'t have default values for any key fields)'
        ),
    ),
}


@pytest.mark.parametrize(("applied", "message"), REFUSED.values(), ids=REFUSED)
def test_an_apply_that_does_not_fit_is_refused(applied, message):
    with pytest.raises(ApiError) as caught:
        apply(None, applied)
    assert caught.value.status["message"] == message
    assert caught.value.code == 500


def test_an_update_takes_what_it_changes_and_forgets_what_it_removes():
    live = with_uid(update(None, gadget(size=5, mode="x", tags=["a"])))
    new = {**live, "spec": {"size": 6, "tags": ["a"]}}
    live = update(live, new, "other", now=T2)
    assert managers(live) == {
        ("kubectl-edit", "Update"): {
            "f:spec": {".": {}, "f:tags": {".": {}, 'v:"a"': {}}},
        },
        ("other", "Update"): {"f:spec": {"f:size": {}}},
    }
    assert [entry["time"] for entry in live["metadata"]["managedFields"]] == [T1, T2]


def test_an_update_that_changes_nothing_leaves_the_times():
    live = with_uid(update(None, gadget(size=5)))
    assert update(live, copy.deepcopy(live), now=T3) == live
    without = gadget(size=5)
    without["metadata"]["uid"] = "u"
    assert update(live, without, now=T3) == live


def test_a_status_write_owns_status_alone():
    live = with_uid(update(None, gadget(size=5)))
    new = {**live, "spec": {"size": 9}, "status": {"ready": 1}}
    live = update(live, new, "controller", now=T2, subresource="status", reset=("metadata", "spec"))
    entries = live["metadata"]["managedFields"]
    assert entries[1] == {
        "manager": "controller",
        "operation": "Update",
        "apiVersion": VERSION,
        "time": T2,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {".": {}, "f:ready": {}}},
        "subresource": "status",
    }
    assert entries[0]["fieldsV1"] == {"f:spec": {".": {}, "f:size": {}}}


def test_builtin_kinds_merge_their_known_lists():
    types = BUILTIN

    def pod(*containers, labels=None):
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": labels or {}, "finalizers": ["a/b"]},
            "spec": {"containers": list(containers)},
        }

    live = apply(None, pod({"name": "a", "ports": [{"containerPort": 80}]}), types=types)
    assert managers(live)["m1", "Apply"] == {
        "f:metadata": {"f:finalizers": {'v:"a/b"': {}}, "f:labels": {}},
        "f:spec": {
            "f:containers": {
                'k:{"name":"a"}': {
                    ".": {},
                    "f:name": {},
                    "f:ports": {
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                    },
                }
            }
        },
    }
    live = apply(live, pod({"name": "b"}, labels={"x": "y"}), "m2", types=types)
    assert [c["name"] for c in live["spec"]["containers"]] == ["a", "b"]
