"""Pruning: what a structural schema does not know is dropped, and so are nulls that mean nothing.

Changes the object it is given. Never drops what lies below `x-kubernetes-preserve-unknown-fields`,
nor the type and metadata of a resource.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node

Known: TypeAlias = Callable[[Json], bool]

_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_UNKNOWN: Final = object()
_SCALAR: Final = object()
_ANYTHING: Final = object()


def compile_known(node: Node) -> Known:
    """Return a test for "there is nothing to prune here", fast because almost nothing ever is."""
    found = _compile(node)
    if callable(found):
        return found
    return _is_scalar if found is _SCALAR else lambda _: True


def _compile(node: Node) -> Known | object:
    """Return a test, or a mark for what needs no call: scalars, and what is kept whole."""
    # Marks instead of functions for leaves: most fields are leaves, and calls are what costs.
    fields: dict[str, Known | object] = {
        name: _compile(child) for name, child in node.properties.items()
    }
    if node.embedded:
        fields.update(dict.fromkeys(_META_FIELDS, _ANYTHING))
    rest: Known | object = _UNKNOWN
    if node.additional is not None:
        rest = _compile(node.additional)
    elif node.any_property or node.preserve:
        rest = _ANYTHING
    item = compile_known(node.items) if node.items is not None else None
    if not fields and item is None:
        if rest is _UNKNOWN:
            return _SCALAR
        if rest is _ANYTHING and node.preserve:
            return _ANYTHING
    lookup = fields.get

    def known(value: Json) -> bool:
        if type(value) is dict:
            for key, entry in value.items():
                check = lookup(key, rest)
                if check is _SCALAR:
                    if entry is None or type(entry) is dict or type(entry) is list:
                        return False
                elif entry is None or not (
                    check is _ANYTHING or (callable(check) and check(entry))
                ):
                    return False
            return True
        if type(value) is list:
            return None not in value and all(map(item, value)) if item else not value
        return True

    return known


def _is_scalar(value: Json) -> bool:
    return type(value) is not dict and type(value) is not list


def prune(value: Json, node: Node) -> list[str]:
    """Drop unknown fields and meaningless nulls; return the paths of the unknown ones, sorted."""
    unknown: list[str] = []
    _prune(value, node, "", unknown)
    _drop_nulls(value, node)
    return sorted(unknown)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _prune(value: Json, node: Node | None, path: str, unknown: list[str]) -> None:
    if isinstance(value, list):
        for i, item in enumerate(value):
            _prune(item, node.items if node is not None else None, f"{path}[{i}]", unknown)
        return
    if not isinstance(value, dict):
        return
    if node is not None and node.preserve:
        _prune_below(value, node, path, unknown)
        return
    for key in list(value):
        if node is not None and node.embedded and key in _META_FIELDS:
            continue
        child = node.field(key) if node is not None else None
        if child is not None or (node is not None and node.any_property):
            _prune(value[key], child, _below(path, key), unknown)
        else:
            if path or key not in _META_FIELDS:
                unknown.append(_below(path, key))
            del value[key]


def _prune_below(value: Json, node: Node, path: str, unknown: list[str]) -> None:
    """Prune only what the schema of a preserving node describes further."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            if node.items is not None:
                _prune_below(item, node.items, f"{path}[{i}]", unknown)
    elif isinstance(value, dict):
        for key, item in value.items():
            if node.embedded and key in _META_FIELDS:
                continue
            child = node.field(key)
            if child is not None:
                _prune(item, child, _below(path, key), unknown)


def _drop_nulls(value: Json, node: Node | None) -> None:
    if node is None:
        return
    if isinstance(value, dict):
        for key in list(value):
            child = node.field(key)
            if child is None:
                continue
            if value[key] is None and not child.nullable and not child.has_default:
                del value[key]
            else:
                _drop_nulls(value[key], child)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item, node.items)
