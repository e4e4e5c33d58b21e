"""Structural schemas: pruning, defaults, refusals in the API server's words, ratcheting, rules."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.errors import ApiError
from hyperjob_sandbox.apiserver.schema.scale import Scale
from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema

PARTS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 8,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "count": {"type": "integer", "default": 1, "minimum": 0},
            "opts": {
                "type": "object",
                "properties": {"deep": {"type": "boolean", "default": True}},
            },
        },
    },
}
GADGET = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["parts"],
            "properties": {
                "size": {
                    "type": "integer",
                    "format": "int32",
                    "minimum": 1,
                    "maximum": 10,
                    "default": 3,
                },
                "mode": {"type": "string", "enum": ["static", "auto"], "default": "static"},
                "title": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$", "maxLength": 12},
                "note": {"type": "string", "nullable": True},
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "set",
                    "maxItems": 5,
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "port": {"x-kubernetes-int-or-string": True},
                "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "fixed": {
                    "type": "string",
                    "x-kubernetes-validations": [
                        {"rule": "self == oldSelf", "message": "fixed is immutable"}
                    ],
                },
                "parts": PARTS,
            },
            "x-kubernetes-validations": [
                {
                    "rule": "size(self.parts) <= self.size",
                    "message": "more parts than size",
                    "fieldPath": ".parts",
                }
            ],
        },
        "status": {
            "type": "object",
            "properties": {"ready": {"type": "integer"}, "phase": {"type": "string"}},
        },
    },
}
SCHEMA = StructuralSchema.build(GADGET)
SCALE = Scale("spec.size", "status.ready")
SKIPPED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation"
)


def gadget(**spec):
    spec.setdefault("parts", [{"name": "a"}])
    return {
        "apiVersion": "conf.example.dev/v1",
        "kind": "Gadget",
        "metadata": {"name": "g"},
        "spec": spec,
    }


def texts(errors):
    return sorted(map(str, errors))


def refuse(obj, old=None, *, status_only=False):
    obj = copy.deepcopy(obj)
    SCHEMA.prepare(obj)
    before = SCALE.problems(obj, status_only=status_only)
    return texts(SCHEMA.validate(obj, old, before=before, status_only=status_only))


# The transcript of a real API server in tests/conformance has the others.
REFUSED = {
    "required at the root": ({"metadata": {}}, [SKIPPED, "spec: Required value"]),
    "null in a list": (
        gadget(tags=[None]),
        [
            SKIPPED,
            (
                'spec.tags[0]: Invalid value: "null": '
                'spec.tags[0] in body must be of type string: "null"'
            ),
        ],
    ),
}


@pytest.mark.parametrize(("obj", "expected"), REFUSED.values(), ids=REFUSED)
def test_an_object_is_refused_in_the_api_servers_words(obj, expected):
    assert refuse(obj) == sorted(expected)


def test_a_sound_object_passes():
    obj = gadget(title="abc", tags=["x"], port="http", labels={"a": "b"}, note=None, fixed="one")
    assert refuse(obj) == []


PRUNED = {
    "nothing": (gadget(), []),
    "a field": (gadget(sizex=3), ["spec.sizex"]),
    "below a list": (gadget(parts=[{"name": "a", "cuont": 2}]), ["spec.parts[0].cuont"]),
    "below a scalar": (gadget(port={"a": 1}), ["spec.port.a"]),
    "at the root": ({**gadget(), "extra": 1}, ["extra"]),
    "not what is preserved": (gadget(extra={"any": {"thing": [1]}}), []),
    "metadata": ({**gadget(z=1), "metadata": {"foo": 1}}, ["metadata.foo", "spec.z"]),
    "below metadata": (
        {**gadget(), "metadata": {"ownerReferences": [{"name": "a", "x": 1}]}},
        ["metadata.ownerReferences[0].x"],
    ),
    "sorted": (gadget(z=1, a=1), ["spec.a", "spec.z"]),
}


@pytest.mark.parametrize(("obj", "unknown"), PRUNED.values(), ids=PRUNED)
def test_unknown_fields_are_dropped_and_named(obj, unknown):
    before = copy.deepcopy(obj)
    assert SCHEMA.prune(obj) == unknown
    assert SCHEMA.prune(obj) == []
    if not unknown:
        assert obj == before


METADATA = {
    "a label": (
        {"labels": {"a": 1}},
        "number into Go struct field ObjectMeta.labels of type string",
    ),
    "labels": (
        {"labels": ["a"]},
        "array into Go struct field ObjectMeta.labels of type map[string]string",
    ),
    "a name": ({"name": 1}, "number into Go struct field ObjectMeta.name of type string"),
    "a finalizer": (
        {"finalizers": [True]},
        "bool into Go struct field ObjectMeta.finalizers of type string",
    ),
    "an owner": (
        {"ownerReferences": [{"controller": "yes"}]},
        "string into Go struct field ObjectMeta.ownerReferences of type bool",
    ),
    "all of it": ("x", "string into Go struct field metadata of type v1.ObjectMeta"),
}


@pytest.mark.parametrize(("metadata", "text"), METADATA.values(), ids=METADATA)
def test_metadata_that_cannot_be_read_is_refused(metadata, text):
    with pytest.raises(ApiError) as caught:
        SCHEMA.prune({**gadget(), "metadata": metadata})
    assert caught.value.code == 400
    assert str(caught.value) == (
        f'Gadget in version "v1" cannot be handled as a Gadget: json: cannot unmarshal {text}'
    )


def test_defaults_and_nulls():
    obj = gadget(title=None, note=None, size=None, parts=[{"name": "a", "opts": {}, "count": None}])
    SCHEMA.prepare(obj)
    assert obj["spec"] == {
        "note": None,
        "size": 3,
        "mode": "static",
        "parts": [{"name": "a", "opts": {"deep": True}, "count": 1}],
    }


def test_a_transition_rule_needs_an_old_value():
    old, new = gadget(fixed="one", size=3), gadget(fixed="two", size=3)
    assert texts(SCHEMA.validate(new)) == []
    assert texts(SCHEMA.validate(new, old)) == [
        'spec.fixed: Invalid value: "two": fixed is immutable'
    ]


def test_what_was_invalid_and_did_not_change_is_let_through():
    old = gadget(size=99, mode="x", title="A", parts=[{"name": "a", "count": -1}])
    new = copy.deepcopy(old)
    assert texts(SCHEMA.validate(new, old)) == []
    new["spec"]["mode"] = "y"
    new["spec"]["parts"].append({"name": "b", "count": -2})
    assert texts(SCHEMA.validate(new, old)) == sorted(
        [
            SKIPPED,
            'spec.mode: Unsupported value: "y": supported values: "static", "auto"',
            (
                "spec.parts[1].count: Invalid value: -2: "
                "spec.parts[1].count in body should be greater than or equal to 0"
            ),
        ]
    )


def test_a_rule_that_failed_before_is_let_through_where_nothing_changed():
    old = gadget(size=1, parts=[{"name": "a"}, {"name": "b"}])
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"a": "b"}
    assert texts(SCHEMA.validate(new, old)) == []
    new["spec"]["title"] = "x"
    assert texts(SCHEMA.validate(new, old)) == ["spec.parts: Invalid value: more parts than size"]


def test_a_status_is_judged_alone():
    old = gadget(size=99)
    new = {**old, "status": {"ready": "x"}}
    assert refuse(new, old, status_only=True) == sorted(
        [
            (
                ".status.ready: Invalid value: 0: "
                ".status.ready accessor error: x is of the type string, expected int64"
            ),
            SKIPPED,
            (
                'status.ready: Invalid value: "string": '
                'ready in body must be of type integer: "string"'
            ),
        ]
    )
    assert refuse({**old, "status": {"ready": 1}}, old, status_only=True) == []


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "count", "opts", "deep", "x", "kind", "metadata"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
spec_fields = [*GADGET["properties"]["spec"]["properties"], "x"]
specs = st.dictionaries(st.sampled_from(spec_fields), json_values)
metadata = st.fixed_dictionaries(
    {}, optional={"name": st.text(max_size=3), "labels": st.none(), "x": json_values}
)
objects = st.fixed_dictionaries(
    {}, optional={"spec": specs | json_values, "status": json_values, "metadata": metadata}
)


@given(objects)
def test_pruning_and_defaulting_settle_at_once(obj):
    SCHEMA.prepare(obj)
    settled = copy.deepcopy(obj)
    assert SCHEMA.prepare(obj) == []
    assert obj == settled


@given(objects, objects)
def test_validating_is_total_and_changes_nothing(obj, old):
    before = copy.deepcopy((obj, old))
    SCHEMA.validate(obj)
    SCHEMA.validate(obj, old)
    SCHEMA.validate(obj, old, status_only=True)
    assert (obj, old) == before
