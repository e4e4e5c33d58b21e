"""CustomResourceDefinitions: what is refused before it is stored."""

import pytest

from hyperjob_sandbox.apiserver.kinds.definitions import validate_definition
from tests.support.structural import crds

AT = "spec.versions[0].schema.openAPIV3Schema"


def definition(*, field=None, **spec):
    root = {"type": "object", "properties": {"f": field or {"type": "string"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    names = {
        "kind": "Gadget",
        "listKind": "GadgetList",
        "plural": "gadgets",
        "singular": "gadget",
    }
    return {
        "metadata": {"name": "gadgets.conf.example.dev"},
        "spec": {
            "group": "conf.example.dev",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
            **spec,
        },
    }


def texts(found):
    return [str(error) for error in validate_definition(found)]


@pytest.mark.parametrize("kind", crds())
def test_every_shipped_definition_is_sound(kind):
    assert texts(crds()[kind]) == []


def test_exactly_one_version_is_stored_and_each_has_a_schema():
    found = definition()
    found["spec"]["versions"].append({"name": "v1", "served": True, "storage": True})
    errors = texts(found)
    assert "spec.versions[1].schema.openAPIV3Schema: Required value" in errors
    assert any(
        text.endswith("must have exactly one version marked as storage version") for text in errors
    )


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]},
            f"{AT}: Invalid value: compilation failed: ERROR: <input>:1:8: Syntax error",
        ),
        ({"type": "string", "pattern": "["}, f"{AT}: Invalid value: "),
    ],
)
def test_what_could_judge_no_object_is_refused(field, text):
    (error,) = texts(definition(field=field))
    assert error.startswith(text)


def test_a_column_needs_a_path():
    found = definition()
    found["spec"]["versions"][0]["additionalPrinterColumns"] = [{"name": "b", "jsonPath": ".spec["}]
    (error,) = texts(found)
    assert error.endswith('.JSONPath: Invalid value: ".spec[": cannot parse [')
