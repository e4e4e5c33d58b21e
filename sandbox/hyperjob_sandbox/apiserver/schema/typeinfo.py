"""What server-side apply must know of a type: which maps and lists merge, and by which keys.

From a structural schema for custom resources; from the usual shape of builtin kinds for the others.
Never reads an object.
"""

from functools import lru_cache
from typing import Final, Literal

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.builtinlists import BUILTIN_LISTS
from hyperjob_sandbox.apiserver.schema.schemanode import MISSING, ListType, Node

Scalar = Literal["numeric", "string", "boolean", "untyped"]


_ANY_SHAPE: Final = frozenset({"map", "list", "scalar"})
_FREE_MAPS: Final = frozenset(
    {
        "annotations",
        "binaryData",
        "capacity",
        "allocatable",
        "data",
        "extra",
        "hard",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "parameters",
        "requests",
        "stringData",
        "used",
    }
)


class TypeInfo:
    """The type of one value and, through it, of everything below.

    The base is a type that follows the value: objects merge, lists do not.
    """

    list_type: ListType = "atomic"
    keys: tuple[str, ...] = ()
    """The keys of a list map; a set has none."""
    atomic_map: bool = False
    """Whether an object is owned whole."""
    shapes: frozenset[str] = _ANY_SHAPE
    """What a value may be: `map`, `list`, `scalar`."""
    scalar: Scalar = "untyped"

    @staticmethod
    def from_schema(schema: Object) -> "TypeInfo":
        """Return the type of a custom resource by its `openAPIV3Schema`."""
        return _Schema(Node.build(schema, root=True), preserve=False, embedded=True)

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


class _Builtin(TypeInfo):
    """A builtin kind's value, known by its field and the one above it."""

    def __init__(self, parent: str, name: str) -> None:
        self._name = name
        how = BUILTIN_LISTS.get((parent, name))
        if how is not None:
            self.list_type = "map" if how.map_keys else "set"
            self.keys = how.map_keys
        self._free = name in _FREE_MAPS

    def declared(self, name: str) -> bool:
        """Tell that fields are declared, but for the keys of maps."""
        del name
        return not self._free

    def field(self, name: str) -> TypeInfo:
        """Return the type of a field."""
        return _DEDUCED if self._free else _builtin(self._name, name)

    def item(self) -> TypeInfo:
        """Return the type of a list's items, whose fields have the list above them."""
        return self

    def key_default(self, name: str) -> Json:
        """Return the only default that a builtin list's key has."""
        return "TCP" if name == "protocol" else MISSING


@lru_cache(maxsize=1024)
def _builtin(parent: str, name: str) -> _Builtin:
    return _Builtin(parent, name)


_DEDUCED: Final = TypeInfo()


class _Schema(TypeInfo):
    """A custom resource's value, by its structural schema."""

    def __init__(self, node: Node, *, preserve: bool, embedded: bool) -> None:
        preserve = preserve or node.preserve
        self._node = node
        self.list_type: ListType = node.list_type
        self.keys: tuple[str, ...] = node.list_map_keys
        self._fields: dict[str, TypeInfo] = {
            name: _Schema(child, preserve=preserve, embedded=child.embedded)
            for name, child in node.properties.items()
        }
        if embedded:
            text = Node.build({"type": "string"})
            for name in ("apiVersion", "kind"):
                self._fields[name] = _Schema(text, preserve=False, embedded=False)
            self._fields["metadata"] = _builtin("", "metadata")
        self._rest: TypeInfo | None = None
        if node.additional is not None:
            rest = node.additional
            self._rest = _Schema(rest, preserve=preserve, embedded=rest.embedded)
        elif preserve or node.any_property or not self._fields:
            self._rest = _DEDUCED
        self._item: TypeInfo = _DEDUCED
        if node.items is not None:
            self._item = _Schema(node.items, preserve=preserve, embedded=node.items.embedded)
        self.shapes = _SHAPES.get(node.type, _ANY_SHAPE)
        if node.int_or_string:
            self.shapes = frozenset({"scalar"})
        self.atomic_map = node.atomic_map
        self.scalar = _scalar(node)

    def declared(self, name: str) -> bool:
        """Tell whether the schema has a property of this name."""
        return name in self._fields

    def field(self, name: str) -> TypeInfo | None:
        """Return the type of a field."""
        return self._fields.get(name, self._rest)

    def item(self) -> TypeInfo:
        """Return the type of a list's items."""
        return self._item

    def key_default(self, name: str) -> Json:
        """Return the default that the items' schema gives a key."""
        child = self._node.items.properties.get(name) if self._node.items is not None else None
        return child.default if child is not None and child.has_default else MISSING


def _scalar(node: Node) -> Scalar:
    """Name the kind of a scalar; a string with a format may be anything."""
    match node.type:
        case "integer" | "number":
            return "numeric"
        case "boolean":
            return "boolean"
        case "string" if (node.raw.get("format") or "byte") == "byte":
            return "string"
    return "untyped"


_SHAPES: Final = {
    "object": frozenset({"map"}),
    "array": frozenset({"list"}),
    "string": frozenset({"scalar"}),
    "integer": frozenset({"scalar"}),
    "number": frozenset({"scalar"}),
    "boolean": frozenset({"scalar"}),
}
