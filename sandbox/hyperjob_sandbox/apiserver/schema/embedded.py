"""Resources inside a resource (`x-kubernetes-embedded-resource`): type and sound metadata.

Pure. The root of a resource is judged elsewhere, with its name and namespace.
"""

from collections.abc import Callable
from typing import TypeAlias

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob.api.formats import dns1035_label, label_value, qualified_name
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node

Embedded: TypeAlias = Callable[[Json, Path], list[FieldError]]


def compile_embedded(node: Node, *, root: bool = True) -> Embedded | None:
    """Return the check of embedded resources below the root; None where there are none."""
    fields = {
        name: below
        for name, child in node.properties.items()
        if (below := compile_embedded(child, root=False)) is not None
    }
    rest = compile_embedded(node.additional, root=False) if node.additional is not None else None
    item = compile_embedded(node.items, root=False) if node.items is not None else None
    here = node.embedded and not root
    if not here and not fields and rest is None and item is None:
        return None

    def check(value: Json, path: Path) -> list[FieldError]:
        errors: list[FieldError] = []
        if isinstance(value, dict):
            if here:
                errors += _resource(value, path)
            for key, entry in value.items():
                if key in fields:
                    errors += fields[key](entry, path.child(key))
                elif rest is not None and key not in node.properties:
                    errors += rest(entry, path.key(key))
        elif isinstance(value, list) and item is not None:
            for i, entry in enumerate(value):
                errors += item(entry, path.index(i))
        return errors

    return check


def _resource(value: Object, path: Path) -> list[FieldError]:
    errors = [
        field.required(path.child(name)) for name in ("apiVersion", "kind") if name not in value
    ]
    if "apiVersion" in value:
        errors += _api_version(value["apiVersion"], path.child("apiVersion"))
    if "kind" in value:
        errors += _kind(value["kind"], path.child("kind"))
    if isinstance(value.get("metadata"), dict):
        errors += _metadata(value["metadata"], path.child("metadata"))
    return errors


def _api_version(value: Json, path: Path) -> list[FieldError]:
    if not isinstance(value, str):
        return [field.invalid(path, value, "must be a string")]
    if not value:
        return [field.invalid(path, value, "must not be empty")]
    if value.count("/") > 1:
        return [field.invalid(path, value, f"unexpected GroupVersion string: {value}")]
    return []


def _kind(value: Json, path: Path) -> list[FieldError]:
    if not isinstance(value, str):
        return [field.invalid(path, value, "must be a string")]
    if not value:
        return [field.invalid(path, value, "must not be empty")]
    problems = dns1035_label(value.lower())
    if not problems:
        return []
    rule = "may have mixed case, but should otherwise match: "
    return [field.invalid(path, value, rule + ",".join(problems))]


def _metadata(value: Object, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("labels", "annotations"):
        entries = value.get(name)
        for key, text in entries.items() if isinstance(entries, dict) else ():
            at = path.child(name)
            checked = key.lower() if name == "annotations" else key
            errors += [field.invalid(at, key, problem) for problem in qualified_name(checked)]
            if name == "labels" and isinstance(text, str):
                errors += [field.invalid(at, text, problem) for problem in label_value(text)]
    return errors
