"""`metadata.managedFields`: who set which fields, how and when.

Pure. An entry that cannot be read makes the whole list worthless: it counts as empty.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from hyperjob.api.field import go_quote
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership import fields
from hyperjob_sandbox.apiserver.ownership.fields import Fields


class Manager(NamedTuple):
    """Who manages fields; an applier, without a version, is the same at every version."""

    name: str
    operation: Literal["Apply", "Update"]
    api_version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        text = go_quote(self.name)
        if self.subresource:
            text += f" with subresource {go_quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager manages, in which version of the API, since when."""

    fields: Fields = fields.EMPTY
    version: str = ""
    time: str | None = None


Managers: TypeAlias = dict[Manager, Owned]


def decode(entries: Json) -> Managers | None:
    """Read managedFields; None where an entry makes no sense."""
    managers: Managers = {}
    for entry in entries or ():
        if not _readable(entry):
            return None
        operation, version = entry["operation"], entry["apiVersion"]
        manager = Manager(
            entry.get("manager") or "",
            operation,
            "" if operation == "Apply" else version,
            entry.get("subresource") or "",
        )
        try:
            owned = fields.read(entry.get("fieldsV1") or {})
        except fields.FieldsError:
            return None
        managers[manager] = Owned(owned, version, entry.get("time"))
    return managers


def encode(managers: Managers) -> list[Object]:
    """Write managedFields: appliers first, then by time and name."""

    def order(item: tuple[Manager, Owned]) -> tuple[str, ...]:
        manager, owned = item
        return (
            manager.operation,
            owned.time or "",
            manager.name,
            owned.version,
            manager.subresource,
        )

    return [_entry(*item) for item in sorted(managers.items(), key=order)]


def _entry(manager: Manager, owned: Owned) -> Object:
    return {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": owned.version,
        **({"time": owned.time} if owned.time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields.write(owned.fields),
        **({"subresource": manager.subresource} if manager.subresource else {}),
    }


def _readable(entry: Json) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
        and isinstance(entry.get("fieldsV1") or {}, dict)
    )
