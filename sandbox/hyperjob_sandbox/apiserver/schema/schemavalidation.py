"""Whether a schema is structural and sound: every part of it says one thing, and can be kept.

Pure. What passes here, `structural` compiles without surprises; rules and patterns are compiled,
so that a definition is refused instead of every object later.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.cel import CelError
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema import pruning, validation
from hyperjob_sandbox.apiserver.schema.celrules import compile_rule
from hyperjob_sandbox.apiserver.schema.goregexp import compile_go
from hyperjob_sandbox.apiserver.schema.schemanode import Node

Level = Literal["root", "item", "field"]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_UNSUPPORTED: Final = {
    "id": "id is not supported",
    "additionalItems": "additionalItems is not supported",
    "patternProperties": "patternProperties is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "$ref": "$ref is not supported",
}
_NESTED_FORBIDDEN: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_META: Final = ("metadata", "kind", "apiVersion")


def validate_schema(schema: Object, path: Path, *, has_status: bool) -> list[FieldError]:
    """Return what is wrong with a resource's schema."""
    errors: list[FieldError] = []
    if has_status and schema.get("type") != "object":
        detail = (
            'only "object" is allowed as the type at the root of the schema if the status '
            "subresource is enabled"
        )
        errors.append(field.invalid(path.child("type"), schema.get("type", ""), detail))
    if schema.get("nullable"):
        errors.append(
            field.forbidden(path.child("nullable"), "nullable cannot be true at the root")
        )
    structural = sorted(
        [*_structure(schema, path, "root"), *_complete(schema, schema, path, path)], key=str
    )
    errors += structural or _defaults(schema, path)
    own = list(_walk(schema, path, _Place(root=True)))
    errors += own
    if not errors:
        errors += _rules(Node.build(schema, root=True), path, None)
    return errors


def _children(schema: Object, path: Path) -> Iterator[tuple[Object, Path]]:
    for name, child in (schema.get("properties") or {}).items():
        yield child, path.child("properties").key(name)
    for name in ("additionalProperties", "items"):
        if isinstance(schema.get(name), dict):
            yield schema[name], path.child(name)


def _nested(schema: Object, path: Path) -> Iterator[tuple[Object, Path]]:
    for word in ("anyOf", "allOf", "oneOf"):
        for i, member in enumerate(schema.get(word) or ()):
            yield member, path.child(word).index(i)
    if isinstance(schema.get("not"), dict):
        yield schema["not"], path.child("not")


def _structure(schema: Object, path: Path, level: Level) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield field.required(path.child("items"), "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _structure(schema["items"], path.child("items"), "item")
    for name, child in (schema.get("properties") or {}).items():
        yield from _structure(child, path.child("properties").key(name), "field")
    if schema.get("additionalProperties") is not None:
        at = path.child("additionalProperties")
        if level == "root":
            yield field.forbidden(at, "must not be used at the root")
        if embedded:
            yield field.forbidden(at, "must not be used if x-kubernetes-embedded-resource is set")
        if isinstance(schema["additionalProperties"], dict):
            yield from _structure(schema["additionalProperties"], at, "field")
    for name, set_ in (("preserve-unknown-fields", preserve), ("embedded-resource", embedded)):
        if int_or_string and set_:
            detail = "must be false if x-kubernetes-int-or-string is true"
            yield field.invalid(path.child(f"x-kubernetes-{name}"), True, detail)
    yield from _type_problems(schema, path, level)
    if level == "root" or embedded:
        yield from _meta_problems(schema, path, level)
    if embedded and not preserve and not schema.get("properties"):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        yield field.required(path.child("properties"), detail)
    yield from _value_validation(schema, path, int_or_string=int_or_string)


def _type_problems(schema: Object, path: Path, level: Level) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    at = path.child("type")
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield field.invalid(at, kind, detail) if kind else field.required(at, detail)
    elif not kind and not (
        schema.get("x-kubernetes-int-or-string")
        or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        where = {
            "root": "at the root",
            "item": "for specified array items",
            "field": "for specified object fields",
        }
        yield field.required(at, f"must not be empty {where[level]}")
    if level == "root" and kind not in ("", "object"):
        yield field.invalid(at, kind, "must be object at the root")


def _meta_problems(schema: Object, path: Path, level: Level) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type") != "string":
            at = path.child("properties").key(name).child("type")
            yield field.invalid(at, properties[name].get("type", ""), "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    at = path.child("properties").key("metadata")
    if metadata.get("type") != "object":
        yield field.invalid(at.child("type"), metadata.get("type", ""), "must be object")
    extra = set(metadata) - {"type", "description", "properties", "default"}
    if level == "root" and (
        extra or not set(metadata.get("properties") or ()) <= {"name", "generateName"}
    ):
        detail = (
            "must not specify anything other than name and generateName, "
            "but metadata is implicitly specified"
        )
        yield field.forbidden(at, detail)


def _value_validation(schema: Object, path: Path, *, int_or_string: bool) -> Iterator[FieldError]:
    skipped: list[Json] = []
    if int_or_string:
        skipped = [schema.get("anyOf"), *(m.get("anyOf") for m in (schema.get("allOf") or ())[:1])]
    for member, at in _nested(schema, path):
        if int_or_string and schema.get("anyOf") == _INT_OR_STRING and member in _INT_OR_STRING:
            continue
        lenient = int_or_string and member.get("anyOf") in skipped
        yield from _nested_validation(member, at, int_or_string=lenient)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_go(pattern)
        except ValueError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield field.invalid(path.child("pattern"), pattern, detail)
    if schema.get("multipleOf") is not None and schema["multipleOf"] <= 0:
        detail = "must be greater than 0"
        yield field.invalid(path.child("multipleOf"), schema["multipleOf"], detail)


def _nested_validation(schema: Object, path: Path, *, int_or_string: bool) -> Iterator[FieldError]:
    yield from _value_validation(schema, path, int_or_string=int_or_string)
    for child, at in _children(schema, path):
        yield from _nested_validation(child, at, int_or_string=False)
    for name, detail in _NESTED_FORBIDDEN.items():
        if schema.get(name) not in (None, False, "", []):
            yield field.forbidden(path.child(name), detail)
    if "metadata" in (schema.get("properties") or {}):
        at = path.child("properties").key("metadata")
        yield field.forbidden(at, "must not be specified in a nested context")


def _complete(
    schema: Object, shape: Object | None, path: Path, nested_path: Path
) -> Iterator[FieldError]:
    """Find value validations for places that the schema itself does not have."""
    for member, at in _nested(schema, nested_path):
        yield from _complete_member(member, shape, path, at)


def _complete_member(
    member: Object, shape: Object | None, path: Path, nested_path: Path
) -> Iterator[FieldError]:
    if shape is None:
        yield field.required(path, f"because it is defined in {nested_path}")
        return
    yield from _complete(member, shape, path, nested_path)
    if isinstance(member.get("items"), dict):
        below = shape.get("items")
        at = nested_path.child("items")
        yield from _complete_member(member["items"], below, path.child("items"), at)
    for name, child in (member.get("properties") or {}).items():
        below = (shape.get("properties") or {}).get(name)
        at = nested_path.child("properties").key(name)
        yield from _complete_member(child, below, path.child("properties").key(name), at)


def _defaults(schema: Object, path: Path) -> Iterator[FieldError]:
    default = schema.get("default")
    if default is not None:
        at = path.child("default")
        node = Node.build(schema)
        kept = jsonvalue.copy(default)
        pruning.prune(kept, node)
        if not jsonvalue.equal(kept, default):
            yield field.invalid(at, default, "must not have unknown fields")
        yield from validation.explain(default, schema, prefix=at)
    for name, child in (schema.get("properties") or {}).items():
        yield from _defaults(child, path.child("properties").key(name))
    if isinstance(schema.get("items"), dict):
        yield from _defaults(schema["items"], path.child("items"))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a resource a schema lies."""

    root: bool = False
    no_defaults: str = ""


def _walk(schema: Object, path: Path, place: _Place) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield field.forbidden(path.child("type"), detail)
    elif kind and kind not in _TYPES:
        yield field.not_supported(path.child("type"), kind, _TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield field.forbidden(path.child("default"), f"must not be set {place.no_defaults}")
    for name, detail in _UNSUPPORTED.items():
        if schema.get(name):
            yield field.forbidden(path.child(name), detail)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield field.forbidden(path.child("uniqueItems"), detail)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and additional is not None and additional is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        yield field.forbidden(path.child("additionalProperties"), detail)
    elif additional is False:
        detail = "additionalProperties cannot be set to false"
        yield field.forbidden(path.child("additionalProperties"), detail)
    yield from _list_and_map_types(schema, path)
    yield from _rule_problems(schema, path)
    resource = place.root or bool(schema.get("x-kubernetes-embedded-resource"))
    for child, at in _children(schema, path):
        below = replace(place, root=False)
        name = str(at).rpartition("[")[2].removesuffix("]")
        if resource and name in _META and child is (schema.get("properties") or {}).get(name):
            forbidden = f"in top-level {name}" if place.root else place.no_defaults
            below = _Place(no_defaults=forbidden)
        yield from _walk(child, at, below)
    for child, at in _nested(schema, path):
        yield from _walk(child, at, replace(place, root=False))


def _list_and_map_types(schema: Object, path: Path) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    for word, wanted, allowed in (
        ("x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        value = schema.get(word)
        if value is None:
            continue
        if kind != wanted:
            detail = f"must be {wanted} if {word} is specified"
            at = path.child("type")
            yield field.invalid(at, kind, detail) if kind else field.required(at, detail)
        if value not in allowed:
            yield field.not_supported(path.child(word), value, allowed)
    list_type = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    if keys and list_type != "map":
        at = path.child("x-kubernetes-list-type")
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield (
            field.required(at, detail)
            if list_type is None
            else field.invalid(at, list_type, detail)
        )
    if list_type == "set" and items is not None:
        yield from _set_items(items, path.child("items"))
    if list_type == "map":
        yield from _map_items(items, keys, path)
    if list_type in ("set", "map") and items is not None and items.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield field.forbidden(path.child("items", "nullable"), detail)


def _set_items(items: Object, path: Path) -> Iterator[FieldError]:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        found = items["x-kubernetes-list-type"]
        yield field.invalid(path.child("x-kubernetes-list-type"), found, detail)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield field.invalid(path.child("x-kubernetes-map-type"), None, detail)


def _map_items(items: Object | None, keys: list[str], path: Path) -> Iterator[FieldError]:
    at = path.child("x-kubernetes-list-map-keys")
    if not keys:
        yield field.required(at, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        detail = "must have a schema if x-kubernetes-list-type is map"
        yield field.required(path.child("items"), detail)
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield field.invalid(path.child("items", "type"), items.get("type", ""), detail)
        return
    properties = items.get("properties") or {}
    required = items.get("required") or ()
    for i, key in enumerate(keys):
        below = path.child("items", "properties").key(key)
        found = properties.get(key)
        if found is None:
            yield field.invalid(at, keys, "entries must all be names of item properties")
        elif found.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield field.invalid(below.child("type"), items["type"], detail)
        if key in keys[:i]:
            yield field.invalid(at, keys, "must not contain duplicate entries")
        if found is not None and key not in required and found.get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, "
                "so it must have a default or be a required property"
            )
            yield field.required(below.child("default"), detail)
        if found is not None and found.get("nullable"):
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield field.forbidden(below.child("nullable"), detail)


def _rule_problems(schema: Object, path: Path) -> Iterator[FieldError]:
    for i, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        at = path.child("x-kubernetes-validations").index(i)
        text = (rule.get("rule") or "").strip()
        message = rule.get("message") or ""
        if not text:
            yield field.required(at.child("rule"), "rule is not specified")
        elif message and not message.strip():
            yield field.invalid(at.child("message"), message, "must be non-empty if specified")
        elif "\n" in message.strip():
            yield field.invalid(at.child("message"), message, "must not contain line breaks")
        elif "\n" in text and not message:
            detail = "message must be specified if rule contains line breaks"
            yield field.required(at.child("message"), detail)
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            yield field.not_supported(at.child("reason"), reason, _REASONS)
        where = rule.get("fieldPath") or ""
        if where and not _leads_somewhere(schema, where):
            yield field.invalid(at.child("fieldPath"), where, "must be a valid path")


def _leads_somewhere(schema: Object, text: str) -> bool:
    if not text.startswith((".", "['")):
        return False
    node: Json = schema
    for name in text.replace("['", ".").replace("']", "").removeprefix(".").split("."):
        below = (node.get("properties") or {}).get(name)
        node = below if below is not None else node.get("additionalProperties")
        if not isinstance(node, dict):
            return False
    return True


def _rules(node: Node, path: Path, uncorrelated: Path | None) -> Iterator[FieldError]:
    """Compile the rules; `oldSelf` needs a place that can be followed from old to new."""
    for i, rule in enumerate(node.rules):
        at = path.child("x-kubernetes-validations").index(i)
        try:
            expression = compile_rule(rule["rule"], node)
        except CelError as error:
            yield field.invalid(at.child("rule"), rule, str(error))
            continue
        if uncorrelated is not None and "oldSelf" in expression.variables:
            detail = (
                "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                f"{uncorrelated}"
            )
            yield field.invalid(at.child("rule"), rule["rule"], detail)
        if rule.get("messageExpression"):
            try:
                compile_rule(rule["messageExpression"], node)
            except CelError as error:
                text = f"messageExpression {error}"
                yield field.invalid(at.child("messageExpression"), rule, text)
    for name, child in node.properties.items():
        yield from _rules(child, path.child("properties").key(name), uncorrelated)
    if node.additional is not None:
        yield from _rules(node.additional, path.child("additionalProperties"), uncorrelated)
    if node.items is not None:
        lost = uncorrelated or (path if node.list_type != "map" else None)
        yield from _rules(node.items, path.child("items"), lost)
