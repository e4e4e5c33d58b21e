"""One node of a structural schema, read once from a CRD's `openAPIV3Schema`.

Every pass over an object (pruning, defaulting, rules, field ownership) walks these nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.typeinfo import DEDUCED, MISSING, TypeInfo


@dataclass(frozen=True, slots=True, eq=False)
class Node(TypeInfo):
    """A schema with its children; `raw` keeps the value validations as they were written."""

    raw: Object
    properties: Mapping[str, "Node"]
    additional: "Node | None"
    items: "Node | None"
    default: Json
    """What takes the place of a value that is not there, or MISSING; null is no default."""
    fills: bool
    """Whether there is a default here or below."""
    free: bool
    """Whether unknown fields stay, here or above: server-side apply takes them as they come."""

    @classmethod
    def build(cls, schema: Object, *, free: bool = False) -> "Node":
        """Read a schema, `free` where it lies below a schema that keeps unknown fields."""
        additional, items = schema.get("additionalProperties"), schema.get("items")
        free = free or _preserves(schema)
        properties = {
            name: cls.build(child, free=free)
            for name, child in (schema.get("properties") or {}).items()
        }
        below = cls.build(additional, free=free) if isinstance(additional, dict) else None
        item = cls.build(items, free=free) if isinstance(items, dict) else None
        default = schema.get("default")
        given = default is not None
        return cls(
            raw=schema,
            properties=properties,
            additional=below,
            items=item,
            default=default if given else MISSING,
            fills=given
            or any(node.fills for node in (*properties.values(), below, item) if node is not None),
            free=free,
        )

    @property
    def type(self) -> str:
        """Give the type of a value; empty where any will do."""
        return str(self.raw.get("type", ""))

    @property
    def keys(self) -> tuple[str, ...] | None:
        """Give the keys of a list map, none for a set; None where lists are owned whole."""
        if self.raw.get("x-kubernetes-list-type", "atomic") == "atomic":
            return None
        return tuple(self.raw.get("x-kubernetes-list-map-keys") or ())

    @property
    def atomic_map(self) -> bool:
        """Tell whether an object is owned whole."""
        return self.raw.get("x-kubernetes-map-type") == "atomic"

    def declared(self, name: str) -> bool:
        """Tell whether an object names this field, other than as a key of a map."""
        return name in self.properties

    def below(self, name: str) -> TypeInfo | None:
        """Return the type of a field; None where the schema does not know it."""
        follows = self.free or not self.properties
        return self.field(name) or (DEDUCED if follows else None)

    def item(self) -> TypeInfo:
        """Return the type of a list's items."""
        return self.items or DEDUCED

    def key_default(self, name: str) -> Json:
        """Return the default of a list map's key in its items, or MISSING."""
        child = self.items.field(name) if self.items is not None else None
        return child.default if child is not None else MISSING

    def field(self, name: str) -> "Node | None":
        """Return the schema of a field of an object, or of a key of a map."""
        return self.properties.get(name, self.additional)

    def prune(self, value: Json, path: str = "") -> list[str]:
        """Drop unknown fields and meaningless nulls in place; return the paths of the unknown."""
        unknown: list[str] = []
        if isinstance(value, list):
            for i, item in enumerate(value):
                unknown += (self.items or _NOTHING).prune(item, f"{path}[{i}]")
        elif isinstance(value, dict):
            for key in list(value):
                child, at = self.field(key), f"{path}.{key}" if path else key
                if child is not None:
                    if value[key] is None and child.default is MISSING and not child.nullable:
                        del value[key]
                    else:
                        unknown += child.prune(value[key], at)
                elif not _preserves(self.raw):
                    unknown.append(at)
                    del value[key]
        return unknown

    @property
    def nullable(self) -> bool:
        """Tell whether null is a value."""
        return bool(self.raw.get("nullable"))

    def fill(self, value: Json) -> None:
        """Fill in defaults in place; every object has its own copy of a default."""
        if isinstance(value, dict):
            for name, child in self.properties.items():
                if child.default is MISSING:
                    continue
                if name not in value or (value[name] is None and not child.nullable):
                    value[name] = jsonvalue.copy(child.default)
            for name, item in value.items():
                below = self.field(name)
                if below is not None and below.fills:
                    below.fill(item)
        elif isinstance(value, list) and self.items is not None and self.items.fills:
            for item in value:
                self.items.fill(item)


def _preserves(schema: Object) -> bool:
    """Tell whether unknown fields of an object stay."""
    kept: bool = schema.get("x-kubernetes-preserve-unknown-fields", False)
    return kept or schema.get("additionalProperties") is True


_NOTHING: Final = Node.build({})
