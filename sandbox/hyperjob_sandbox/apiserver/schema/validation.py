"""Why a value does not fit its schema, in the API server's words and order.

The slow and thorough half of value validation: `fastcheck` has said that something is wrong, this
says what. Total: any JSON value gets an answer. Rules and list types are judged elsewhere.
"""

from collections.abc import Callable
from typing import Final

import orjson

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json, go_float, json_type
from hyperjob_sandbox.apiserver.schema.correlation import Correlation
from hyperjob_sandbox.apiserver.schema.goregexp import compile_go
from hyperjob_sandbox.apiserver.schema.stringformats import checked_format, string_format

_NUMBER_FORMATS: Final = {"integer": "int64", "number": "float64"}
_RANGES: Final = {"int32": (-(2**31), 2**31 - 1)}
_INT64: Final = (-(2**63), 2**63 - 1)
_MAX_FLOAT32: Final = 3.4028234663852886e38


def explain(
    value: Json, schema: Object, *, prefix: Path, correlation: Correlation | None = None
) -> list[FieldError]:
    """Return every mismatch of a value; `prefix` is the place of the value in its object."""
    result = Result(prefix)
    _validate(value, schema, "", result, correlation)
    return list(result.errors.values())


class Result:
    """Errors found so far, none twice; the count of checks made picks the best of anyOf."""

    __slots__ = ("count", "errors", "prefix")

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.errors: dict[str, FieldError] = {}
        self.count = 0

    def merge(self, other: "Result") -> None:
        """Take over what another result found."""
        for text, error in other.errors.items():
            self.errors.setdefault(text, error)
        self.count += other.count

    def path(self, name: str) -> Path:
        """Return where a value lies in its object."""
        name = name.removeprefix(".")
        return self.prefix.child(name) if name else self.prefix

    def invalid(self, name: str, text: str, value: Json = "") -> None:
        """Add a value that is out of bounds."""
        shown = "" if value is None else value
        self.errors.setdefault(text, field.invalid(self.path(name), shown, text))

    def plain(self, text: str) -> None:
        """Add an error that names no field of its own."""
        self.errors.setdefault(text, field.invalid(self.prefix, "", text))

    def mistyped(self, name: str, wanted: str, found: str) -> None:
        """Add a value of another type or format."""
        text = f"{name} in body must be of type {wanted}: {field.go_quote(found)}"
        self.errors.setdefault(text, field.type_invalid(self.path(name), found, text))


def value_types(schema: Object) -> tuple[str, ...]:
    """Return the JSON types that a schema allows; none at all means any."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _validate(
    value: Json, schema: Object, name: str, result: Result, correlation: Correlation | None
) -> None:
    own = Result(result.prefix)
    types = value_types(schema)
    form = checked_format(schema.get("format") or "", types)
    kind = json_type(value)
    if types or form:
        own.count += _check_type(value, kind, types, form, bool(schema.get("nullable")), name, own)
    if value is not None:
        own.count += 1 if types or form else 0
        _check_combinations(value, schema, name, own, correlation)
        if kind == "string":
            _check_string(value, schema, name, own)
            if form:
                _check_format(value, form, name, own)
        elif kind in ("integer", "number"):
            _check_number(value, schema, types, form, name, own)
        elif kind == "array":
            _check_list(value, schema, name, own, correlation)
    _check_enum(value, schema, name, own)
    if kind == "object":
        _check_object(value, schema, name, own, correlation)
    if value is not None:
        own.count += 1
    if own.errors and correlation is not None and correlation.unchanged():
        own.errors.clear()
    result.merge(own)


def _check_type(
    value: Json,
    kind: str,
    types: tuple[str, ...],
    form: str,
    nullable: bool,
    name: str,
    result: Result,
) -> int:
    """Check the JSON type; return 1 where it fits: the best of anyOf has most of these."""
    joined = ",".join(types)
    if value is None:
        if types and not nullable:
            result.mistyped(name, joined, "null")
            return 0
        return 1
    value_format = _NUMBER_FORMATS.get(kind, "")
    integral = kind == "number" and float(value).is_integer() and "integer" in types
    widened = kind == "integer" and "number" in types
    if kind not in ("string", "array"):
        if form and not (kind in types or value_format == form or integral or widened):
            result.mistyped(name, form, value_format)
            return 0
    elif form and "number" not in types and "integer" not in types:
        return 1
    if not (kind in types or integral or widened):
        result.mistyped(name, joined, kind)
        return 0
    return 1


def _check_string(value: str, schema: Object, name: str, result: Result) -> None:
    maximum, minimum, pattern = (schema.get(k) for k in ("maxLength", "minLength", "pattern"))
    if maximum is not None and len(value) > maximum:
        text = f"{name} in body should be at most {maximum} chars long"
        result.errors.setdefault(text, field.too_long(result.path(name), "", maximum))
    elif minimum is not None and len(value) < minimum:
        result.invalid(name, f"{name} in body should be at least {minimum} chars long", value)
    elif pattern:
        try:
            fits = compile_go(pattern).search(value) is not None
            shown = pattern
        except ValueError as error:
            fits, shown = False, f"{pattern}, but pattern is invalid: {error}"
        if not fits:
            result.invalid(name, f"{name} in body should match '{shown}'", value)
    result.count += 1


def _check_format(value: str, form: str, name: str, result: Result) -> None:
    check = string_format(form)
    if check is not None and not check(value):
        result.mistyped(name, form, value)
    result.count += 1


def _check_number(
    value: float, schema: Object, types: tuple[str, ...], form: str, name: str, result: Result
) -> None:
    kind = types[0] if len(types) == 1 else ""
    _check_range(value, kind, form, "Checked", name, result)
    for word, check in _BOUNDS.items():
        bound = schema.get(word)
        if bound is None:
            continue
        _check_range(float(bound), kind, form, _BOUND_TITLES[word], name, result)
        limit = int(bound) if isinstance(value, int) else float(bound)
        text = check(value, limit, bool(schema.get(f"exclusive{word.capitalize()}")))
        if text:
            result.invalid(name, f"{name} in body should be {text}", value)
    result.count += 2


def _show(number: float) -> str:
    return go_float(number) if isinstance(number, float) else str(number)


def _multiple(value: float, factor: float, exclusive: bool) -> str:
    del exclusive
    if factor <= 0:
        return "a multiple of a positive factor"
    scaled = value / factor if factor >= 1 else 1 / factor * value
    fits = value % factor == 0 if isinstance(value, int) else float(scaled).is_integer()
    return "" if fits else f"a multiple of {_show(factor)}"


def _at_least(value: float, limit: float, exclusive: bool) -> str:
    if value > limit or (value == limit and not exclusive):
        return ""
    return f"greater than {'' if exclusive else 'or equal to '}{_show(limit)}"


def _at_most(value: float, limit: float, exclusive: bool) -> str:
    if value < limit or (value == limit and not exclusive):
        return ""
    return f"less than {'' if exclusive else 'or equal to '}{_show(limit)}"


_BOUNDS: Final[dict[str, Callable[[float, float, bool], str]]] = {
    "multipleOf": _multiple,
    "minimum": _at_least,
    "maximum": _at_most,
}
_BOUND_TITLES: Final = {
    "multipleOf": "MultipleOf",
    "minimum": "Minimum boundary",
    "maximum": "Maximum boundary",
}


def _check_range(value: float, kind: str, form: str, title: str, name: str, result: Result) -> None:
    """Check that a number has a place in its type and format at all."""
    if kind == "integer":
        low, high = _RANGES.get(form, _INT64)
        fits = float(value).is_integer() and low <= value <= high
    else:
        fits = form != "float" or abs(value) <= _MAX_FLOAT32
    if not fits:
        wanted = f"{kind} with format {form}" if form else f"{kind} (default format)"
        result.plain(f"{title} value must be of type {wanted} in {name}")


def _check_list(
    value: list[Json], schema: Object, name: str, result: Result, correlation: Correlation | None
) -> None:
    size = len(value)
    items = schema.get("items")
    if isinstance(items, dict):
        for i, item in enumerate(value):
            past = correlation.index(i) if correlation is not None else None
            _validate(item, items, f"{name}[{i}]", result, past)
    minimum, maximum = schema.get("minItems"), schema.get("maxItems")
    if minimum is not None and size < minimum:
        result.invalid(name, f"{name} in body should have at least {minimum} items", size)
    if maximum is not None and size > maximum:
        text = f"{name} in body should have at most {maximum} items"
        result.errors.setdefault(text, field.too_many(result.path(name), size, maximum))
    if schema.get("uniqueItems") and any(
        jsonvalue.equal(item, other) for i, item in enumerate(value) for other in value[:i]
    ):
        result.invalid(name, f"{name} in body shouldn't contain duplicates")
    result.count += 2


def _check_enum(value: Json, schema: Object, name: str, result: Result) -> None:
    allowed = schema.get("enum")
    if not allowed or in_enum(value, allowed):
        result.count += 1
        return
    texts = [
        item if isinstance(item, str) else orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()
        for item in allowed
    ]
    key = f"{name} in body should be one of {jsonvalue.go_format(allowed)}"
    result.errors.setdefault(key, field.not_supported(result.path(name), value, texts))
    result.count += 1


def in_enum(value: Json, allowed: list[Json]) -> bool:
    """Tell whether a value is one of a closed set; null never is."""
    if value is None:
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        return any(value == item for item in allowed if not isinstance(item, bool))
    return any(jsonvalue.equal(value, item) for item in allowed)


def _check_object(
    value: Object, schema: Object, name: str, result: Result, correlation: Correlation | None
) -> None:
    minimum, maximum = schema.get("minProperties"), schema.get("maxProperties")
    if minimum is not None and len(value) < minimum:
        text = f"{name} in body should have at least {minimum} properties"
        result.invalid(name, text, len(value))
    if maximum is not None and len(value) > maximum:
        text = f"{name} in body should have at most {maximum} properties"
        result.errors.setdefault(text, field.too_many(result.path(name), len(value), maximum))
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")

    def past(key: str) -> Correlation | None:
        # The type of a resource is never ratcheted: conversion may have changed it.
        if correlation is None or (not name and key in ("apiVersion", "kind")):
            return None
        return correlation.key(key)

    if isinstance(additional, dict):
        for key, item in value.items():
            if key not in properties:
                _validate(item, additional, f"{name}.{key}", result, past(key))
    for key, child in properties.items():
        if key in value:
            _validate(value[key], child, f"{name}.{key}" if name else key, result, past(key))
    for key in schema.get("required") or ():
        if key not in value:
            text = f"{name}.{key} in body is required"
            result.errors.setdefault(text, field.required(result.path(f"{name}.{key}")))
    result.count += 1


def _check_combinations(
    value: Json, schema: Object, name: str, result: Result, correlation: Correlation | None
) -> None:
    def attempt(member: Object) -> Result:
        attempted = Result(result.prefix)
        # A member has no past of its own: the value that it judges is ratcheted as a whole.
        _validate_member(value, member, name, attempted, correlation)
        return attempted

    quoted = field.go_quote(name)
    if schema.get("anyOf"):
        attempts = [attempt(member) for member in schema["anyOf"]]
        passed = next((a for a in attempts if not a.errors), None)
        if passed is None:
            result.plain(f"{quoted} must validate at least one schema (anyOf)")
        result.merge(passed or max(attempts, key=lambda a: a.count))
    if schema.get("oneOf"):
        attempts = [attempt(member) for member in schema["oneOf"]]
        valid = [a for a in attempts if not a.errors]
        if len(valid) == 1:
            result.merge(valid[0])
        else:
            found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
            result.plain(f"{quoted} must validate one and only one schema (oneOf). {found}")
            if not valid:
                result.merge(max(attempts, key=lambda a: a.count))
    if schema.get("allOf"):
        attempts = [attempt(member) for member in schema["allOf"]]
        for attempted in attempts:
            result.merge(attempted)
        failed = sum(1 for a in attempts if a.errors)
        if failed:
            none = ". None validated" if failed == len(attempts) else ""
            result.plain(f"{quoted} must validate all the schemas (allOf){none}")
    if schema.get("not") is not None and not attempt(schema["not"]).errors:
        result.plain(f"{quoted} must not validate the schema (not)")
    result.count += 2


def _validate_member(
    value: Json, schema: Object, name: str, result: Result, correlation: Correlation | None
) -> None:
    past = _Detached(correlation) if correlation is not None else None
    _validate(value, schema, name, result, past)


class _Detached(Correlation):
    """A past whose children count, but which excuses nothing itself."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Correlation) -> None:
        super().__init__(None, None, {})
        self._whole = whole

    def key(self, name: str) -> Correlation | None:
        return self._whole.key(name)

    def index(self, position: int) -> Correlation | None:
        return self._whole.index(position)

    def unchanged(self) -> bool:
        return False
