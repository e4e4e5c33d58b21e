"""Values seen through their types: merge, compare, list the fields, remove fields.

The algebra below server-side apply. Pure: results share nothing that is changed later with inputs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership.fields import (
    Element,
    FieldPath,
    FieldSet,
    FieldSetBuilder,
    field_element,
    key_element,
    value_element,
)
from hyperjob_sandbox.apiserver.schema.schemanode import MISSING
from hyperjob_sandbox.apiserver.schema.typeinfo import TypeInfo

_ABSENT: Final = MISSING


class ElementError(ValueError):
    """A list item that has no identity in its list."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which fields a change removed, modified and added; none is in two of them."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def changed(self) -> FieldSet:
        """Return what is there now and was not, or was different."""
        return self.modified.union(self.added)

    def without(self, ignored: FieldSet) -> "Comparison":
        """Leave out fields and everything below them."""
        return Comparison(
            self.removed.recursive_difference(ignored),
            self.modified.recursive_difference(ignored),
            self.added.recursive_difference(ignored),
        )


def _granular_map(value: Json, kind: TypeInfo) -> bool:
    return isinstance(value, dict) and "map" in kind.shapes and not kind.atomic_map


def _keyed_list(value: Json, kind: TypeInfo) -> bool:
    return isinstance(value, list) and "list" in kind.shapes and kind.list_type != "atomic"


def item_element(item: Json, kind: TypeInfo) -> Element:
    """Return the identity of an item of a set or a list map; raise ElementError."""
    if kind.keys:
        if item is None:
            raise ElementError("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise ElementError("associative list with keys may not have non-map elements")
        keys: Object = {}
        for name in kind.keys:
            value = item.get(name, kind.key_default(name))
            if value is not MISSING:
                keys[name] = value
        if not keys:
            names = " ".join(f'"{name}"' for name in kind.keys)
            raise ElementError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return key_element(keys)
    if isinstance(item, dict):
        raise ElementError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ElementError("not supported: associative list with lists as elements")
    if item is None:
        raise ElementError("associative list without keys has an element that's an explicit null")
    return value_element(item)


def _elements(items: Sequence[Json], kind: TypeInfo) -> Iterator[tuple[Element, Json]]:
    for item in items:
        try:
            yield item_element(item, kind), item
        except ElementError:
            continue


def _fields_of(value: Json) -> Object:
    return value if isinstance(value, dict) else {}


def _items_of(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def to_field_set(value: Json, kind: TypeInfo) -> FieldSet:
    """Return the fields that a value sets."""
    builder = FieldSetBuilder()
    _collect(value, kind, (), builder)
    return builder.build()


def _collect(value: Json, kind: TypeInfo, path: FieldPath, into: FieldSetBuilder) -> None:
    if _granular_map(value, kind):
        for name, item in value.items():
            below = (*path, field_element(name))
            child = kind.field(name)
            if child is not None:
                _collect(item, child, below, into)
            if item is None or item == {} or not kind.declared(name):
                into.insert(below)
    elif _keyed_list(value, kind):
        found = list(_elements(value, kind))
        elements = [element for element, _ in found]
        for element, item in found:
            # Duplicates are owned as one thing: nothing below can be told apart.
            if elements.count(element) == 1:
                _collect(item, kind.item(), (*path, element), into)
            into.insert((*path, element))
    elif value is not None or "scalar" in kind.shapes:
        into.insert(path)


def compare(old: Json, new: Json, kind: TypeInfo) -> Comparison:
    """Return what changed between two values of one type."""
    comparer = _Comparer()
    comparer.compare(old, new, kind, ())
    return Comparison(comparer.removed.build(), comparer.modified.build(), comparer.added.build())


class _Comparer:
    def __init__(self) -> None:
        self.removed = FieldSetBuilder()
        self.modified = FieldSetBuilder()
        self.added = FieldSetBuilder()

    def compare(self, old: Json, new: Json, kind: TypeInfo, path: FieldPath) -> None:
        if old is new or (old is not _ABSENT and new is not _ABSENT and jsonvalue.equal(old, new)):
            return
        present = old if new is _ABSENT or new is None else new
        maps = _granular_map(present, kind) and (old or new)
        lists = _keyed_list(present, kind) and (old or new)
        if maps and self._fits(old, dict) and self._fits(new, dict):
            self._maps(_fields_of(old), _fields_of(new), kind, path)
        elif lists and self._fits(old, list) and self._fits(new, list):
            self._lists(_items_of(old), _items_of(new), kind, path)
        elif old is not _ABSENT and new is not _ABSENT:
            self._changed(old, new, kind, path)
            return
        if old is _ABSENT:
            self.added.insert(path)
        elif new is _ABSENT:
            self.removed.insert(path)

    @staticmethod
    def _fits(value: Json, wanted: type) -> bool:
        return value is _ABSENT or value is None or isinstance(value, wanted)

    def _changed(self, old: Json, new: Json, kind: TypeInfo, path: FieldPath) -> None:
        """Note a value that became another kind of value: what was below it is gone."""
        for value, record in ((old, self.removed), (new, self.added)):
            if _granular_map(value, kind) or _keyed_list(value, kind):
                for below in to_field_set(value, kind):
                    record.insert((*path, *below))
        self.modified.insert(path)

    def _maps(self, old: Object, new: Object, kind: TypeInfo, path: FieldPath) -> None:
        for name in {**old, **new}:
            child = kind.field(name)
            if child is not None:
                below = (*path, field_element(name))
                self.compare(old.get(name, _ABSENT), new.get(name, _ABSENT), child, below)

    def _lists(self, old: list[Json], new: list[Json], kind: TypeInfo, path: FieldPath) -> None:
        before: dict[Element, list[Json]] = {}
        after: dict[Element, list[Json]] = {}
        for items, into in ((old, before), (new, after)):
            for element, item in _elements(items, kind):
                into.setdefault(element, []).append(item)
        child = kind.item()
        for element in {**before, **after}:
            was, now = before.get(element, []), after.get(element, [])
            below = (*path, element)
            if len(was) <= 1 and len(now) <= 1:
                self.compare(was[0] if was else _ABSENT, now[0] if now else _ABSENT, child, below)
            elif len(was) > 1 and len(now) > 1:
                if not jsonvalue.equal(was, now):
                    self.modified.insert(below)
            elif len(was) > 1:
                if now:
                    self.compare(_ABSENT, now[0], child, below)
                self.removed.insert(below)
            else:
                if was:
                    self.compare(was[0], _ABSENT, child, below)
                self.added.insert(below)


def merge(live: Json, applied: Json, kind: TypeInfo) -> Json:
    """Return the live value with the applied one laid over it; applied wins."""
    merged = _merge(live, applied, kind)
    return {} if merged is _ABSENT else merged


def _merge(live: Json, applied: Json, kind: TypeInfo) -> Json:
    if applied is _ABSENT:
        return jsonvalue.copy(live)
    present = applied if applied is not None else live
    if _granular_map(present, kind) and (applied or _fields_of(live)):
        return _merge_maps(_fields_of(live), _fields_of(applied), kind)
    if _keyed_list(present, kind) and (applied or _items_of(live)):
        return _merge_lists(_items_of(live), _items_of(applied), kind)
    return jsonvalue.copy(applied)


def _merge_maps(live: Object, applied: Object, kind: TypeInfo) -> Json:
    merged: Object = {}
    for name in {**live, **applied}:
        child = kind.field(name)
        value = applied.get(name, _ABSENT) if name in applied else _ABSENT
        if child is None:
            # Unknown fields of the live object are kept; the applied one has been checked.
            merged[name] = jsonvalue.copy(live[name] if value is _ABSENT else value)
            continue
        result = _merge(live.get(name, _ABSENT), value, child)
        if result is not _ABSENT:
            merged[name] = result
    return merged or _ABSENT


def _merge_lists(live: list[Json], applied: list[Json], kind: TypeInfo) -> Json:
    """Merge items by identity: applied order rules, items of others stay near their neighbours."""
    mine = dict(_elements(applied, kind))
    order = list(mine)
    theirs = list(_elements(live, kind))
    counted = [element for element, _ in theirs]
    known = {element: item if counted.count(element) == 1 else _ABSENT for element, item in theirs}
    shared = [element for element in order if element in known]
    child = kind.item()
    merged: list[Json] = []
    done: set[Element] = set()
    left = right = 0

    def take(element: Element) -> None:
        done.add(element)
        merged.append(_merge(known.get(element, _ABSENT), mine[element], child))
        if shared and shared[0] == element:
            shared.pop(0)

    while left < len(theirs) or right < len(order):
        if left < len(theirs) and right < len(order):
            element = theirs[left][0]
            if element == order[right]:
                take(element)
                left += 1
                right += 1
                continue
            if element in mine and shared and shared[0] != element:
                left += 1
                continue
        if left < len(theirs):
            element, item = theirs[left]
            if element not in mine:
                merged.append(jsonvalue.copy(item))
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(order):
            take(order[right])
            right += 1
    return merged or _ABSENT


def remove(value: Json, fields: FieldSet, kind: TypeInfo) -> Json:
    """Return a value without the fields of a set; what only held them stays, empty."""
    if not fields:
        return value
    if _granular_map(value, kind):
        kept: Object = {}
        for name, item in value.items():
            element = field_element(name)
            child = kind.field(name)
            if element not in fields.members:
                kept[name] = remove(item, fields.below(element), child) if child else item
        return kept
    if _keyed_list(value, kind):
        return [
            remove(item, fields.below(element), kind.item())
            for element, item in _elements(value, kind)
            if element not in fields.members
        ]
    return value


def with_named_fields(fields: FieldSet, kind: TypeInfo | None) -> FieldSet:
    """Return the set with the declared fields that lead to its members, which own nothing alone."""
    members = set(fields.members)
    children: dict[Element, FieldSet] = {}
    for element, below in fields.children.items():
        child: TypeInfo | None = None
        if element.startswith("f:"):
            name = element[2:]
            child = kind.field(name) if kind is not None else None
            if kind is not None and kind.declared(name):
                members.add(element)
        elif kind is not None:
            child = kind.item()
        children[element] = with_named_fields(below, child)
    return FieldSet(frozenset(members), children)
