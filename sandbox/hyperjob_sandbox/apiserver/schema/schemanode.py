"""One node of a structural schema, read once from a CRD's `openAPIV3Schema`.

Every pass over an object (pruning, defaulting, rules, field ownership) walks these nodes. A node is
never changed after it was built and judges nothing: `crdvalidation` says whether a schema is sound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json

ListType = Literal["atomic", "set", "map"]
MISSING: Final = object()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A schema with its children; `raw` keeps the value validations as they were written."""

    raw: Object
    properties: Mapping[str, "Node"]
    additional: "Node | None"
    items: "Node | None"
    default: Json
    """What takes the place of a value that is not there, or MISSING; null is no default."""
    fills: bool
    """Whether there is a default here or below."""

    @classmethod
    def build(cls, schema: Object) -> "Node":
        """Read a schema."""
        additional, items = schema.get("additionalProperties"), schema.get("items")
        properties = {
            name: cls.build(child) for name, child in (schema.get("properties") or {}).items()
        }
        below = cls.build(additional) if isinstance(additional, dict) else None
        item = cls.build(items) if isinstance(items, dict) else None
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
        )

    @property
    def type(self) -> str:
        """Give the type of a value; empty where any will do."""
        return str(self.raw.get("type", ""))

    @property
    def preserve(self) -> bool:
        """Tell whether unknown fields stay."""
        return bool(
            self.raw.get("x-kubernetes-preserve-unknown-fields")
            or self.raw.get("additionalProperties") is True
        )

    @property
    def list_type(self) -> ListType:
        """Tell how lists merge."""
        return self.raw.get("x-kubernetes-list-type") or "atomic"

    @property
    def list_map_keys(self) -> tuple[str, ...]:
        """Give the fields that tell the items of a list map apart."""
        return tuple(self.raw.get("x-kubernetes-list-map-keys") or ())

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
                elif not self.preserve:
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


_NOTHING: Final = Node.build({})
