"""Whether a value fits its schema: yes or no, as fast as Python can say it.

Nearly every value is fine, so the schema is compiled once into closures that build no paths and no
texts. Lists that must be unique are part of it. A "no" may be wrong, in the safe direction only:
`validation` and `listtypes` then find nothing to say.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from hyperjob.api.field import Path
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema import validation
from hyperjob_sandbox.apiserver.schema.goregexp import compile_go
from hyperjob_sandbox.apiserver.schema.stringformats import checked_format, string_format

Check: TypeAlias = Callable[[Json], bool]

_ROOT: Final = Path()
_COMBINATIONS: Final = ("allOf", "anyOf", "oneOf", "not")


def compile_check(schema: Object) -> Check | None:
    """Return the test of a schema; None where any value fits."""
    if any(schema.get(word) for word in _COMBINATIONS) or schema.get("not") is not None:
        return _with_combinations(schema)
    return _plain(schema)


def _slow(schema: Object) -> Check:
    return lambda value: not validation.explain(value, schema, prefix=_ROOT)


def _with_combinations(schema: Object) -> Check:
    own = _plain(schema)
    all_of = [c for m in schema.get("allOf") or () if (c := compile_check(m)) is not None]
    any_of = [compile_check(m) for m in schema.get("anyOf") or ()]
    one_of = [compile_check(m) for m in schema.get("oneOf") or ()]
    excluded = schema.get("not")
    forbidden = compile_check(excluded) if excluded is not None else None

    def check(value: Json) -> bool:
        if own is not None and not own(value):
            return False
        if value is None:
            return True
        if any_of and not any(c is None or c(value) for c in any_of):
            return False
        if one_of and sum(c is None or c(value) for c in one_of) != 1:
            return False
        if excluded is not None and (forbidden is None or forbidden(value)):
            return False
        return all(c(value) for c in all_of)

    return check


def _plain(schema: Object) -> Check | None:
    types = validation.value_types(schema)
    # Values of several types, or of none, are rare: the thorough half judges them.
    match types:
        case ("object",):
            check = _object(schema)
        case ("array",):
            check = _list(schema)
        case ("string",):
            check = _string(schema)
        case ("integer",) | ("number",):
            check = _number(schema, types)
        case ("boolean",):
            check = _boolean(schema)
        case ():
            own = {k: v for k, v in schema.items() if k in _VALUE_WORDS}
            return _slow(own) if own else None
        case _:
            return _int_or_string(schema)
    if not schema.get("nullable") or schema.get("enum"):
        return check
    return lambda value: value is None or check(value)


_VALUE_WORDS: Final = frozenset(
    [
        "format",
        "enum",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "multipleOf",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "maxProperties",
        "minProperties",
        "required",
        "properties",
        "additionalProperties",
        "items",
        "nullable",
    ]
)


def _int_or_string(schema: Object) -> Check:
    own = {k: v for k, v in schema.items() if k not in _COMBINATIONS}
    bare = not any(word in own for word in _VALUE_WORDS - {"format"})
    thorough = _slow(own)

    def check(value: Json) -> bool:
        kind = type(value)
        return (kind is str or kind is int) if bare and kind is not float else thorough(value)

    return check


def _boolean(schema: Object) -> Check:
    allowed = schema.get("enum")
    if allowed:
        return lambda value: type(value) is bool and validation.in_enum(value, allowed)
    return lambda value: type(value) is bool


def _string(schema: Object) -> Check:
    allowed = schema.get("enum")
    pattern = schema.get("pattern")
    form = string_format(checked_format(schema.get("format") or "", ("string",)))
    # A list passes where a string with a format is wanted: the thorough half knows when.
    thorough = _slow({k: v for k, v in schema.items() if k not in _COMBINATIONS})
    search = _searcher(pattern) if pattern else None
    low = schema.get("minLength") or 0
    high = schema.get("maxLength")
    members = frozenset(item for item in allowed if isinstance(item, str)) if allowed else None
    if members is None and search is None and form is None and not low and high is None:
        return lambda value: type(value) is str

    def check(value: Json) -> bool:
        if type(value) is not str:
            return form is not None and thorough(value)
        return (
            len(value) >= low
            and (high is None or len(value) <= high)
            and (members is None or value in members)
            and (form is None or form(value))
            and (search is None or search(value) is not None)
        )

    return check


def _searcher(pattern: str) -> Callable[[str], object]:
    try:
        return compile_go(pattern).search
    except ValueError:
        return lambda _: None


def _number(schema: Object, types: tuple[str, ...]) -> Check:
    words = {k: v for k, v in schema.items() if k not in _COMBINATIONS}
    thorough = _slow(words)
    low, high = schema.get("minimum"), schema.get("maximum")
    exact = all(bound is None or isinstance(bound, int) for bound in (low, high)) and not any(
        schema.get(word) for word in ("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum")
    )
    if types != ("integer",) or not exact:
        return thorough
    small = schema.get("format") == "int32"
    least = max(-(2**31) if small else -(2**63), low if low is not None else -(2**63))
    most = min(2**31 - 1 if small else 2**63 - 1, high if high is not None else 2**63 - 1)

    def check(value: Json) -> bool:
        return least <= value <= most if type(value) is int else thorough(value)

    return check


def _list(schema: Object) -> Check:
    items = schema.get("items")
    item = compile_check(items) if isinstance(items, dict) else None
    if schema.get("uniqueItems") or schema.get("enum"):
        return _slow({k: v for k, v in schema.items() if k not in _COMBINATIONS})
    low = schema.get("minItems") or 0
    high = schema.get("maxItems")

    unique = _uniqueness(schema)

    def check(value: Json) -> bool:
        if type(value) is not list:
            return False
        size = len(value)
        if size < low or (high is not None and size > high):
            return False
        if item is not None:
            for entry in value:
                if not item(entry):
                    return False
        return unique is None or size < 2 or unique(value)

    return check


def _uniqueness(schema: Object) -> Check | None:
    kind = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if kind not in ("set", "map"):
        return None

    def unique(items: list[Json]) -> bool:
        try:
            if kind == "set":
                return len(set(items)) == len(items)
            if len(keys) == 1:
                (key,) = keys
                return len({item[key] for item in items}) == len(items)
            return len({tuple(item.get(key) for key in keys) for item in items}) == len(items)
        except (TypeError, KeyError, AttributeError):
            return False

    return unique


def _marked(schema: Object) -> Check | type[str] | None:
    """Return the test of a field; `str` itself for plain texts, which need no call."""
    plain = schema.get("type") == "string" and not any(
        schema.get(word) for word in (*_COMBINATIONS, *_VALUE_WORDS)
    )
    return str if plain else compile_check(schema)


def _object(schema: Object) -> Check:
    if schema.get("enum"):
        return _slow({k: v for k, v in schema.items() if k not in _COMBINATIONS})
    fields = {name: _marked(child) for name, child in (schema.get("properties") or {}).items()}
    additional = schema.get("additionalProperties")
    rest = _marked(additional) if isinstance(additional, dict) else None
    required = frozenset(schema.get("required") or ())
    low = schema.get("minProperties") or 0
    high = schema.get("maxProperties")
    sized = bool(low) or high is not None
    lookup = fields.get

    def check(value: Json) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            test = lookup(key, rest)
            if test is str:
                if type(item) is not str:
                    return False
            elif test is not None and not test(item):
                return False
        if required and not required <= value.keys():
            return False
        return not sized or (len(value) >= low and (high is None or len(value) <= high))

    return check
