"""The scale subresource's paths into an object: what they must find there.

Pure; reading and writing the subresource itself is the REST layer's.
"""

from dataclasses import dataclass
from typing import Final

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json, go_format, go_type

_MAX_INT32: Final = 2**31 - 1


class ScalePathError(ValueError):
    """A scale path that leads to a value of another type."""


@dataclass(frozen=True, slots=True)
class ScaleSpec:
    """`subresources.scale` of a CRD version."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str = ""

    @classmethod
    def from_object(cls, raw: Object) -> "ScaleSpec":
        """Read `subresources.scale`."""
        return cls(
            raw.get("specReplicasPath", ""),
            raw.get("statusReplicasPath", ""),
            raw.get("labelSelectorPath") or "",
        )

    def validate_spec(self, obj: Object) -> list[FieldError]:
        """Check the wished replicas."""
        return _replicas(obj, self.spec_replicas_path)

    def validate_status(self, obj: Object) -> list[FieldError]:
        """Check the observed replicas and the selector."""
        errors = _replicas(obj, self.status_replicas_path)
        if self.label_selector_path:
            try:
                nested(obj, self.label_selector_path, str)
            except ScalePathError as error:
                errors.append(field.invalid(Path(self.label_selector_path), "", str(error)))
        return errors


def _replicas(obj: Object, path: str) -> list[FieldError]:
    try:
        found = nested(obj, path, int)
    except ScalePathError as error:
        return [field.invalid(Path(path), 0, str(error))]
    if found is None or 0 <= found <= _MAX_INT32:
        return []
    detail = "should be a non-negative integer"
    if found > 0:
        detail = f"should be less than or equal to {_MAX_INT32}"
    return [field.invalid(Path(path), found, detail)]


def nested(obj: Object, path: str, wanted: type[int] | type[str]) -> Json:
    """Follow a dotted path; None where it ends early; raise ScalePathError for another type."""
    names = path.removeprefix(".").split(".")
    found: Json = obj
    for i, name in enumerate(names):
        if not isinstance(found, dict):
            raise ScalePathError(_mismatch(names[: i + 1], found, "map[string]interface{}"))
        if name not in found:
            return None
        found = found[name]
    if type(found) is not wanted:
        raise ScalePathError(_mismatch(names, found, "int64" if wanted is int else "string"))
    return found


def _mismatch(names: list[str], found: Json, wanted: str) -> str:
    where = "." + ".".join(names)
    kind = go_type(found)
    return f"{where} accessor error: {go_format(found)} is of the type {kind}, expected {wanted}"
