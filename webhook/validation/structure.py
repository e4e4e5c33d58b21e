"""Judge the shape of a HyperJob: types, required fields, bounds, unknown fields.

Says it in the API server's words. What it hands on has the right types throughout, so that no
rule about the sense of an object ever meets a value that it does not expect.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_core import ErrorDetails, ValidationError

from hyperjob.api.meta import Object
from webhook.validation import shape_errors
from webhook.validation.place import ROOT, Path
from webhook.validation.report import Report
from webhook.validation.schema import hyperjob_shape

MAX_ERRORS: Final = 500

Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """An object with the right types, and where the types were wrong before."""

    checked: Object
    broken: frozenset[str] = frozenset()
    """Paths whose value is wrong in shape: what is said about or below them is of no use."""
    doubtful: frozenset[str] = frozenset()
    """Objects with a broken value somewhere below: their own fields cannot be compared with it."""

    def hides(self, path: str) -> bool:
        """Tell whether an error about this path only follows from a wrong shape."""
        if not self.broken:
            return False
        if path in self.broken or _parent(path) in self.doubtful:
            return True
        return any(not at or path.startswith((f"{at}.", f"{at}[")) for at in self.broken)


def check_structure(raw: Object, report: Report, *, strict: bool) -> Shape:
    """Check a HyperJob's shape; fields that the API lacks are errors only if `strict`."""
    try:
        hyperjob_shape().validate_python(raw)
    except ValidationError as error:
        return _broken(raw, error, report, strict=strict)
    return Shape(raw)


def _broken(raw: Object, error: ValidationError, report: Report, *, strict: bool) -> Shape:
    if error.error_count() > MAX_ERRORS:
        report.refusals.append(shape_errors.too_many(error.error_count()))
        return Shape({}, frozenset({""}))
    checked = copy.deepcopy(raw) if isinstance(raw, dict) else {}
    broken: set[str] = set()
    doubtful: set[str] = set()
    for detail in error.errors(include_url=False):
        location = detail["loc"]
        if shape_errors.is_harmless(detail):
            _replace(checked, location, int(detail["input"]))
            continue
        unknown = detail["type"] == "extra_forbidden"
        if not unknown or strict:
            path = to_path(location)
            report.refusals.append(shape_errors.to_refusal(path, detail))
            broken.add(str(path) if location else "")
        if unknown:
            _remove(checked, location, detail)
        elif shape_errors.is_type_error(detail):
            _remove(checked, location, detail)
            doubtful.update(_ancestors(location))
    return Shape(checked, frozenset(broken), frozenset(doubtful))


def to_path(location: Sequence[int | str]) -> Path:
    """Return the path of a location, map entries like fields, as the API server prints them."""
    return ROOT.below(location)


def _ancestors(location: Location) -> list[str]:
    return [str(to_path(location[:depth])) for depth in range(1, len(location))]


def _parent(path: str) -> str:
    """Return the path of the object that holds a field."""
    if path.endswith("]"):
        return path[: path.rindex("[")]
    return path.rpartition(".")[0]


def _find(root: object, location: Location) -> object:
    """Return the value that holds a location's last step, or None if it is gone already."""
    for step in location[:-1]:
        if isinstance(root, dict):
            root = root.get(step)
        elif isinstance(root, list) and isinstance(step, int) and step < len(root):
            root = root[step]
        else:
            return None
    return root


def _replace(root: Object, location: Location, value: object) -> None:
    holder, last = _find(root, location), location[-1]
    if isinstance(holder, dict):
        holder[last] = value
        return
    if isinstance(holder, list) and isinstance(last, int):
        holder[last] = value


def _remove(root: Object, location: Location, detail: ErrorDetails) -> None:
    """Take a value out; a list keeps its length, so that paths stay what they are."""
    holder = _find(root, location)
    if not location:
        root.clear()
    elif isinstance(holder, dict):
        holder.pop(location[-1], None)
    elif isinstance(holder, list) and isinstance(last := location[-1], int):
        holder[last] = shape_errors.empty_value(detail)
