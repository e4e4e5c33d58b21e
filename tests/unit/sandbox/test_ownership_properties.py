"""Field ownership over random histories, and the documents of sets of fields."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.ownership.apply import (
    ApplyConflict,
)
from hyperjob_sandbox.apiserver.ownership.fields import read, write
from hyperjob_sandbox.apiserver.ownership.typed import compare, to_fields
from tests.unit.sandbox.gadgets import (
    T3,
    TYPES,
    apply,
    gadget,
    managers,
)

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
    owned = {path for fields in managers(live).values() for path in read(fields)}
    # Only appliers wrote, so that whatever is left belongs to one of them.
    assert leaves(to_fields({"spec": live.get("spec")}, TYPES)) <= owned


@given(specs)
def test_fields_v1_reads_what_it_wrote(spec):
    for fields in managers(apply(None, gadget(**spec))).values():
        assert write(read(fields)) == fields


@given(specs, specs)
def test_comparing_finds_what_changed(old, new):
    changed, removed = compare(gadget(**old), gadget(**new), TYPES)
    assert not changed & removed
    assert not changed or old != new
    changed_back, removed_back = compare(gadget(**new), gadget(**old), TYPES)
    assert removed <= changed_back
    assert removed_back <= changed
    assert changed - removed_back == changed_back - removed
    assert compare(gadget(**old), gadget(**old), TYPES) == (frozenset(), frozenset())


@pytest.mark.parametrize("raw", [{"x": {}}, {"f:a": 1}, {"z:1": {}}])
def test_a_strange_fields_v1_is_refused(raw):
    with pytest.raises(ValueError, match="invalid path element"):
        read(raw)
