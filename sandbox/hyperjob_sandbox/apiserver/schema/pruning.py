"""Pruning: what a structural schema does not know is dropped, and so are nulls that mean nothing.

Changes the object it is given. Never drops what lies below `x-kubernetes-preserve-unknown-fields`,
nor the type and metadata of a resource.
"""

from typing import Final

from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node

_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


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
