"""Translate a structural schema to JSON Schema, for an independent validator."""

from functools import cache
from pathlib import Path
from typing import Any

import cel
import yaml
from jsonschema import Draft202012Validator

from hyperjob_core.api.schema import volcano_crds

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "crds"
FOLDERS = (CRDS, ROOT / "sandbox/hyperjob_sandbox/crds")


@cache
def crds() -> dict[str, dict[str, Any]]:
    """Return every CRD of the project by kind."""
    files = [file for folder in FOLDERS for file in folder.glob("*.yaml")]
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded = [yaml.load(file.read_text(), Loader=loader) for file in files]
    found = (*loaded, *volcano_crds().values())
    return {crd["spec"]["names"]["kind"]: crd for crd in found}


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the storage version."""
    (version,) = (item for item in crd["spec"]["versions"] if item["storage"])
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema in which fields that would be pruned are errors."""
    if schema.get("x-kubernetes-int-or-string"):
        text = {"type": "string"} | ({"pattern": schema["pattern"]} if "pattern" in schema else {})
        return {"anyOf": [{"type": "integer"}, text]}
    result = {
        key: value
        for key, value in schema.items()
        if key not in ("description", "format", "nullable", "default") and not key.startswith("x-")
    }
    if "items" in schema:
        result["items"] = strict(schema["items"])
    if "properties" in schema:
        result["properties"] = {name: strict(value) for name, value in schema["properties"].items()}
        result["additionalProperties"] = False
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = strict(schema["additionalProperties"])
    if schema.get("nullable"):
        result["type"] = [schema["type"], "null"]
    return result


@cache
def _validator(kind: str) -> Draft202012Validator:
    schema = strict(schema_of(crds()[kind]))
    schema["properties"]["metadata"] = {"type": "object"}
    return Draft202012Validator(schema)


def with_defaults(value: Any, schema: dict[str, Any]) -> Any:
    """Return a value with the defaults of its schema."""
    if isinstance(value, list) and "items" in schema:
        return [with_defaults(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    fields = schema.get("properties", {})
    filled = {name: field["default"] for name, field in fields.items() if "default" in field}
    filled |= value
    other = schema.get("additionalProperties")
    return {
        name: with_defaults(item, fields.get(name) or (other if isinstance(other, dict) else {}))
        for name, item in filled.items()
    }


def violations(obj: dict[str, Any]) -> list[str]:
    """Return the violations of a CRD's schema by an object, with rules and duplicate keys."""
    kind = obj["kind"]
    found = [
        f"{error.json_path.removeprefix('$.')}: {error.message}"
        for error in _validator(kind).iter_errors(obj)
    ]
    schema = schema_of(crds()[kind])
    return found + _rules(with_defaults(obj, schema), schema, kind)


def assert_status(status: dict[str, Any]) -> None:
    """Assert that the CRD allows the status of a HyperJob; None removes a field."""
    schema = strict(schema_of(crds()["HyperJob"])["properties"]["status"])
    given = {name: value for name, value in status.items() if value is not None}
    found = [error.message for error in Draft202012Validator(schema).iter_errors(given)]
    assert found == []


def _rules(value: Any, schema: dict[str, Any], at: str) -> list[str]:
    found = [
        f"{at}: {rule['message']}"
        for rule in schema.get("x-kubernetes-validations", [])
        if not cel.evaluate(rule["rule"], {"self": value})
    ]
    if isinstance(value, list):
        keys = schema.get("x-kubernetes-list-map-keys", [])
        seen = [tuple(item.get(key) for key in keys) for item in value if keys]
        found += [f"{at}: duplicate {key}" for key in {key for key in seen if seen.count(key) > 1}]
        for index, item in enumerate(value):
            found += _rules(item, schema.get("items", {}), f"{at}[{index}]")
    if isinstance(value, dict):
        other = schema.get("additionalProperties")
        for name, item in value.items():
            below = schema.get("properties", {}).get(name, other)
            found += _rules(item, below if isinstance(below, dict) else {}, f"{at}.{name}")
    return found
