"""Tables: what `kubectl get` prints, built from printer columns.

Cells are JSON values; a date is printed as an age, as the real server does.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.printing.columns import Column
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.transport.encode import ordered_meta, partial_metadata


def table(
    objects: Iterable[Object],
    info: ResourceInfo,
    *,
    list_meta: Object,
    include: str = "Metadata",
    version: str = "v1",
    headers: bool = True,
) -> Object:
    """Build a table; `include` is None, Metadata or Object, as in the includeObject parameter."""
    columns = info.columns
    now = datetime.now(UTC)
    result: Object = {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": list_meta,
        "columnDefinitions": [_definition(column) for column in columns] if headers else None,
        "rows": [_row(obj, columns, include, now) for obj in objects],
    }
    return result


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(obj: Object, columns: Sequence[Column], include: str, now: datetime) -> Object:
    row: Object = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = {**obj, "metadata": ordered_meta(obj["metadata"])}
    elif include != "None":
        row["object"] = partial_metadata(obj)
    else:
        row["object"] = None
    return row


def list_meta(revision: int, *, token: str = "", remaining: int | None = None) -> dict[str, Json]:
    """Build the metadata of a list in the order of its Go struct."""
    meta: dict[str, Json] = {"resourceVersion": str(revision)}
    if token:
        meta["continue"] = token
    if remaining is not None:
        meta["remainingItemCount"] = remaining
    return meta
