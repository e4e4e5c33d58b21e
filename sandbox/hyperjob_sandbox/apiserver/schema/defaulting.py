"""Defaulting: what a structural schema gives to fields that are not there.

Changes the object it is given, only adds, and gives every object its own copy of a default.
"""

from collections.abc import Callable
from typing import TypeAlias

from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node

Default: TypeAlias = Callable[[Json], None]


def compile_default(node: Node) -> Default | None:
    """Return the function that fills in a value's defaults; None where no schema below has any."""
    given = tuple(
        (name, child.default, child.nullable)
        for name, child in node.properties.items()
        if child.has_default
    )
    nested = {
        name: fill
        for name, child in node.properties.items()
        if (fill := compile_default(child)) is not None
    }
    fill_rest = compile_default(node.additional) if node.additional is not None else None
    fill_item = compile_default(node.items) if node.items is not None else None
    rest_default = _null_replacement(node.additional)
    item_default = _null_replacement(node.items)
    for_object = bool(given or nested or fill_rest or rest_default)
    for_list = bool(fill_item or item_default)
    if not for_object and not for_list:
        return None

    def fill_object(value: Json) -> None:
        for name, default, nullable in given:
            if name not in value or (value[name] is None and not nullable):
                value[name] = jsonvalue.copy(default)
        for name, fill in nested.items():
            if name in value:
                fill(value[name])
        if fill_rest is not None or rest_default:
            for key in value:
                if key not in node.properties:
                    if value[key] is None and rest_default:
                        value[key] = jsonvalue.copy(rest_default[0])
                    if fill_rest is not None:
                        fill_rest(value[key])

    def fill_list(value: Json) -> None:
        for i, item in enumerate(value):
            if item is None and item_default:
                value[i] = jsonvalue.copy(item_default[0])
            if fill_item is not None:
                fill_item(value[i])

    def fill_value(value: Json) -> None:
        if for_object and type(value) is dict:
            fill_object(value)
        elif for_list and type(value) is list:
            fill_list(value)

    return fill_value


def _null_replacement(node: Node | None) -> tuple[Json, ...]:
    """Return the default that takes the place of a null item or map value, if there is one."""
    return (node.default,) if node is not None and node.has_default and not node.nullable else ()
