"""What server-side apply must know of a type: which maps and lists merge, and by which keys.

Custom resources have a structural schema that says it. Builtin kinds are served without one: a list
is known by its own field and the nearest field above it, as `lists.yaml` has them.
"""

from functools import lru_cache
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import MISSING, Node
from hyperjob_sandbox.apiserver.shipped import shipped

BUILTIN_LISTS: Final[dict[str, Object]] = shipped(__package__, "lists.yaml")["lists"]
"""How lists of built-in kinds merge, by `parent.field`."""
_FREE_MAPS: Final = frozenset(shipped(__package__, "lists.yaml")["maps"])


class TypeInfo:
    """The type of one value and, through it, of everything below.

    The base is a type that follows the value: objects merge, lists do not.
    """

    keys: tuple[str, ...] | None = None
    """The keys of a list map, none for a set; None where lists are owned whole."""
    atomic_map: bool = False
    """Whether an object is owned whole."""

    @staticmethod
    def from_node(root: Node) -> "TypeInfo":
        """Return the type of a custom resource by the root of its schema."""
        return _Schema(root, preserve=False, root=True)

    @staticmethod
    def deduced() -> "TypeInfo":
        """Return the type of a builtin kind, told from the names of its fields."""
        return _builtin("-", "")

    def declared(self, name: str) -> bool:
        """Tell whether an object names this field, other than as a key of a map."""
        del name
        return False

    def field(self, name: str) -> "TypeInfo | None":
        """Return the type of a field; None where the type does not know it."""
        del name
        return self

    def item(self) -> "TypeInfo":
        """Return the type of a list's items."""
        return self

    def key_default(self, name: str) -> Json:
        """Return the default of a list map's key in its items, or MISSING."""
        del name
        return MISSING


DEDUCED: Final = TypeInfo()


class _Builtin(TypeInfo):
    """A builtin kind's value, known by its field and the one above it."""

    def __init__(self, parent: str, name: str) -> None:
        self._name = name
        how = BUILTIN_LISTS.get(f"{parent}.{name}")
        self.keys = None if how is None else tuple(how.get("keys", ()))

    def declared(self, name: str) -> bool:
        return self._name not in _FREE_MAPS

    def field(self, name: str) -> TypeInfo:
        return DEDUCED if self._name in _FREE_MAPS else _builtin(self._name, name)

    def key_default(self, name: str) -> Json:
        return "TCP" if name == "protocol" else MISSING


@lru_cache(maxsize=1024)
def _builtin(parent: str, name: str) -> _Builtin:
    return _Builtin(parent, name)


class _Schema(TypeInfo):
    """A custom resource's value, by its structural schema."""

    def __init__(self, node: Node, *, preserve: bool, root: bool = False) -> None:
        preserve = preserve or node.preserve
        self._node = node
        if node.list_type != "atomic":
            self.keys = node.list_map_keys
        self.atomic_map = node.raw.get("x-kubernetes-map-type") == "atomic"
        self._fields: dict[str, TypeInfo] = {
            name: _Schema(child, preserve=preserve) for name, child in node.properties.items()
        }
        if root:
            self._fields["metadata"] = _builtin("", "metadata")
        self._rest: TypeInfo | None = None
        if node.additional is not None:
            self._rest = _Schema(node.additional, preserve=preserve)
        elif preserve or not self._fields:
            self._rest = DEDUCED
        self._item = DEDUCED if node.items is None else _Schema(node.items, preserve=preserve)

    def declared(self, name: str) -> bool:
        return name in self._fields

    def field(self, name: str) -> TypeInfo | None:
        return self._fields.get(name, self._rest)

    def item(self) -> TypeInfo:
        return self._item

    def key_default(self, name: str) -> Json:
        child = self._node.items.properties.get(name) if self._node.items is not None else None
        return child.default if child is not None else MISSING
