"""Reduced forms of objects: tables, which `kubectl get` prints, and metadata alone.

Cells are JSON values; a date is printed as an age, as the real server does.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport.encode import ordered_meta, to_version


def table(
    found: Sequence[Stored],
    info: ResourceInfo,
    *,
    list_meta: Object,
    include: str = "",
    headers: bool = True,
) -> Object:
    """Build a table; a row carries the object's metadata, or all of it with `include="Object"`."""
    now = datetime.now(UTC)
    rows: list[Object] = []
    for stored in found:
        obj = to_version(stored.obj, info)
        shown = partial_metadata(obj)
        if include == "Object":
            shown = {**obj, "metadata": ordered_meta(obj["metadata"])}
        cells = [column.cell(stored.obj, now) for column in info.columns]
        rows.append({"cells": cells, "object": shown})
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in info.columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": definitions if headers else None,
        "rows": rows,
    }


def partial_metadata(obj: Object) -> Object:
    """Reduce an object to its metadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": ordered_meta(obj["metadata"]),
    }
