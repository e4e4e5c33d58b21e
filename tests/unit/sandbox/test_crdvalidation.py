"""CustomResourceDefinitions: what is refused before it is stored, and in which words."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sandbox.crds import FIELD, ROOT, definition, in_field, texts


def test_a_sound_definition_passes():
    sound = definition(
        properties={
            "size": {"type": "integer", "default": 3, "minimum": 1},
            "port": {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
            },
            "parts": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}},
                    "x-kubernetes-validations": [{"rule": "self.name == oldSelf.name"}],
                },
            },
        },
        version={
            "subresources": {
                "status": {},
                "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n"},
            },
            "additionalPrinterColumns": [
                {"name": "S", "type": "integer", "jsonPath": ".spec.size"}
            ],
            "selectableFields": [{"jsonPath": ".spec.size"}],
        },
    )
    assert texts(sound) == []
    assert texts(sound, copy.deepcopy(sound)) == []


SPEC = {
    "no group": ({"group": ""}, "spec.group: Required value"),
    "a bare group": (
        {"group": "dev"},
        'spec.group: Invalid value: "dev": should be a domain with at least one dot',
    ),
    "no scope": ({"scope": ""}, "spec.scope: Required value"),
    "an unknown scope": (
        {"scope": "Global"},
        'spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"',
    ),
    "old ways": (
        {"preserveUnknownFields": True},
        (
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ),
    ),
}


@pytest.mark.parametrize(("spec", "text"), SPEC.values(), ids=SPEC)
def test_a_spec_is_refused(spec, text):
    assert text in texts(definition(spec=spec))


def test_a_definition_is_named_for_its_resource():
    wrong = definition()
    wrong["metadata"]["name"] = "x.conf.example.dev"
    assert texts(wrong) == [
        (
            'metadata.name: Invalid value: "x.conf.example.dev": '
            'must be spec.names.plural+"."+spec.group'
        )
    ]


def test_names_are_needed_and_sound():
    names = {"kind": "Gadget", "listKind": "Gadget", "plural": "Gadgets", "shortNames": ["G"]}
    found = texts(definition(spec={"names": names}))
    assert "spec.names.singular: Required value" in found
    same = 'spec.names.listKind: Invalid value: "Gadget": kind and listKind may not be the same'
    assert same in found
    assert any(text.startswith('spec.names.plural: Invalid value: "Gadgets": ') for text in found)
    assert any(text.startswith('spec.names.shortNames[0]: Invalid value: "G"') for text in found)


def test_names_of_an_established_definition_stay():
    old = definition()
    old["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    new = definition(spec={"scope": "Cluster"})
    assert texts(new, old) == ['spec.scope: Invalid value: "Cluster": field is immutable']
    assert texts(new, definition()) == []


SCHEMAS = {
    "no type": (
        {},
        [f"{FIELD}.type: Required value: must not be empty for specified object fields"],
    ),
    "an unknown type": (
        {"type": "text"},
        [
            (
                f'{FIELD}.type: Unsupported value: "text": supported values: '
                '"array", "boolean", "integer", "number", "object", "string"'
            )
        ],
    ),
    "a list of nothing": (
        {"type": "array"},
        [f"{FIELD}.items: Required value: must be specified"],
    ),
    "properties and keys": (
        {"type": "object", "properties": {}, "additionalProperties": False},
        [f"{FIELD}.additionalProperties: Forbidden: additionalProperties cannot be set to false"],
    ),
    "both kinds of properties": (
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "additionalProperties": {"type": "string"},
        },
        [
            (
                f"{FIELD}.additionalProperties: Forbidden: "
                "additionalProperties and properties are mutual exclusive"
            )
        ],
    ),
    "a bad pattern": (
        {"type": "string", "pattern": "("},
        [
            (
                f'{FIELD}.pattern: Invalid value: "(": must be a valid regular expression, but '
                "isn't: error parsing regexp: missing ), unterminated subpattern at position 0"
            )
        ],
    ),
    "a default of another type": (
        {"type": "integer", "default": "x"},
        [(f'{FIELD}.default: Invalid value: "string":  in body must be of type integer: "string"')],
    ),
    "a default with unknown fields": (
        {"type": "object", "properties": {}, "default": {"a": 1}},
        [f'{FIELD}.default: Invalid value: {{"a":1}}: must not have unknown fields'],
    ),
    "uniqueItems": (
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        [
            (
                f"{FIELD}.uniqueItems: Forbidden: uniqueItems cannot be set to true "
                "since the runtime "
                "complexity becomes quadratic"
            )
        ],
    ),
    "a type in a combination": (
        {"type": "string", "anyOf": [{"type": "string"}]},
        [f"{FIELD}.anyOf[0].type: Forbidden: must be empty to be structural"],
    ),
    "keys without a list map": (
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-map-keys": ["a"]},
        [
            (
                f"{FIELD}.x-kubernetes-list-type: Required value: "
                "must be map if x-kubernetes-list-map-keys is non-empty"
            )
        ],
    ),
    "a list map without keys": (
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"},
        [
            (
                f"{FIELD}.x-kubernetes-list-map-keys: Required value: "
                "must not be empty if x-kubernetes-list-type is map"
            )
        ],
    ),
    "an optional key": (
        {
            "type": "array",
            "items": {"type": "object", "properties": {"a": {"type": "string"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a"],
        },
        [
            (
                f"{FIELD}.items.properties[a].default: Required value: this property is in "
                "x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
        ],
    ),
    "a set of mergeable objects": (
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
        [
            (
                f"{FIELD}.items.x-kubernetes-map-type: Invalid value: null: "
                "must be atomic as item of a list with x-kubernetes-list-type=set"
            )
        ],
    ),
    "a list type of an object": (
        {"type": "object", "x-kubernetes-list-type": "set"},
        [
            (
                f'{FIELD}.type: Invalid value: "object": '
                "must be array if x-kubernetes-list-type is specified"
            )
        ],
    ),
    "a reference": (
        {"type": "object", "$ref": "#/x"},
        [f"{FIELD}.$ref: Forbidden: $ref is not supported"],
    ),
    "an embedded resource of nothing": (
        {"type": "object", "x-kubernetes-embedded-resource": True},
        [
            (
                f"{FIELD}.properties: Required value: must not be empty if "
                "x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields"
            )
        ],
    ),
}


@pytest.mark.parametrize(("schema", "expected"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_is_refused(schema, expected):
    assert in_field(**schema) == expected


RULES = {
    "no rule": ({"rule": " "}, "rule: Required value: rule is not specified"),
    "an empty message": (
        {"rule": "true", "message": " "},
        'message: Invalid value: " ": must be non-empty if specified',
    ),
    "a long message": (
        {"rule": "true", "message": "a\nb"},
        'message: Invalid value: "a\\nb": must not contain line breaks',
    ),
    "a reason": (
        {"rule": "true", "reason": "Because"},
        (
            'reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", '
            '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
        ),
    ),
    "a path": (
        {"rule": "true", "fieldPath": ".nope"},
        'fieldPath: Invalid value: ".nope": must be a valid path',
    ),
}


@pytest.mark.parametrize(("rule", "text"), RULES.values(), ids=RULES)
def test_a_rule_is_refused(rule, text):
    schema = {"type": "object", "x-kubernetes-validations": [rule]}
    assert in_field(**schema) == [f"{FIELD}.x-kubernetes-validations[0].{text}"]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("foo(self)", "undeclared reference to 'foo' (in container '')"),
        ("self.nope > 1", "undefined field 'nope'"),
        ("self.a >", "Syntax error: mismatched input '<EOF>'"),
    ],
)
def test_a_rule_that_does_not_compile_is_refused(rule, why):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    (text,) = in_field(**schema)
    assert text.startswith(f"{FIELD}.x-kubernetes-validations[0].rule: Invalid value: ")
    assert f"compilation failed: ERROR: <input>:1:" in text  # noqa: F541
    assert why in text


def test_old_values_of_items_need_keys():
    schema = {
        "type": "array",
        "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    }
    (text,) = in_field(**schema)
    assert text.endswith(
        f"oldSelf cannot be used on the uncorrelatable portion of the schema within {FIELD}"
    )


ROOTS = {
    "not an object": (
        {"type": "array", "items": {"type": "string"}},
        [f'{ROOT}.type: Invalid value: "array": must be object at the root'],
    ),
    "keys at the root": (
        {"type": "object", "additionalProperties": {"type": "string"}},
        [f"{ROOT}.additionalProperties: Forbidden: must not be used at the root"],
    ),
    "metadata of its own": (
        {"type": "object", "properties": {"metadata": {"type": "object", "required": ["labels"]}}},
        [
            (
                f"{ROOT}.properties[metadata]: Forbidden: must not specify anything "
                "other than name "
                "and generateName, but metadata is implicitly specified"
            )
        ],
    ),
    "a default for the kind": (
        {"type": "object", "properties": {"kind": {"type": "string", "default": "X"}}},
        [f"{ROOT}.properties[kind].default: Forbidden: must not be set in top-level kind"],
    ),
    "a field only in a combination": (
        {"type": "object", "allOf": [{"properties": {"a": {"minLength": 1}}}]},
        [
            (
                f"{ROOT}.properties[a]: Required value: because it is defined in "
                f"{ROOT}.allOf[0].properties[a]"
            )
        ],
    ),
    "nullable": (
        {"type": "object", "nullable": True},
        [f"{ROOT}.nullable: Forbidden: nullable cannot be true at the root"],
    ),
}


@pytest.mark.parametrize(("schema", "expected"), ROOTS.values(), ids=ROOTS)
def test_a_root_is_refused(schema, expected):
    assert texts(definition(schema=schema)) == expected


words = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "additionalProperties",
        "default",
        "nullable",
        "pattern",
        "enum",
        "x-kubernetes-list-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
    ]
)
scalars = st.sampled_from(["object", "array", "string", "integer", "map", "set", "(", True])


@st.composite
def schemas(draw, depth=2):
    schema = {}
    for word in draw(st.lists(words, unique=True, max_size=4)):
        if word in ("items", "additionalProperties"):
            schema[word] = draw(schemas(depth=depth - 1)) if depth else {"type": "string"}
        elif word == "properties":
            inner = draw(schemas(depth=depth - 1)) if depth else {"type": "string"}
            schema[word] = {"a": inner}
        elif word == "enum":
            schema[word] = ["a", 1, None]
        elif word.endswith(("nullable", "fields", "string")):
            schema[word] = True
        elif word == "default":
            schema[word] = draw(scalars)
        else:
            schema[word] = draw(scalars.filter(lambda value: value is not True))
    return schema


@given(schemas())
def test_what_passes_can_be_used(schema):
    from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema

    found = definition(properties={"f": schema})
    if texts(found):
        return
    compiled = StructuralSchema.build(found["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for value in ({}, [], "a", 1, None, {"a": {}}, [{}], True):
        obj = {"metadata": {}, "spec": {"f": copy.deepcopy(value)}}
        compiled.prune(obj)
        compiled.default(obj)
        compiled.validate(obj)
        assert "metadata" in obj
