"""Server-side apply: merging, ownership, conflicts, letting go; what other writes leave behind."""

import copy

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob.sandbox.apiserver.errors import ApiError
from hyperjob.sandbox.apiserver.ownership.apply import (
    ApplyConflict,
    apply_patch,
    keep_times,
    track_update,
)
from hyperjob.sandbox.apiserver.ownership.fields import FieldsError, FieldSet
from hyperjob.sandbox.apiserver.ownership.typed import compare, to_field_set
from hyperjob.sandbox.apiserver.ownership.typeinfo import TypeInfo

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3},
                "mode": {"type": "string"},
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "set",
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "x-kubernetes-map-type": "atomic",
                },
                "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
    },
}
TYPES = TypeInfo.from_schema(SCHEMA)
VERSION = "conf.example.dev/v1"
T1, T2, T3 = (f"2026-01-01T00:00:0{i}Z" for i in (1, 2, 3))


def gadget(**spec):
    return {
        "apiVersion": VERSION,
        "kind": "Gadget",
        "metadata": {"name": "g", "namespace": "conf"},
        "spec": spec,
    }


def apply(live, applied, manager="m1", *, force=False, now=T1, types=TYPES, **more):
    return apply_patch(live, applied, manager=manager, force=force, types=types, now=now, **more)


def update(live, new, manager="kubectl-edit", *, now=T1, types=TYPES, **more):
    return track_update(
        live, new, manager=manager, api_version=new["apiVersion"], types=types, now=now, **more
    )


def managers(obj):
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", [])
    }


def with_uid(obj):
    return {**obj, "metadata": {**obj["metadata"], "uid": "u"}}


def test_the_first_apply_owns_what_it_sets():
    live = apply(None, gadget(size=5, parts=[{"name": "a"}], labels={"k": "1"}))
    assert live["spec"] == {"size": 5, "parts": [{"name": "a"}], "labels": {"k": "1"}}
    assert live["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": VERSION,
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:labels": {"f:k": {}},
                    "f:parts": {'k:{"name":"a"}': {".": {}, "f:name": {}}},
                    "f:size": {},
                }
            },
        }
    ]


def test_two_managers_share_lists_and_maps():
    live = apply(None, gadget(size=5, parts=[{"name": "a"}], labels={"k1": "1"}))
    live = apply(live, gadget(parts=[{"name": "b"}], labels={"k2": "2"}), "m2", now=T2)
    assert live["spec"] == {
        "size": 5,
        "parts": [{"name": "a"}, {"name": "b"}],
        "labels": {"k1": "1", "k2": "2"},
    }
    assert [entry["time"] for entry in live["metadata"]["managedFields"]] == [T1, T2]


def test_a_field_of_another_manager_is_a_conflict():
    live = apply(None, gadget(size=5))
    with pytest.raises(ApplyConflict) as caught:
        apply(live, gadget(size=7), "m2")
    assert caught.value.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "m1": .spec.size',
        "reason": "Conflict",
        "details": {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "m1"',
                    "field": ".spec.size",
                }
            ]
        },
        "code": 409,
    }


def test_several_conflicts_are_listed_by_manager():
    live = apply(None, gadget(size=5, parts=[{"name": "a", "count": 1}]))
    live = update(with_uid(live), with_uid({**live, "spec": {**live["spec"], "mode": "x"}}))
    with pytest.raises(ApplyConflict) as caught:
        apply(live, gadget(size=7, mode="y", parts=[{"name": "a", "count": 2}]), "m2")
    assert caught.value.status["message"] == (
        "Apply failed with 3 conflicts: "
        'conflicts with "kubectl-edit" using conf.example.dev/v1:\n- .spec.mode\n'
        'conflicts with "m1":\n- .spec.parts[name="a"].count\n- .spec.size'
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


def test_force_takes_fields_away_and_the_loser_lets_go():
    live = apply(None, gadget(size=5, parts=[{"name": "a"}]))
    live = apply(live, gadget(parts=[{"name": "b"}], labels={"k2": "2"}), "m2")
    live = apply(live, gadget(size=7, parts=[{"name": "b"}]), "m2", force=True)
    assert live["spec"]["size"] == 7
    live = apply(live, gadget(parts=[{"name": "a"}]), "m1")
    assert live["spec"] == {"size": 7, "parts": [{"name": "a"}, {"name": "b"}]}
    assert managers(live) == {
        ("m1", "Apply"): {"f:spec": {"f:parts": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}},
        ("m2", "Apply"): {
            "f:spec": {"f:parts": {'k:{"name":"b"}': {".": {}, "f:name": {}}}, "f:size": {}}
        },
    }


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


def test_an_emptied_object_stays_as_it_was_applied():
    live = apply(None, gadget(size=5))
    assert apply(live, gadget())["spec"] == {}
    live = apply(None, gadget(labels={"k": "1"}))
    assert apply(live, gadget(mode="x"))["spec"] == {"mode": "x"}


def test_the_same_apply_again_changes_nothing():
    live = apply(None, gadget(size=5, parts=[{"name": "a"}]))
    assert apply(live, gadget(size=5, parts=[{"name": "a"}]), now=T3) == live


def test_an_object_nobody_tracked_was_written_before_the_first_apply():
    live = apply(with_uid(gadget(size=5)), gadget(mode="x"), now=T2)
    assert managers(live) == {
        ("before-first-apply", "Update"): {"f:spec": {".": {}, "f:size": {}}},
        ("m1", "Apply"): {"f:spec": {"f:mode": {}}},
    }


def test_kubectl_takes_over_what_client_side_apply_set():
    first = gadget(size=5)
    record = orjson.dumps(first).decode()
    first["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": record}
    live = with_uid(update(None, first, "kubectl-client-side-apply"))
    live = apply(live, gadget(size=6), "kubectl", now=T2)
    assert live["spec"]["size"] == 6
    renewed = live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert orjson.loads(renewed) == gadget(size=6)
    with pytest.raises(ApplyConflict):
        apply(with_uid(update(None, first, "other")), gadget(size=6), "m2")


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
    "several": (
        gadget(sizex=3, size="x"),
        (
            "failed to create typed patch object (conf/g; conf.example.dev/v1, Kind=Gadget): "
            "errors:\n"
            "  .spec.sizex: field not declared in schema\n"
            "  .spec.size: expected numeric (int or float), got string"
        ),
    ),
}


@pytest.mark.parametrize(("applied", "message"), REFUSED.values(), ids=REFUSED)
def test_an_apply_that_does_not_fit_is_refused(applied, message):
    with pytest.raises(ApiError) as caught:
        apply(None, applied)
    assert caught.value.status["message"] == message
    assert caught.value.code == 500


def test_managed_fields_cannot_be_applied():
    applied = gadget()
    applied["metadata"]["managedFields"] = []
    with pytest.raises(ApiError, match=r"^metadata.managedFields must be nil$"):
        apply(None, applied)


def test_a_create_is_owned_by_its_writer():
    live = update(None, gadget(size=5, labels={"a": "b"}, parts=[{"name": "a"}]))
    assert live["metadata"]["managedFields"] == [
        {
            "manager": "kubectl-edit",
            "operation": "Update",
            "apiVersion": VERSION,
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    ".": {},
                    "f:labels": {".": {}, "f:a": {}},
                    "f:parts": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}}},
                    "f:size": {},
                }
            },
        }
    ]


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


@pytest.mark.parametrize("given", [[], [{}]])
def test_an_empty_list_switches_tracking_off(given):
    live = with_uid(update(None, gadget(size=5)))
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"] = given
    reset = update(live, new)
    assert "managedFields" not in reset["metadata"]
    again = update(reset, {**reset, "spec": {"size": 6}})
    assert "managedFields" not in again["metadata"]


def test_too_many_updaters_are_merged():
    live = with_uid(update(None, gadget(labels={})))
    for i in range(14):
        labels = {**live["spec"]["labels"], f"k{i}": "v"}
        live = update(
            live, {**live, "spec": {"labels": labels}}, f"w{i}", now=f"2026-01-01T00:00:{i:02}Z"
        )
    names = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert len(names) == 10
    assert "ancient-changes" in names
    ancient = next(
        iter(e for e in live["metadata"]["managedFields"] if e["manager"] == "ancient-changes")
    )
    assert ancient["fieldsV1"]["f:spec"]["f:labels"]["f:k0"] == {}


def test_builtin_kinds_merge_their_known_lists():
    types = TypeInfo.deduced()

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


def test_times_alone_are_no_change():
    old = update(None, gadget(size=5))
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = T3
    assert keep_times(old, new) == old
    new["spec"]["size"] = 6
    assert keep_times(old, new) == new


# An empty list with keys is no field, in Kubernetes too: nobody owns it.
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 3),
        "mode": st.sampled_from("xy"),
        "tags": st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3),
        "labels": st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"), max_size=2),
        "whole": st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"), max_size=2),
        "extra": st.dictionaries(
            st.sampled_from("kl"),
            st.integers(0, 1) | st.dictionaries(st.sampled_from("mn"), st.integers(0, 1)),
        ),
        "parts": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from("abc")}, optional={"count": st.integers(0, 2)}
            ),
            unique_by=lambda part: part["name"],
            min_size=1,
            max_size=3,
        ),
    },
)
steps = st.lists(
    st.tuples(st.sampled_from(["m1", "m2"]), specs, st.booleans()), min_size=1, max_size=5
)


def leaves(fields):
    return {
        path for path in fields if not any(p != path and p[: len(path)] == path for p in fields)
    }


@given(steps)
def test_any_history_is_idempotent_and_its_ownership_sound(history):
    live = None
    for manager, spec, force in history:
        applied = gadget(**spec)
        applied["metadata"]["labels"] = {"by": "all"}
        before = copy.deepcopy((live, applied))
        try:
            live = apply(live, applied, manager, force=force)
        except ApplyConflict:
            assert not force
            assert (live, applied) == before
            continue
        assert apply(before[0], before[1], manager, force=force) == live
        assert apply(live, applied, manager, now=T3) == live
        for name in ("size", "mode", "whole"):
            if name in spec:
                assert live["spec"][name] == spec[name]
        for name in ("tags", "parts"):
            found = live["spec"].get(name, []) if "spec" in live else []
            wanted = spec.get(name, [])
            names = [v["name"] if isinstance(v, dict) else v for v in wanted]
            kept = [v["name"] if isinstance(v, dict) else v for v in found]
            assert [key for key in kept if key in names] == names
    assert live is not None
    owned = FieldSet()
    for fields in managers(live).values():
        owned = owned.union(FieldSet.from_fields_v1(fields))
    # Only appliers wrote, so that whatever is left belongs to one of them.
    assert leaves(to_field_set({"spec": live.get("spec")}, TYPES)) <= set(owned)


@given(specs)
def test_fields_v1_reads_what_it_wrote(spec):
    for fields in managers(apply(None, gadget(**spec))).values():
        assert FieldSet.from_fields_v1(fields).to_fields_v1() == fields


@given(specs, specs, specs)
def test_field_sets_are_sets(first, second, third):
    a, b, c = (to_field_set(gadget(**spec), TYPES) for spec in (first, second, third))
    assert set(a.union(b)) == set(a) | set(b)
    assert set(a.intersection(b)) == set(a) & set(b)
    assert set(a.difference(b)) == set(a) - set(b)
    assert a.union(b).union(c) == a.union(b.union(c))
    assert not any(path in b for path in a.difference(b))


@given(specs, specs)
def test_comparing_finds_what_changed(old, new):
    change = compare(gadget(**old), gadget(**new), TYPES)
    assert not set(change.added) & set(change.removed)
    assert not set(change.modified) & set(change.added)
    assert not change.modified or old != new
    back = compare(gadget(**new), gadget(**old), TYPES)
    assert (set(back.added), set(back.removed)) == (set(change.removed), set(change.added))
    same = compare(gadget(**old), gadget(**old), TYPES)
    assert not any(map(bool, (same.added, same.removed, same.modified)))


@pytest.mark.parametrize("raw", [{"x": {}}, {"k:{": {}}, {"f:a": 1}, {"z:1": {}}, {"i:x": {}}])
def test_a_strange_fields_v1_is_refused(raw):
    with pytest.raises(FieldsError):
        FieldSet.from_fields_v1(raw)
