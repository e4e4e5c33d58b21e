"""Judge the shape of a HyperJob: types, required fields, bounds, unknown fields.

Says it in the API server's words. What it hands on has the right types throughout, so that no
rule about the sense of an object ever meets a value that it does not expect.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic_core import ErrorDetails, ValidationError

from hyperjob.api.field import FieldError
from hyperjob.api.meta import Object
from webhook.validation import shape_errors
from webhook.validation.place import ROOT, Path
from webhook.validation.schema import hyperjob_shape

MAX_ERRORS: Final = 500
_TOO_DEEP: Final = 64

Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """An object with the right types, and what was wrong with the types before."""

    checked: Object
    errors: tuple[FieldError, ...] = ()
    broken: frozenset[str] = field(default=frozenset())
    """Paths whose value is wrong in shape: what is said about or below them is of no use."""
    doubtful: frozenset[str] = field(default=frozenset())
    """Objects with a broken value somewhere below: their own fields cannot be compared with it."""

    def hides(self, path: str) -> bool:
        """Tell whether an error about this path only follows from a wrong shape."""
        if not self.errors:
            return False
        if path in self.broken or _parent(path) in self.doubtful:
            return True
        return any(path.startswith((f"{at}.", f"{at}[")) for at in self.broken)


def check_structure(raw: Object, *, strict: bool) -> Shape:
    """Check a HyperJob's shape; fields that the API lacks are errors only if `strict`."""
    try:
        hyperjob_shape().validate_python(raw)
    except ValidationError as error:
        return _broken(raw, error, strict=strict)
    return Shape(raw)


def _broken(raw: Object, error: ValidationError, *, strict: bool) -> Shape:
    if error.error_count() > MAX_ERRORS:
        return Shape({}, (shape_errors.too_many(error.error_count()),), frozenset({""}))
    details = error.errors(include_url=False, include_context=True)
    checked = copy.deepcopy(raw) if isinstance(raw, dict) else {}
    errors: list[FieldError] = []
    broken: set[str] = set()
    doubtful: set[str] = set()
    for detail in details:
        if shape_errors.is_harmless(detail):
            _replace(checked, detail["loc"], int(detail["input"]))
            continue
        unknown = detail["type"] == "extra_forbidden"
        if not unknown or strict:
            path = to_path(detail["loc"])
            errors.append(shape_errors.to_field_error(path, detail))
            broken.add(str(path))
        if unknown or shape_errors.is_type_error(detail):
            _remove(checked, detail["loc"], detail)
        if not unknown and shape_errors.is_type_error(detail):
            doubtful.update(_ancestors(detail["loc"]))
    return Shape(checked, tuple(errors), frozenset(broken), frozenset(doubtful))


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
