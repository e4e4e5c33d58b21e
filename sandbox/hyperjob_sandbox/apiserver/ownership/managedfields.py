"""`metadata.managedFields`: who set which fields, how and when.

Pure. An entry that cannot be read makes the whole list worthless: it counts as empty.
"""

from dataclasses import dataclass, field
from typing import Literal

from hyperjob.api.field import go_quote
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership.fields import FieldsError, FieldSet

Operation = Literal["Apply", "Update"]


@dataclass(frozen=True, slots=True)
class Manager:
    """Who manages fields; an applier is the same at every version of the API."""

    name: str
    operation: Operation
    api_version: str = ""
    subresource: str = ""

    @classmethod
    def applier(cls, name: str, subresource: str = "") -> "Manager":
        """Return the manager of a server-side apply."""
        return cls(name, "Apply", "", subresource)

    @classmethod
    def updater(cls, name: str, api_version: str, subresource: str = "") -> "Manager":
        """Return the manager of any other write."""
        return cls(name or "unknown", "Update", api_version, subresource)

    def __str__(self) -> str:
        text = go_quote(self.name)
        if self.subresource:
            text += f" with subresource {go_quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@dataclass(slots=True)
class Managed:
    """The managers of one object with their fields, API versions and times; changed in place."""

    fields: dict[Manager, FieldSet] = field(default_factory=dict)
    versions: dict[Manager, str] = field(default_factory=dict)
    times: dict[Manager, str | None] = field(default_factory=dict)
    written: dict[Manager, tuple[FieldSet, Object]] = field(default_factory=dict)
    """Field sets as they were read, so that unchanged ones are not written anew."""

    @classmethod
    def decode(cls, entries: Json) -> "Managed | None":
        """Read managedFields; None where an entry makes no sense."""
        managed = cls()
        for entry in entries or ():
            if not _readable(entry):
                return None
            operation: Operation = entry["operation"]
            version = entry["apiVersion"]
            manager = Manager(
                entry.get("manager") or "",
                operation,
                "" if operation == "Apply" else version,
                entry.get("subresource") or "",
            )
            try:
                managed.fields[manager] = FieldSet.from_fields_v1(entry.get("fieldsV1") or {})
            except FieldsError:
                return None
            managed.versions[manager] = version
            managed.times[manager] = entry.get("time")
            managed.written[manager] = (managed.fields[manager], entry.get("fieldsV1") or {})
        return managed

    def encode(self) -> list[Object]:
        """Write managedFields: appliers first, then by time and name."""
        entries = [self._entry(manager) for manager in self.fields]
        return sorted(
            entries,
            key=lambda entry: (
                entry["operation"],
                entry.get("time") or "",
                entry["manager"],
                entry["apiVersion"],
                entry.get("subresource", ""),
            ),
        )

    def _entry(self, manager: Manager) -> Object:
        entry: Object = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": self.versions[manager],
        }
        if self.times.get(manager):
            entry["time"] = self.times[manager]
        entry["fieldsType"] = "FieldsV1"
        before, document = self.written.get(manager, (None, {}))
        fields = self.fields[manager]
        entry["fieldsV1"] = document if fields is before else fields.to_fields_v1()
        if manager.subresource:
            entry["subresource"] = manager.subresource
        return entry

    def put(self, manager: Manager, fields: FieldSet, api_version: str) -> None:
        """Set what a manager manages; nothing at all removes it."""
        if fields:
            self.fields[manager] = fields
            self.versions[manager] = api_version
        else:
            self.fields.pop(manager, None)
            self.versions.pop(manager, None)


def _readable(entry: Json) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
        and isinstance(entry.get("fieldsV1") or {}, dict)
    )
