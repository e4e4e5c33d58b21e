"""Structural schemas: what is said of a single value, and by the rules on it."""

import pytest

from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema


def texts(errors):
    return sorted(map(str, errors))


def field_schema(**schema):
    return StructuralSchema.build({"type": "object", "properties": {"f": schema}})


VALUES = {
    "multiple of": (
        {"type": "integer", "multipleOf": 5},
        7,
        ["f: Invalid value: 7: f in body should be a multiple of 5"],
    ),
    "exclusive maximum": (
        {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
        1.5,
        ["f: Invalid value: 1.5: f in body should be less than 1.5"],
    ),
    "exclusive minimum": (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        1,
        ["f: Invalid value: 1: f in body should be greater than 1"],
    ),
    "out of int32": (
        {"type": "integer", "format": "int32"},
        2**31,
        [
            (
                '<nil>: Invalid value: "": '
                "Checked value must be of type integer with format int32 in f"
            )
        ],
    ),
    "an integral float": ({"type": "integer"}, 3.0, []),
    "an integer for a number": ({"type": "number"}, 3, []),
    "true is no integer": (
        {"type": "integer"},
        True,
        ['f: Invalid value: "boolean": f in body must be of type integer: "boolean"'],
    ),
    "too short": (
        {"type": "string", "minLength": 3},
        "é",
        ['f: Invalid value: "é": f in body should be at least 3 chars long'],
    ),
    "length counts characters": ({"type": "string", "maxLength": 2}, "éé", []),
    "too few properties": (
        {"type": "object", "minProperties": 1, "additionalProperties": True},
        {},
        ["f: Invalid value: 0: f in body should have at least 1 properties"],
    ),
    "too many properties": (
        {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
        {"a": "", "b": ""},
        ["f: Too many: 2: must have at most 1 item"],
    ),
    "date-time": (
        {"type": "string", "format": "date-time"},
        "soon",
        ['f: Invalid value: "soon": f in body must be of type date-time: "soon"'],
    ),
    "a sound date-time": ({"type": "string", "format": "date-time"}, "2026-01-01T00:00:00Z", []),
    "byte": (
        {"type": "string", "format": "byte"},
        "%",
        ['f: Invalid value: "%": f in body must be of type byte: "%"'],
    ),
    "unknown formats say nothing": ({"type": "string", "format": "quantity"}, "x", []),
    "enum of numbers": (
        {"type": "integer", "enum": [1, 2]},
        3,
        ['f: Unsupported value: 3: supported values: "1", "2"'],
    ),
    "any of": (
        {"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]},
        3,
        [
            '<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)',
            "f: Invalid value: 3: f in body should be greater than or equal to 5",
        ],
    ),
    "one of": (
        {"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]},
        3,
        [
            (
                '<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). '
                "Found 2 valid alternatives"
            )
        ],
    ),
    "all of": (
        {"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 2}]},
        3,
        [
            '<nil>: Invalid value: "": "f" must validate all the schemas (allOf)',
            "f: Invalid value: 3: f in body should be less than or equal to 2",
        ],
    ),
    "not": (
        {"type": "integer", "not": {"enum": [3]}},
        3,
        ['<nil>: Invalid value: "": "f" must not validate the schema (not)'],
    ),
    "a list of keys": (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a", "b"],
            "items": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            },
        },
        [{"a": "1", "b": "2"}, {"a": "1", "b": "3"}, {"b": "2", "a": "1"}],
        ['f[2]: Duplicate value: {"a":"1","b":"2"}'],
    ),
    "an embedded resource": (
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        {"apiVersion": "a/b/c", "metadata": {"labels": {"a b": "c"}}},
        [
            'f.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
            "f.kind: Required value",
        ],
    ),
}


@pytest.mark.parametrize(("schema", "value", "expected"), VALUES.values(), ids=VALUES)
def test_a_value_against_its_schema(schema, value, expected):
    compiled = field_schema(**schema)
    found = texts(compiled.validate({"f": value}))
    if schema.get("x-kubernetes-embedded-resource"):
        assert any("metadata.labels" in text and "name part" in text for text in found)
        found = [text for text in found if "metadata.labels" not in text]
    assert found == sorted(expected)


RULES = {
    "no message": ({"rule": "self > 1"}, "f: Invalid value: 1: failed rule: self > 1"),
    "message": ({"rule": "self > 1", "message": " too small "}, "f: Invalid value: 1: too small"),
    "message expression": (
        {"rule": "self > 1", "messageExpression": "'is ' + string(self)", "message": "x"},
        "f: Invalid value: 1: is 1",
    ),
    "a message expression that fails": (
        {"rule": "self > 1", "messageExpression": "string(1 / 0)", "message": "x"},
        "f: Invalid value: 1: x",
    ),
    "forbidden": (
        {"rule": "self > 1", "message": "no", "reason": "FieldValueForbidden"},
        "f: Forbidden: no",
    ),
    "required": (
        {"rule": "self > 1", "message": "no", "reason": "FieldValueRequired"},
        "f: Required value: no",
    ),
    "duplicate": (
        {"rule": "self > 1", "message": "no", "reason": "FieldValueDuplicate"},
        "f: Duplicate value: 1",
    ),
    "an error": (
        {"rule": "self / 0 == 1", "message": "m"},
        'f: Invalid value: "integer": division by zero evaluating rule: m',
    ),
}


@pytest.mark.parametrize(("rule", "text"), RULES.values(), ids=RULES)
def test_a_rule_says_what_it_was_told_to(rule, text):
    compiled = field_schema(**{"type": "integer", "x-kubernetes-validations": [rule]})
    assert texts(compiled.validate({"f": 1})) == [text]


def test_rules_run_in_items_and_maps():
    positive = {
        "type": "integer",
        "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}],
    }
    listed = field_schema(type="array", items=positive)
    assert texts(listed.validate({"f": [1, -1]})) == ["f[1]: Invalid value: -1: positive"]
    mapped = field_schema(type="object", additionalProperties=positive)
    assert texts(mapped.validate({"f": {"a": -1}})) == ["f[a]: Invalid value: -1: positive"]
