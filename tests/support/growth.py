"""HyperJobs with a large list, map or string in each field of the schema that can grow."""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.schema import hyperjob_schema

Steps = tuple[str | int, ...]


class Growing(NamedTuple):
    """A field whose size has no fixed value."""

    place: Steps
    schema: Object
    kind: str
    """`bare`, `full` or `same` items of a list or map; the character that a text is made of."""

    @property
    def name(self) -> str:
        """Return the field's path and how it grows."""
        where = ".".join("[]" if isinstance(step, int) else step for step in self.place)
        return f"{where.replace('.[]', '[]')} {self.kind}"

    @property
    def most(self) -> int:
        """Return the maximum number of items, or characters, in the schema."""
        bounds = ("maxItems", "maxProperties", "maxLength")
        return min(self.schema.get(bound, sys.maxsize) for bound in bounds)

    def hyperjob(self, count: int) -> Object:
        """Return a HyperJob with `count` items, or characters, in the field."""
        root: Object = {
            "apiVersion": "training.volcano.sh/v1alpha1",
            "kind": "HyperJob",
            "metadata": {"name": "grows", "namespace": "default"},
            "spec": _least(hyperjob_schema()["properties"]["spec"], 0),
        }
        holder: Any = root
        node = hyperjob_schema()
        for step, following in zip(self.place, (*self.place[1:], ""), strict=True):
            node = _below(node, step)
            value = self._grown(count) if following == "" else _place_for(node, following)
            if isinstance(step, int):
                holder[:] = holder[:1] or [value]
                holder[0] = value if following == "" else _merged(holder[0], value)
                holder = holder[0]
            else:
                holder[step] = value if following == "" else _merged(holder.get(step), value)
                holder = holder[step]
        return root

    def _grown(self, count: int) -> Any:
        if self.schema["type"] == "string":
            return (self.kind * count)[:count]
        if self.schema["type"] == "array":
            return [self._item(self.schema["items"], i) for i in range(count)]
        return {f"k{i}": self._item(self.schema["additionalProperties"], i) for i in range(count)}

    def _item(self, schema: Object, number: int) -> Any:
        if self.kind == "bare":
            return _least(schema, 0)
        return full(schema, number if self.kind == "full" else 0)


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**new, **old}
    return old or new


def _below(node: Object, step: str | int) -> Object:
    if isinstance(step, int):
        found: Object = node["items"]
    elif step in node.get("properties", {}):
        found = node["properties"][step]
    else:
        found = node["additionalProperties"]
    return found


def _place_for(node: Object, following: str | int) -> Any:
    if isinstance(following, int):
        return [_least(node["items"], 0)]
    return _least(node, 0)


def _least(schema: Object, number: int) -> Any:
    """Return the smallest valid value, with required fields only."""
    if schema.get("type") == "object":
        needed = schema.get("required") or ()
        return {key: _least(schema["properties"][key], number) for key in needed}
    if schema.get("type") == "array":
        return [_least(schema["items"], number)] * schema.get("minItems", 0)
    return _scalar(schema, number)


def full(schema: Object, number: int, depth: int = 0) -> Any:
    """Return a value with every field; names and numbers depend on `number`."""
    if schema.get("type") == "object" and "properties" in schema:
        return {
            key: full(node, number, depth + 1)
            for key, node in schema["properties"].items()
            if depth < 3 or node.get("type") not in {"object", "array"}
        }
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return {f"k{number}": full(values, number, depth + 1)} if isinstance(values, dict) else {}
    if schema.get("type") == "array":
        return [full(schema["items"], number, depth + 1)]
    return _scalar(schema, number)


def _scalar(schema: Object, number: int) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "integer":
            return max(schema.get("minimum", 1), 1)
        case "boolean":
            return True
        case "number":
            return 1.5
        case "string":
            return "1h" if schema.get("format") == "duration" else f"n{number}"
        case _:
            return 1


def growing(*, texts: str = "0-") -> Iterator[Growing]:
    """Yield every field of a HyperJob's spec that has no fixed size."""
    spec = hyperjob_schema()["properties"]["spec"]
    yield from _growing(spec, ("spec",), texts)


def _growing(node: Object, place: Steps, texts: str) -> Iterator[Growing]:
    match node.get("type"):
        case "object" if "properties" in node:
            for key, child in node["properties"].items():
                yield from _growing(child, (*place, key), texts)
        case "object" if isinstance(node.get("additionalProperties"), dict):
            yield from (Growing(place, node, kind) for kind in ("full", "same"))
            yield from _growing(node["additionalProperties"], (*place, "key"), texts)
        case "array":
            yield from (Growing(place, node, kind) for kind in ("bare", "full", "same"))
            yield from _growing(node["items"], (*place, 0), texts)
        case "string" if "enum" not in node:
            yield from (Growing(place, node, kind) for kind in texts)
