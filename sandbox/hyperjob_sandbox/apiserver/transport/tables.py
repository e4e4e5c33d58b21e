"""Reduced forms of objects: tables, which `kubectl get` prints, and metadata alone."""

from collections.abc import Sequence
from datetime import UTC, datetime

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport.call import Call
from hyperjob_sandbox.apiserver.transport.encode import ordered_meta, to_version

_SHOWN = ("name", "type", "format", "description", "priority")


def table(
    found: Sequence[Stored], call: Call, list_meta: Object, *, headers: bool = True
) -> Object:
    """Build a table; a row carries the object's metadata, or all of it where a client asks."""
    info, now, rows = call.resource, datetime.now(UTC), []
    for stored in found:
        obj = to_version(stored.obj, info)
        shown = partial_metadata(obj)
        if call.info.query.get("includeObject") == "Object":
            shown = {**obj, "metadata": ordered_meta(obj["metadata"])}
        cells = [column.cell(stored.obj, now) for column in info.columns]
        rows.append({"cells": cells, "object": shown})
    definitions = [{key: getattr(column, key) for key in _SHOWN} for column in info.columns]
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
