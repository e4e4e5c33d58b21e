"""The store of an informer: its objects by key and by index.

Readers get the store's own objects and must not change them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import key_of

Indexer = Callable[[Object], Iterable[str]]
"""Returns the values of an object in an index.

It must return the same values for the same object: a Store asks again to remove them.
"""


class Store:
    """Objects by key, with any number of secondary indexes."""

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        self._objects: dict[str, Object] = {}
        self._indexers = dict(indexers or {})
        self._indexes: dict[str, dict[str, dict[str, None]]] = {name: {} for name in self._indexers}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def get(self, key: str) -> Object | None:
        """Return the object under a key."""
        return self._objects.get(key)

    def items(self) -> list[Object]:
        """Return all objects."""
        return list(self._objects.values())

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the objects with `value` in the index `name`; KeyError for an unknown index."""
        return [self._objects[key] for key in self._indexes[name].get(value, ())]

    def put(self, obj: Object) -> Object | None:
        """Store an object; return the replaced one, or None."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = obj
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(obj):
                index.setdefault(value, {})[key] = None
        return old

    def pop(self, key: str) -> Object | None:
        """Remove an object and return it; None if there was none."""
        old = self._objects.pop(key, None)
        if old is not None:
            self._unindex(key, old)
        return old

    def _unindex(self, key: str, old: Object) -> None:
        """Remove a replaced or deleted object from all indexes, and empty values with it."""
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(old):
                if keys := index.get(value):
                    keys.pop(key, None)
                    if not keys:
                        del index[value]
