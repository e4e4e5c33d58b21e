"""Values seen through their types: what lies below them, merge, compare, remove fields.

The algebra below server-side apply. Pure: results share nothing that is changed later with inputs.
"""

from collections.abc import Collection, Iterator
from typing import Final, TypeAlias

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership.fields import (
    Element,
    FieldPath,
    Fields,
    key_element,
    print_path,
    value_element,
)
from hyperjob_sandbox.apiserver.schema.typeinfo import DEDUCED, MISSING, TypeInfo

Children: TypeAlias = dict[Element, tuple[Json, TypeInfo]]
_INNER: Final = object()


class MisfitError(ValueError):
    """An applied object that does not fit its type; the text says where."""


def _children(value: Json, kind: TypeInfo) -> Children | None:
    """Return what lies directly below a value; None for a value that is owned whole."""
    if isinstance(value, dict) and not kind.atomic_map:
        return {f"f:{name}": (item, kind.below(name) or DEDUCED) for name, item in value.items()}
    if not isinstance(value, list) or kind.keys is None:
        return None
    below = kind.item()
    found = {_identity(item, kind): (item, below) for item in value}
    found.pop("", None)
    return found


def _identity(item: Json, kind: TypeInfo) -> Element:
    """Return the element of an item of a set or a list map; empty where it has none."""
    if not kind.keys:
        return "" if item is None or isinstance(item, dict | list) else value_element(item)
    if not isinstance(item, dict):
        return ""
    given = {name: item.get(name, kind.key_default(name)) for name in kind.keys}
    keys = {name: value for name, value in given.items() if value is not MISSING}
    return key_element(keys) if keys else ""


def check(value: Json, kind: TypeInfo, path: FieldPath = ()) -> None:
    """Raise MisfitError for unknown fields, and for items that cannot be told apart."""
    if isinstance(value, dict):
        for name in value:
            if kind.below(name) is None:
                raise MisfitError(
                    f"{print_path((*path, f'f:{name}'))}: field not declared in schema"
                )
    elif isinstance(value, list) and kind.keys is not None:
        seen: set[Element] = set()
        for i, item in enumerate(value):
            element = _identity(item, kind)
            if not element:
                keys = " ".join(f'"{key}"' for key in kind.keys)
                why = (
                    f"associative list with keys has an element that omits all key fields [{keys}]"
                    " (and doesn't have default values for any key fields)"
                )
                raise MisfitError(f"{print_path(path)}: element {i}: {why}")
            if element in seen:
                why = f"duplicate entries for key {print_path([element])}"
                raise MisfitError(f"{print_path(path)}: {why}")
            seen.add(element)
    for element, (item, below) in (_children(value, kind) or {}).items():
        check(item, below, (*path, element))


def to_fields(value: Json, kind: TypeInfo) -> Fields:
    """Return the fields that a value sets; a declared field that only leads to others is none."""
    return frozenset(_set_fields(value, kind, ()))


def _set_fields(value: Json, kind: TypeInfo, path: FieldPath) -> Iterator[FieldPath]:
    for element, (item, below) in (_children(value, kind) or {}).items():
        at = (*path, element)
        leads = element[0] == "f" and kind.declared(element[2:]) and item != {}
        if not leads or _children(item, below) is None:
            yield at
        yield from _set_fields(item, below, at)


def compare(
    old: Object, new: Object, kind: TypeInfo, *, ignored: Collection[str] = ()
) -> tuple[Fields, Fields]:
    """Return which fields a change set and which it removed, outside of ignored top-level ones."""
    names = [
        name
        for name in {**old, **new}
        if name not in ignored
        and not jsonvalue.equal(old.get(name, MISSING), new.get(name, MISSING))
    ]
    before = _flat({name: old[name] for name in names if name in old}, kind, ())
    after = _flat({name: new[name] for name in names if name in new}, kind, ())
    changed = (
        path
        for path, value in after.items()
        if path not in before or not jsonvalue.equal(before[path], value)
    )
    return frozenset(changed), frozenset(before.keys() - after.keys())


def _flat(value: Json, kind: TypeInfo, path: FieldPath) -> dict[FieldPath, Json]:
    """Return every field with its value, or `_INNER` where it has fields of its own."""
    children = _children(value, kind)
    if children is None:
        return {path: value}
    found: dict[FieldPath, Json] = {path: _INNER}
    for element, (item, below) in children.items():
        found |= _flat(item, below, (*path, element))
    return found


def merge(live: Json, applied: Json, kind: TypeInfo) -> Json:
    """Return the live value with the applied one laid over it; applied wins."""
    theirs, mine = _children(live, kind), _children(applied, kind)
    if theirs is None or mine is None:
        return jsonvalue.copy(live if applied is None and theirs else applied)
    order = merged_order(theirs, mine) if isinstance(applied, list) else {**theirs, **mine}
    merged = {
        element: jsonvalue.copy(theirs[element][0])
        if element not in mine
        else merge(theirs[element][0] if element in theirs else None, *mine[element])
        for element in order
    }
    return _rebuilt(applied, merged)


def _rebuilt(like: Json, found: dict[Element, Json]) -> Json:
    """Make an object or a list of what is below it."""
    if isinstance(like, list):
        return list(found.values())
    return {element[2:]: item for element, item in found.items()}


def merged_order(theirs: Collection[Json], mine: Collection[Json]) -> Iterator[Json]:
    """Keep the applied order, and the items of others near their neighbours."""
    wanted, known, own = list(mine), set(theirs), set(mine)
    shared = [element for element in wanted if element in known]
    for element in theirs:
        if element not in own:
            yield element
        elif shared and shared[0] == element:
            shared.pop(0)
            position = wanted.index(element) + 1
            yield from wanted[:position]
            del wanted[:position]
    yield from wanted


def remove(value: Json, gone: Fields, kind: TypeInfo, path: FieldPath = ()) -> Json:
    """Return a value without the fields of a set; what only held them stays, empty."""
    found = _children(value, kind)
    if found is None:
        return value
    kept = {
        element: remove(item, gone, below, at)
        for element, (item, below) in found.items()
        if (at := (*path, element)) not in gone
    }
    return _rebuilt(value, kept)


def with_parents(fields: Fields) -> Fields:
    """Return the set with the fields that lead to its members, which own nothing alone."""
    leading = (path[:i] for path in fields for i in range(1, len(path)) if path[i - 1][0] == "f")
    return fields.union(leading)
