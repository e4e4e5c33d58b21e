"""Sets of fields as managedFields keep them (FieldsV1): a tree whose nodes may be members too.

Immutable: every operation returns a new set. Path elements are their FieldsV1 keys: `f:name` a
field, `k:{"name":"a"}` an item of a list map, `v:"x"` an item of a set, `i:0` a position.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

import orjson

from hyperjob.api.field import go_quote
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json, go_format

Element: TypeAlias = str
FieldPath: TypeAlias = tuple[Element, ...]

_SORTED: Final = orjson.OPT_SORT_KEYS


class FieldsError(ValueError):
    """A fieldsV1 document that cannot be read."""


def field_element(name: str) -> Element:
    """Return the element of an object's field."""
    return f"f:{name}"


def key_element(keys: Mapping[str, Json]) -> Element:
    """Return the element of a list map's item."""
    return "k:" + orjson.dumps(keys, option=_SORTED).decode()


def value_element(value: Json) -> Element:
    """Return the element of a set's item."""
    return "v:" + orjson.dumps(value, option=_SORTED).decode()


def print_element(element: Element) -> str:
    """Print an element as conflicts name it: `.name`, `[name="a"]`, `[="x"]`, `[0]`."""
    kind, _, text = element.partition(":")
    match kind:
        case "f":
            return f".{text}"
        case "k":
            keys = orjson.loads(text)
            return "[" + ",".join(f"{name}={_show(keys[name])}" for name in sorted(keys)) + "]"
        case "v":
            return f"[={_show(orjson.loads(text))}]"
        case _:
            return f"[{text}]"


def _show(value: Json) -> str:
    if value is None:
        return "null"
    return go_quote(value) if isinstance(value, str) else go_format(value)


def print_path(path: Iterable[Element]) -> str:
    """Print a path as conflicts name it."""
    return "".join(map(print_element, path))


def _canonical(element: str) -> Element:
    kind, separator, text = element.partition(":")
    if len(kind) != 1 or not separator:
        raise FieldsError(f"missing colon: {element}")
    try:
        match kind:
            case "f":
                return element
            case "k":
                return key_element(dict(orjson.loads(text)))
            case "v":
                return value_element(orjson.loads(text))
            case "i":
                return f"i:{int(text)}"
    except (ValueError, TypeError) as error:
        raise FieldsError(f"invalid path element: {element}") from error
    raise FieldsError(f"unknown path element type: {element}")


_ORDER: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


def _sort_key(element: Element) -> tuple[int, str]:
    return (_ORDER.get(element[0], 4), element)


@dataclass(frozen=True, slots=True)
class FieldSet:
    """Members are fields of the set right here; children, never empty, lead further down."""

    members: frozenset[Element] = frozenset()
    children: "Mapping[Element, FieldSet]" = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[FieldPath]) -> "FieldSet":
        """Build a set from paths; the empty path, the object itself, has no owner."""
        builder = FieldSetBuilder()
        for path in paths:
            builder.insert(path)
        return builder.build()

    @classmethod
    def from_fields_v1(cls, raw: Object) -> "FieldSet":
        """Read a fieldsV1 document; raise FieldsError."""
        return _read(orjson.dumps(raw))

    @classmethod
    def _from_document(cls, raw: Object) -> "FieldSet":
        members: set[Element] = set()
        children: dict[Element, FieldSet] = {}
        for key, below in raw.items():
            if key == ".":
                continue
            if not isinstance(below, dict):
                raise FieldsError(f"expected an object at {key}")
            element = _canonical(key)
            if not below or "." in below:
                members.add(element)
            child = cls._from_document(below)
            if child:
                children[element] = child
        return cls(frozenset(members), children)

    def to_fields_v1(self) -> Object:
        """Write the fieldsV1 document."""
        document: Object = {}
        for element in sorted(self.members | self.children.keys(), key=_sort_key):
            child = self.children.get(element)
            below = child.to_fields_v1() if child is not None else {}
            if element in self.members and below:
                below = {".": {}, **below}
            document[element] = below
        return document

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __iter__(self) -> Iterator[FieldPath]:
        """Walk the members' paths, parents first."""
        for element in sorted(self.members, key=_sort_key):
            yield (element,)
        for element in sorted(self.children, key=_sort_key):
            for path in self.children[element]:
                yield (element, *path)

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, tuple) or not path:
            return False
        node = self
        for element in path[:-1]:
            below = node.children.get(element)
            if below is None:
                return False
            node = below
        return path[-1] in node.members

    def below(self, element: Element) -> "FieldSet":
        """Return what the set holds below an element."""
        return self.children.get(element, EMPTY)

    def union(self, other: "FieldSet") -> "FieldSet":
        """Return what is in either set."""
        if not other:
            return self
        if not self:
            return other
        children = dict(self.children)
        for element, child in other.children.items():
            mine = children.get(element)
            children[element] = child if mine is None else mine.union(child)
        return FieldSet(self.members | other.members, children)

    def intersection(self, other: "FieldSet") -> "FieldSet":
        """Return what is in both sets."""
        children = {
            element: common
            for element, child in self.children.items()
            if (theirs := other.children.get(element)) is not None
            and (common := child.intersection(theirs))
        }
        return FieldSet(self.members & other.members, children)

    def difference(self, other: "FieldSet") -> "FieldSet":
        """Return what is in this set alone; a parent that goes leaves its children."""
        if not other:
            return self
        children = {
            element: rest
            for element, child in self.children.items()
            if (rest := child.difference(other.children.get(element, EMPTY)))
        }
        return FieldSet(self.members - other.members, children)

    def recursive_difference(self, other: "FieldSet") -> "FieldSet":
        """Return this set without the other's fields and everything below them."""
        if not other:
            return self
        children = {
            element: rest
            for element, child in self.children.items()
            if element not in other.members
            and (rest := child.recursive_difference(other.children.get(element, EMPTY)))
        }
        return FieldSet(self.members - other.members, children)


class FieldSetBuilder:
    """Collects paths into a set."""

    __slots__ = ("_children", "_members")

    def __init__(self) -> None:
        self._members: set[Element] = set()
        self._children: dict[Element, FieldSetBuilder] = {}

    def insert(self, path: FieldPath) -> None:
        """Add a path; the empty one is no field."""
        if not path:
            return
        node = self
        for element in path[:-1]:
            node = node._children.setdefault(element, FieldSetBuilder())
        node._members.add(path[-1])  # noqa: SLF001

    def build(self) -> FieldSet:
        """Return the set."""
        return FieldSet(
            frozenset(self._members),
            {element: child.build() for element, child in self._children.items()},
        )


@lru_cache(maxsize=2048)
def _read(document: bytes) -> FieldSet:
    # Thousands of objects are written in the same few shapes.
    return FieldSet._from_document(orjson.loads(document))  # noqa: SLF001


EMPTY: Final = FieldSet()
