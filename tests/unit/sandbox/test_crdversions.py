"""Versions of CustomResourceDefinitions: what is refused before it is stored."""

import copy

import pytest

from tests.unit.sandbox.crds import definition, texts


def test_exactly_one_version_is_stored_and_each_has_a_schema():
    found = definition()
    found["spec"]["versions"].append({"name": "v1", "served": True, "storage": True})
    errors = texts(found)
    assert "spec.versions[1].schema.openAPIV3Schema: Required value" in errors
    assert any(text.endswith("must contain unique version names") for text in errors)
    assert any(
        text.endswith("must have exactly one version marked as storage version") for text in errors
    )


VERSIONS = {
    "columns": (
        {
            "additionalPrinterColumns": [
                {"name": "", "type": "text", "jsonPath": "spec"},
                {"name": "b", "type": "string", "jsonPath": ".spec["},
            ]
        },
        [
            "spec.additionalPrinterColumns[0].name: Required value",
            (
                'spec.additionalPrinterColumns[0].type: Invalid value: "text": '
                "must be one of boolean,date,integer,number,string"
            ),
            (
                'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": '
                "must be a simple json path starting with ."
            ),
            (
                'spec.additionalPrinterColumns[1].JSONPath: Invalid value: ".spec[": '
                "unterminated array"
            ),
        ],
    ),
    "scale": (
        {"subresources": {"scale": {"specReplicasPath": ".status.x"}}},
        [
            (
                'spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": '
                "should be a json path under .spec"
            ),
            "spec.subresources.scale.statusReplicasPath: Required value",
        ],
    ),
    "selectable fields": (
        {"selectableFields": [{"jsonPath": ".spec"}, {"jsonPath": ".nope"}]},
        [
            (
                'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point '
                "to a field of "
                "type string, boolean or integer. Enum string fields and strings with formats are "
                "allowed."
            ),
            (
                'spec.selectableFields[1].jsonPath: Invalid value: ".nope": '
                "is an invalid path: does not refer to a valid field"
            ),
        ],
    ),
    "a deprecation": (
        {"deprecationWarning": "old"},
        [
            (
                'spec.versions[0].deprecationWarning: Invalid value: "old": '
                "can only be set for deprecated versions"
            )
        ],
    ),
}


@pytest.mark.parametrize(("version", "expected"), VERSIONS.values(), ids=VERSIONS)
def test_a_version_is_refused(version, expected):
    assert texts(definition(version=version)) == expected


def test_versions_that_differ_are_named_one_by_one():
    found = definition(properties={"f": {}})
    other = copy.deepcopy(found["spec"]["versions"][0])
    other.update(name="v2", storage=False)
    other["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {"g": {}}
    found["spec"]["versions"].append(other)
    places = ["spec.versions[0].schema", "spec.versions[1].schema"]
    assert [text.partition(".openAPIV3Schema")[0] for text in texts(found)] == places
