"""Validation of the shape of a HyperJob: types, required fields, bounds, unknown fields.

The messages are those of the API server. The result has the right types throughout, and the later
rules need no type checks.
"""

from dataclasses import dataclass
from typing import Final

from pydantic_core import ValidationError

from hyperjob_core.api.field import ROOT
from hyperjob_core.api.meta import Object
from hyperjob_core.api.shapeerrors import empty_value, is_harmless, is_unusable
from hyperjob_rules.validation import shape_errors
from hyperjob_rules.validation.repair import Location, Repair
from hyperjob_rules.validation.report import Report
from hyperjob_rules.validation.schema import hyperjob_shape

MAX_ERRORS: Final = 500


@dataclass(frozen=True, slots=True)
class TypedObject:
    """An object with the right types, and the paths whose types were wrong before."""

    checked: Object
    broken: frozenset[str] = frozenset()
    """The paths of values with a wrong shape: further errors at or below them are useless."""
    doubtful: frozenset[str] = frozenset()
    """The paths of objects with a wrong value below: rules across their fields are unreliable."""

    def hides(self, path: str) -> bool:
        """Return whether an error about this path only follows from a wrong shape."""
        if not self.broken:
            return False
        if path in self.broken or _parent(path) in self.doubtful:
            return True
        return any(not at or path.startswith((f"{at}.", f"{at}[")) for at in self.broken)


def check_structure(raw: Object, report: Report, *, strict: bool) -> TypedObject:
    """Validate a HyperJob's shape; fields that the API lacks are errors only if `strict`."""
    try:
        hyperjob_shape().validate_python(raw)
    except ValidationError as error:
        return _broken(raw, error, report, strict=strict)
    return TypedObject(raw)


def _broken(raw: Object, error: ValidationError, report: Report, *, strict: bool) -> TypedObject:
    if error.error_count() > MAX_ERRORS:
        report.refusals.append(shape_errors.too_many(error.error_count()))
        return TypedObject({}, broken=frozenset({""}))
    repair = Repair(raw)
    broken: set[str] = set()
    doubtful: set[str] = set()
    for detail in error.errors(include_url=False):
        location = detail["loc"]
        if is_harmless(detail):
            repair.put(location, int(detail["input"]))
            continue
        unknown = detail["type"] == "extra_forbidden"
        if not unknown or strict:
            path = ROOT.below(location)
            report.refusals.extend(shape_errors.to_refusals(path, detail))
            broken.add(str(path) if location else "")
        if unknown or is_unusable(detail):
            repair.drop(location, empty_value(detail))
        if not unknown and is_unusable(detail):
            doubtful.update(_ancestors(location))
    return TypedObject(repair.root, broken=frozenset(broken), doubtful=frozenset(doubtful))


def _ancestors(location: Location) -> list[str]:
    return [str(ROOT.below(location[:depth])) for depth in range(1, len(location))]


def _parent(path: str) -> str:
    """Return the path of the object that has a field."""
    if path.endswith("]"):
        return path[: path.rindex("[")]
    return path.rpartition(".")[0]
