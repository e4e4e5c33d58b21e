"""Validation of a new HyperJob: its size, its shape, then the rules that compare fields.

The messages about the shape are those of the API server. The object that the rules get has the
right types throughout and complete templates, and no rule checks a type.
"""

from contextlib import suppress
from typing import Any, Final, NamedTuple

from pydantic_core import ValidationError

from hyperjob_core.api.defaults import completed, has_gaps
from hyperjob_core.api.field import ROOT
from hyperjob_core.api.meta import Object
from hyperjob_core.api.shapeerrors import empty_value, is_harmless, is_unusable
from hyperjob_rules.validation import shape_errors
from hyperjob_rules.validation.alternatives import validate_alternatives
from hyperjob_rules.validation.bounds import validate_size
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.hyperjob import validate_hyperjob
from hyperjob_rules.validation.names import warn_references
from hyperjob_rules.validation.rules import Decision, EnoughError, Report
from hyperjob_rules.validation.schema import hyperjob_shape
from hyperjob_rules.validation.split import is_elastic

MAX_ERRORS: Final = 500

Location = tuple[int | str, ...]


class TypedObject(NamedTuple):
    """An object with the right types, and the paths whose types were wrong before."""

    checked: Object
    """With the defaults that rules look at."""
    written: Object
    """As its author wrote it."""
    broken: frozenset[str] = frozenset()
    """The paths of values with a wrong shape: further errors at or below them are useless."""
    doubtful: frozenset[str] = frozenset()
    """The paths of objects with a wrong value below: rules across their fields are unreliable."""
    misspelt: frozenset[str] = frozenset()
    """The paths of fields that are not there since their names are misspelt; also in `broken`."""

    def hides(self, path: str) -> bool:
        """Return whether an error about this path only follows from a wrong shape."""
        if not self.broken:
            return False
        if path in self.broken or _parent(path) in self.doubtful:
            return True
        return any(not at or path.startswith((f"{at}.", f"{at}[")) for at in self.broken)


def validate_create(
    raw: Object,
    *,
    context: Context = NOTHING_KNOWN,
    strict: bool = False,
    at_most: int | None = None,
) -> Decision:
    """Validate a HyperJob that is created; `strict` refuses fields that the API does not have.

    The result for any JSON object is a decision, without exceptions and without I/O. `at_most` is
    an upper bound of its size in bytes, if known; it saves the computation.
    """
    size = Report()
    if not validate_size(raw, size, at_most=at_most):
        return size.decision()
    return inspect(raw, context=context, strict=strict).decision()


def inspect(raw: Object, *, context: Context, strict: bool) -> Report:
    """Return the report with all errors in a HyperJob and all warnings about it."""
    report = Report()
    shape = check_structure(raw, report, strict=strict)
    report.checked = shape.checked
    return inspect_checked(shape, report, context=context)


def inspect_checked(shape: TypedObject, report: Report, *, context: Context) -> Report:
    """Return the same for a HyperJob after the check of its shape, whose report continues."""
    found = Report(report.flawless)

    def judge(hyperjob: Object, to: Report) -> None:
        validate_hyperjob(hyperjob, to, most_grace=context.max_grace_seconds)
        warn_references(hyperjob, to, context=context)

    with suppress(EnoughError):
        judge(shape.checked, found)
        jobs = (shape.checked.get("spec") or {}).get("replicatedJobs") or ()
        whole = not shape.broken and not found.refusals
        if whole and any(job.get("alternatives") or is_elastic(job) for job in jobs):
            validate_alternatives(shape.written, found, report, judge)
    if found.refusals or found.remarks:
        report.take(
            found,
            refusal=lambda error: not shape.hides(error.field),
            remark=lambda text: text.partition(": ")[0] not in shape.misspelt,
        )
    return report


def check_structure(raw: Object, report: Report, *, strict: bool) -> TypedObject:
    """Validate a HyperJob's shape; fields that the API lacks are errors only if `strict`."""
    shape = hyperjob_shape()
    try:
        shape.validate_python(raw)
        if not has_gaps(raw.get("spec") or {}):
            return TypedObject(raw, written=raw)
    except ValidationError:
        pass  # it may be about what `completed` adds
    whole = completed(raw)
    try:
        shape.validate_python(whole)
    except ValidationError as error:
        return _broken(whole, error, report, strict=strict)._replace(written=raw)
    return TypedObject(whole, written=raw)


def _broken(raw: Object, error: ValidationError, report: Report, *, strict: bool) -> TypedObject:
    """Report what the schema finds; return the object without values that rules cannot read.

    A number such as 2.0 becomes a whole one. A field that the API lacks is removed, and is an error
    only if `strict`.
    """
    if error.error_count() > MAX_ERRORS:
        report.refusals.append(shape_errors.too_many(error.error_count()))
        return TypedObject({}, written=raw, broken=frozenset({""}))
    repair = Repair(raw)
    broken: set[str] = set()
    doubtful: set[str] = set()
    misspelt: set[str] = set()
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
            if unknown and (name := shape_errors.nearest_field(location)):
                meant = (*location[:-1], name)
                misspelt.update([] if _has(raw, meant) else [str(ROOT.below(meant))])
        if unknown or is_unusable(detail):
            repair.drop(location, empty_value(detail))
        if not unknown and is_unusable(detail):
            doubtful.update(str(ROOT.below(location[:n])) for n in range(1, len(location)))
    if misspelt:  # that the right field is not there only follows from the wrong name
        report.refusals[:] = [
            found
            for found in report.refusals
            if found.rule.id != "T2.missing" or found.error.field not in misspelt
        ]
    return TypedObject(
        repair.root,
        written=raw,
        broken=frozenset(broken | misspelt),
        doubtful=frozenset(doubtful),
        misspelt=frozenset(misspelt),
    )


def _has(value: Any, location: Location) -> bool:  # noqa: ANN401 - any value of JSON
    """Return whether a value of JSON has a field."""
    for step in location:
        if isinstance(value, dict) and step not in value:
            return False
        value = value[step]
    return True


def _parent(path: str) -> str:
    """Return the path of the object that has a field."""
    if path.endswith("]"):
        return path[: path.rindex("[")]
    return path.rpartition(".")[0]


class Repair:
    """A partial copy of an object: each edit copies the parts above it once."""

    def __init__(self, raw: object) -> None:
        self.root: Object = dict(raw) if isinstance(raw, dict) else {}
        self._own: set[int] = {id(self.root)}

    def put(self, location: Location, value: object) -> None:
        """Set the value at a location, if the location still exists."""
        holder, last = self._holder(location), location[-1]
        if isinstance(holder, dict):
            holder[str(last)] = value
        elif isinstance(holder, list) and isinstance(last, int):
            holder[last] = value

    def drop(self, location: Location, empty: object) -> None:
        """Remove a value; a list item becomes `empty`, which keeps the other paths valid."""
        if not location:
            self.root.clear()
            return
        holder, last = self._holder(location), location[-1]
        if isinstance(holder, dict):
            holder.pop(str(last), None)
        elif isinstance(holder, list) and isinstance(last, int):
            holder[last] = empty

    def _holder(self, location: Location) -> object:
        """Return the copied parent of a location; None if it was removed."""
        holder: Any = self.root
        for step in location[:-1]:
            child = holder.get(step) if isinstance(holder, dict) else holder[step]
            if not isinstance(child, (dict, list)):
                return None
            if id(child) not in self._own:
                child = child.copy()
                self._own.add(id(child))
                holder[step] = child
            holder = child
        return holder
