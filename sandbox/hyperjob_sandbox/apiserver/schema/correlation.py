"""What an updated value was before: the basis of ratcheting and of transition rules.

An invalid value that did not change is not held against an update. Only object fields and items of
lists that have keys can be followed; everything else has no past of its own.
"""

from collections.abc import Sequence

import orjson

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json


class KeyedList:
    """Items of a list by their keys; the first of several with the same keys wins."""

    def __init__(self, items: Sequence[Json], keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._found: dict[bytes, Json] = {}
        for item in items:
            if isinstance(item, dict):
                self._found.setdefault(self._key(item), item)

    def _key(self, item: Object) -> bytes:
        return orjson.dumps([item.get(key) for key in self._keys], option=orjson.OPT_SORT_KEYS)

    def get(self, item: Json) -> Json:
        """Return the item with the same keys, or None."""
        return self._found.get(self._key(item)) if isinstance(item, dict) else None


class Correlation:
    """A value with its past and its schema; children are found once."""

    __slots__ = ("_children", "_equal", "_keyed", "_new", "_old", "_schema")

    def __init__(self, new: Json, old: Json, schema: Object) -> None:
        self._new = new
        self._old = old
        self._schema = schema
        self._equal: bool | None = None
        self._keyed: KeyedList | None = None
        self._children: dict[str | int, Correlation] = {}

    def key(self, name: str) -> "Correlation | None":
        """Follow a field that is there now and was there before."""
        if name in self._children:
            return self._children[name]
        if not isinstance(self._old, dict) or not isinstance(self._new, dict):
            return None
        if name not in self._old or name not in self._new:
            return None
        schema = (self._schema.get("properties") or {}).get(name)
        if schema is None:
            schema = self._schema.get("additionalProperties")
        if not isinstance(schema, dict):
            return None
        child = Correlation(self._new[name], self._old[name], schema)
        self._children[name] = child
        return child

    def index(self, position: int) -> "Correlation | None":
        """Follow a list item by its keys."""
        if position in self._children:
            return self._children[position]
        if not isinstance(self._old, list) or not isinstance(self._new, list):
            return None
        if self._schema.get("x-kubernetes-list-type") != "map":
            return None
        items = self._schema.get("items")
        if self._keyed is None:
            keys = tuple(self._schema.get("x-kubernetes-list-map-keys") or ())
            self._keyed = KeyedList(self._old, keys)
        old = self._keyed.get(self._new[position])
        if old is None or not isinstance(items, dict):
            return None
        child = Correlation(self._new[position], old, items)
        self._children[position] = child
        return child

    def unchanged(self) -> bool:
        """Tell whether the value is what it was."""
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _compare(self) -> bool:
        new, old = self._new, self._old
        if isinstance(new, dict) and isinstance(old, dict):
            return len(new) == len(old) and all(
                (child := self.key(name)) is not None and child.unchanged() for name in new
            )
        if isinstance(new, list) and isinstance(old, list):
            return len(new) == len(old) and self._same_items(new, old)
        return jsonvalue.equal(new, old)

    def _same_items(self, new: list[Json], old: list[Json]) -> bool:
        for position in range(len(new)):
            child = self.index(position)
            if child is None:
                return self._keyed is None and jsonvalue.equal(new, old)
            if not child.unchanged():
                return False
        return True
