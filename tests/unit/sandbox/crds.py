"""CustomResourceDefinitions with one thing in them that a test is about."""

from hyperjob_sandbox.apiserver.schema.crdvalidation import validate_definition

ROOT = "spec.validation.openAPIV3Schema"


def definition(*, properties=None, schema=None, version=None, spec=None):
    root = schema or {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties or {}}},
    }
    return {
        "metadata": {"name": "gadgets.conf.example.dev"},
        "spec": {
            "group": "conf.example.dev",
            "scope": "Namespaced",
            "names": {
                "kind": "Gadget",
                "listKind": "GadgetList",
                "plural": "gadgets",
                "singular": "gadget",
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": root},
                    **(version or {}),
                }
            ],
            **(spec or {}),
        },
    }


def texts(found, old=None):
    return [str(error) for error in validate_definition(found, old)]


def in_field(**schema):
    return texts(definition(properties={"f": schema}))


FIELD = f"{ROOT}.properties[spec].properties[f]"
