"""Values seen through their types: what lies below them, merge, compare, remove fields.

The algebra below server-side apply. Pure: results share nothing that is changed later with inputs.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

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
from hyperjob_sandbox.apiserver.schema.schemanode import MISSING
from hyperjob_sandbox.apiserver.schema.typeinfo import DEDUCED, TypeInfo

Children: TypeAlias = dict[Element, tuple[Json, TypeInfo]]


class MisfitError(ValueError):
    """An applied object that does not fit its type; the text says where."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which fields a change removed, modified and added; none is in two of them."""

    removed: Fields
    modified: Fields
    added: Fields


def _children(value: Json, kind: TypeInfo) -> Children | None:
    """Return what lies directly below a value; None for a value that is owned whole."""
    if isinstance(value, dict) and not kind.atomic_map:
        return {f"f:{name}": (item, kind.field(name) or DEDUCED) for name, item in value.items()}
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
            if kind.field(name) is None:
                raise MisfitError(
                    f"{print_path((*path, f'f:{name}'))}: field not declared in schema"
                )
    elif isinstance(value, list) and kind.keys is not None:
        seen: set[Element] = set()
        for i, item in enumerate(value):
            element = _identity(item, kind)
            if not element:
                keys = " ".join(f'"{key}"' for key in kind.keys)
                why = f"associative list has an element without a value for its key fields [{keys}]"
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


def _everything(value: Json, kind: TypeInfo, path: FieldPath) -> Iterator[FieldPath]:
    """Walk the paths of a value and of all below it."""
    yield path
    for element, (item, below) in (_children(value, kind) or {}).items():
        yield from _everything(item, below, (*path, element))


def compare(old: Json, new: Json, kind: TypeInfo, *, ignored: Iterable[str] = ()) -> Comparison:
    """Return what changed between two values of one type, outside of ignored top-level fields."""
    found: tuple[set[FieldPath], set[FieldPath], set[FieldPath]] = (set(), set(), set())
    _compare(old, new, kind, (), found)
    without = {f"f:{name}" for name in ignored}
    return Comparison(*(frozenset(p for p in paths if p[0] not in without) for paths in found))


def _compare(
    old: Json,
    new: Json,
    kind: TypeInfo,
    path: FieldPath,
    found: tuple[set[FieldPath], set[FieldPath], set[FieldPath]],
) -> None:
    if jsonvalue.equal(old, new):
        return
    removed, modified, added = found
    before, after = _children(old, kind), _children(new, kind)
    if before is None or after is None:
        # It became another kind of value: what was below it is gone.
        modified.add(path)
        removed.update(p for p in _everything(old, kind, path) if p != path)
        added.update(p for p in _everything(new, kind, path) if p != path)
        return
    for element in {**before, **after}:
        at = (*path, element)
        if element not in after:
            removed.update(_everything(*before[element], at))
        elif element not in before:
            added.update(_everything(*after[element], at))
        else:
            (was, _), (now, below) = before[element], after[element]
            _compare(was, now, below, at, found)


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


def with_parents(fields: Fields, kind: TypeInfo) -> Fields:
    """Return the set with the declared fields that lead to its members, which own nothing alone."""
    found = set(fields)
    for path in fields:
        at: TypeInfo | None = kind
        for i, element in enumerate(path[:-1]):
            if element[0] == "f" and at is not None:
                if at.declared(element[2:]):
                    found.add(path[: i + 1])
                at = at.field(element[2:])
            elif at is not None:
                at = at.item()
    return frozenset(found)


def without(fields: Fields, ignored: Iterable[str]) -> Fields:
    """Leave out top-level fields and everything below them."""
    names = {f"f:{name}" for name in ignored}
    return frozenset(path for path in fields if path[0] not in names) if names else fields
