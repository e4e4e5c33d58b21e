"""Structural schemas: what is said of a single value, and by the rules on it."""

import pytest

from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema


def texts(errors):
    return sorted(map(str, errors))


def field_schema(**schema):
    return StructuralSchema.build({"type": "object", "properties": {"f": schema}})


VALUES = {
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
    "date-time": (
        {"type": "string", "format": "date-time"},
        "soon",
        ['f: Invalid value: "soon": f in body must be of type date-time: "soon"'],
    ),
    "a sound date-time": ({"type": "string", "format": "date-time"}, "2026-01-01T00:00:00Z", []),
    "unknown formats say nothing": ({"type": "string", "format": "quantity"}, "x", []),
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
}


@pytest.mark.parametrize(("schema", "value", "expected"), VALUES.values(), ids=VALUES)
def test_a_value_against_its_schema(schema, value, expected):
    compiled = field_schema(**schema)
    assert texts(compiled.validate({"f": value})) == sorted(expected)


RULES = {
    "no message": ({"rule": "self > 1"}, "f: Invalid value: 1: failed rule: self > 1"),
    "message": ({"rule": "self > 1", "message": " too small "}, "f: Invalid value: 1: too small"),
    "an error": (
        {"rule": "self / 0 == 1", "message": "m"},
        'f: Invalid value: "integer": divide by zero evaluating rule: m',
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
