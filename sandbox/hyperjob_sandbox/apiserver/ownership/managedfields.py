"""`metadata.managedFields`: who set which fields, how and when."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from hyperjob_core.api.field import go_quote
from hyperjob_core.api.meta import Object
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


def decode(entries: Json) -> Managers:
    """Read managedFields; empty where an entry cannot be read."""
    try:
        return dict(map(_read, entries or ()))
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def _read(entry: Object) -> tuple[Manager, Owned]:
    operation, version = entry["operation"], entry["apiVersion"]
    manager = Manager(
        entry.get("manager") or "",
        operation,
        "" if operation == "Apply" else version,
        entry.get("subresource") or "",
    )
    return manager, Owned(fields.read(entry.get("fieldsV1") or {}), version, entry.get("time"))


def encode(managers: Managers) -> list[Object]:
    """Write managedFields: appliers first, then by time and name."""

    def order(item: tuple[Manager, Owned]) -> tuple[str, ...]:
        who, owned = item
        return who.operation, owned.time or "", who.name, owned.version, who.subresource

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
