"""Cells of custom printer columns, read by JSONPath."""

from datetime import datetime

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.printing.columns import Column
from hyperjob_sandbox.apiserver.printing.jsonpath import JSONPath


def custom_column(declared: Object) -> Column:
    """Build a column from an entry of additionalPrinterColumns."""
    path = declared["jsonPath"]
    compiled = JSONPath.compile(path)
    kind = declared["type"]

    def cell(obj: Object, now: datetime) -> Json:
        return compiled.cell(obj, kind, now=now)

    description = declared.get("description") or (
        f"Custom resource definition column (in JSONPath format): {path}"
    )
    return Column(
        name=declared["name"],
        type=kind,
        cell=cell,
        format=declared.get("format", ""),
        description=description,
        priority=declared.get("priority", 0),
    )
