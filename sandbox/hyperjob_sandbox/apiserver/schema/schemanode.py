"""One node of a structural schema, read once from a CRD's `openAPIV3Schema`.

Every pass over an object (pruning, defaulting, rules, field ownership) walks these nodes. A node is
never changed after it was built and judges nothing: `crdvalidation` says whether a schema is sound.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json

ListType = Literal["atomic", "set", "map"]
MISSING: Final = object()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A schema with its children; `raw` keeps the value validations as they were written."""

    raw: Object
    type: str
    nullable: bool
    default: Json
    properties: Mapping[str, "Node"]
    additional: "Node | None"
    any_property: bool
    items: "Node | None"
    preserve: bool
    embedded: bool
    int_or_string: bool
    list_type: ListType
    list_map_keys: tuple[str, ...]
    atomic_map: bool
    rules: tuple[Object, ...]

    @classmethod
    def build(cls, schema: Object, *, root: bool = False) -> "Node":
        """Read a schema; the root of a resource is an embedded resource whatever it says."""
        additional = schema.get("additionalProperties")
        items = schema.get("items")
        return cls(
            raw=schema,
            type=schema.get("type", ""),
            nullable=bool(schema.get("nullable")),
            default=schema.get("default", MISSING),
            properties={
                name: cls.build(child) for name, child in (schema.get("properties") or {}).items()
            },
            additional=cls.build(additional) if isinstance(additional, dict) else None,
            any_property=additional is True,
            items=cls.build(items) if isinstance(items, dict) else None,
            preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
            embedded=root or bool(schema.get("x-kubernetes-embedded-resource")),
            int_or_string=bool(schema.get("x-kubernetes-int-or-string")),
            list_type=schema.get("x-kubernetes-list-type") or "atomic",
            list_map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
            atomic_map=schema.get("x-kubernetes-map-type") == "atomic",
            rules=tuple(schema.get("x-kubernetes-validations") or ()),
        )

    @property
    def types(self) -> tuple[str, ...]:
        """Return the JSON types that a value may have; none at all means any."""
        if self.int_or_string:
            return ("integer", "string")
        return (self.type,) if self.type else ()

    @property
    def has_default(self) -> bool:
        """Tell whether the schema gives a default value; null is none."""
        return self.default is not MISSING and self.default is not None

    def field(self, name: str) -> "Node | None":
        """Return the schema of a field of an object, or of a key of a map."""
        return self.properties.get(name, self.additional)

    def children(self) -> Iterator["Node"]:
        """Walk the direct children."""
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items
