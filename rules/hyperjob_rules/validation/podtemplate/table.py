"""The language of the pod template tables: the checks that a field may have, and one generic walk.

A `Type` has a row for each field of a Kubernetes API type. At import it is compiled to a function
that walks an object of that type. Each row has its own rules, `V8.<type>.<field>.<what>`:
every message of the API server has an id. A `Pod` has the facts on which the rules for its parts
depend, computed once per template. The checks of values are sets, forms, ranges, known names,
labels, and paths inside volumes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, Self

from hyperjob_core.api.field import ErrorType, Path, Step
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import FormCheck, validate_labels
from hyperjob_rules.validation.rules import INVALID, NOT_SUPPORTED, REQUIRED, Report, declare

DEFAULT_GRACE: Final = 30
FEW: Final = 3
"""The rows that are all looked at sooner than it is found out which of them matter."""


class Pod(NamedTuple):
    """The facts about a pod: names of volumes, containers and claims; times in seconds."""

    volumes: Mapping[str, Object]
    claims: Collection[str]
    grace: int
    restart_policy: str
    host_network: bool
    host_ipc: bool
    host_users: bool
    containers: Collection[str]
    """The names of the containers that are not init containers."""

    @classmethod
    def of(cls, spec: Object) -> Self:
        """Return the facts from the spec of a pod, with the API server's defaults."""
        get = spec.get
        grace = get("terminationGracePeriodSeconds")
        return cls(
            {volume.get("name") or "": volume for volume in get("volumes") or ()},
            {claim["name"] for claim in get("resourceClaims") or () if claim.get("name")},
            DEFAULT_GRACE if grace is None else grace,
            get("restartPolicy") or "Always",
            bool(get("hostNetwork")),
            bool(get("hostIPC")),
            get("hostUsers") is not False,
            [container.get("name") or "" for container in get("containers") or ()],
        )


Check = Callable[..., None]
"""A check of a field's value: `check(value, holder, path, pod, report, step)`.

`holder` is the object with the field and `path` the path of the holder; `step` is the name of the
field, or the index of the value in a list. The walk of an object takes the object, its holder and
its own path.
"""


class Cell(NamedTuple):
    """One cell of the table: a field of a type, with the nouns of both for messages."""

    type: str
    noun: str
    field: str

    def rule(self, what: str, kind: ErrorType, form: str, cause: str, remedy: str) -> str:
        """Declare a rule of this field, and return its id."""
        return declare(f"V8.{self.type}.{self.field}.{what}", kind, form, cause, remedy)


Maker = Callable[[Cell], Check]
"""The content of a cell: a function that returns the check of the cell's field."""


class FieldRow(NamedTuple):
    """One compiled field of a type: its checks for a set, an absent (or null) and a zero value."""

    name: str
    check: Check
    absent: Check | None = None
    zero: Check | None = None


Field = Callable[["Type"], FieldRow]
"""One field in the table: a function that returns its row for a type."""


class Type:
    """The fields of one API type, in the order in which they are checked."""

    def __init__(
        self, name: str, noun: str, *fields: Field, across: Collection[Check] = ()
    ) -> None:
        self.name = name
        self.noun = noun
        self._rows = tuple(field(self) for field in fields)
        self._together = tuple(across)
        self.walk = self.walk_then()

    def walk_then(self, *checks: Check) -> Check:
        """Return the walk of an object of this type; `checks` are called after it."""
        return _walk(self._rows, (*self._together, *checks))


def _walk(rows: tuple[FieldRow, ...], across: tuple[Check, ...]) -> Check:
    """Compile rows to the walk of an object; `across` are called after all rows."""
    few = len(rows) <= FEW

    @lru_cache(maxsize=256)
    def chosen(given: tuple[str, ...]) -> tuple[FieldRow, ...]:
        """Return the rows that look at an object with these fields: few objects differ in them."""
        return tuple([row for row in rows if row.absent is not None or row.name in given])

    def walk(obj: Object, holder: Object, path: Path, pod: Pod, report: Report) -> None:
        get = obj.get
        for name, check, absent, zero in rows if few else chosen(tuple(obj)):
            value = get(name)
            if value:
                check(value, obj, path, pod, report)
            elif value is None:
                if absent is not None:
                    absent(value, obj, path, pod, report)
            elif zero is not None:
                zero(value, obj, path, pod, report)
        for check in across:
            check(obj, holder, path, pod, report)

    return walk


def all_of(checks: Sequence[Check]) -> Check:
    """Return the check that makes all checks in turn."""
    if len(checks) == 1:
        return checks[0]

    def check_all(*arguments: object) -> None:
        for check in checks:
            check(*arguments)

    return check_all


# When a field counts as set. Kubernetes takes the zero value of a field that is no pointer for one
# that is left out.


def _made(owner: Type, name: str, makers: Sequence[Maker]) -> Check:
    cell = Cell(owner.name, owner.noun, name)
    return all_of([make(cell) for make in makers])


def optional(name: str, *makers: Maker) -> Field:
    """Check the field unless it is absent or zero."""
    return lambda owner: FieldRow(name, _made(owner, name, makers))


def pointer(name: str, *makers: Maker) -> Field:
    """Check the field unless it is absent: zero is a value like any other."""

    def field(owner: Type) -> FieldRow:
        check = _made(owner, name, makers)
        return FieldRow(name, check, zero=check)

    return field


def always(name: str, *makers: Maker, default: object = "") -> Field:
    """Check the field even if it is absent, as the zero value that Kubernetes then reads."""

    def field(owner: Type) -> FieldRow:
        check = _made(owner, name, makers)
        return FieldRow(name, check, lambda _, *rest: check(default, *rest), check)

    return field


def required(name: str, *makers: Maker, detail: str = "", remedy: str = "") -> Field:
    """Report an object without the field, and check the value of the field."""

    def field(owner: Type) -> FieldRow:
        cell = Cell(owner.name, owner.noun, name)
        cause = f"{owner.noun} has no {name}"
        missing = cell.rule("required", REQUIRED, detail, cause, remedy or f"set {name}")

        def refuse(_v: object, _o: object, path: Path, _p: object, report: Report) -> None:
            report.add(missing, path.child(name))

        return FieldRow(name, _made(owner, name, makers), refuse, refuse)

    return field


ENUM_REMEDY: Final = "use one of the values listed; upper and lower case matter"


def _value(
    cell: Cell,
    breaks: Callable[[Any], Any],
    refuse: Callable[[Report, Path, Any, Any], object],
) -> Check:
    """Return a check that calls `refuse` with the result of `breaks`, unless that is empty."""

    def check(
        value: object, _o: object, path: Path, _p: Pod, report: Report, step: Step = cell.field
    ) -> None:
        if broken := breaks(value):
            refuse(report, Path((step, path)), value, broken)

    return check


def enum(*known: str) -> Maker:
    """Allow a closed set of values."""
    values = frozenset(known)

    def make(cell: Cell) -> Check:
        unknown = cell.rule(
            "enum",
            NOT_SUPPORTED,
            "supported values: {values}",
            f"{cell.field} of {cell.noun} has a value that Kubernetes does not know",
            ENUM_REMEDY,
        )
        return _value(
            cell,
            lambda value: value not in values,
            lambda report, at, value, _: report.unsupported(unknown, at, value, known),
        )

    return make


def form(judge: FormCheck) -> Maker:
    """Check the form of a text, with Kubernetes' message for the form."""

    def make(cell: Cell) -> Check:
        malformed = cell.rule(
            "form",
            INVALID,
            "{message}",
            f"{cell.field} of {cell.noun} has a form that Kubernetes does not accept",
            "use the characters and the length that the message names",
        )

        def refuse(report: Report, at: Path, value: str, messages: list[str]) -> None:
            for message in messages:
                report.add(malformed, at, value, message=message)

        return _value(cell, judge, refuse)

    return make


def held(*rules: tuple[str, Callable[[Any], bool]], **words: str) -> Maker:
    """Check a value by rules, each an id and a function that returns whether a value breaks it."""

    def make(cell: Cell) -> Check:
        return all_of([_value(cell, breaks, partial(refuse, known)) for known, breaks in rules])

    def refuse(known: str, report: Report, at: Path, value: object, _: object) -> None:
        report.add(known, at, value, **words)

    return make


def between(low: int, high: float, *, text: str = "", remedy: str = "") -> Maker:
    """Check that a number is in a range, both ends included."""

    def make(cell: Cell) -> Check:
        outside = cell.rule(
            "range",
            INVALID,
            text or f"must be between {low} and {high}, inclusive",
            f"{cell.field} of {cell.noun} is out of range",
            remedy or f"use a number from {low} to {high}",
        )
        return held((outside, lambda value: not low <= value <= high))(cell)

    return make


def at_least(low: int, *, text: str) -> Maker:
    """Check that a number is not below a limit."""
    return between(low, float("inf"), text=text, remedy=f"use {low} or more")


def never(kind: ErrorType, text: str, cause: str, remedy: str) -> Maker:
    """Report the field with any value."""

    def make(cell: Cell) -> Check:
        return held((cell.rule("forbidden", kind, text, cause, remedy), lambda _: True))(cell)

    return make


def at_holder(maker: Maker) -> Maker:
    """Report the errors of the value at its object, as Kubernetes does for this field."""

    def make(cell: Cell) -> Check:
        inner = maker(cell)

        def check(value: object, obj: Object, path: Path, pod: Pod, report: Report) -> None:
            step, above = path
            inner(value, obj, above, pod, report, step)

        return check

    return make


def one_known(unknown: str, known: Callable[[Pod], Collection[str]]) -> Maker:
    """Check that a name is one of the pod's."""

    def make(cell: Cell) -> Check:
        def check(name: str, _o: object, path: Path, pod: Pod, report: Report) -> None:
            if name not in known(pod):
                report.missing(unknown, path.child(cell.field), name, known(pod))

        return check

    return make


def labels() -> Maker:
    """Check that the keys and values of a map are valid labels."""

    def make(cell: Cell) -> Check:
        def check(value: Object, _o: object, path: Path, _p: Pod, report: Report) -> None:
            validate_labels(value, path.child(cell.field), report)

        return check

    return make


def code(check: Check) -> Maker:
    """Check the field by a function, for rules that compare it with other fields."""
    return lambda _: check


def has_backsteps(path: str) -> bool:
    """Return whether a path contains `..`."""
    return ".." in path.split("/")


def is_padded(text: str) -> bool:
    """Return whether a text starts or ends with white space."""
    return text.strip() != text


def _is_reserved(path: str) -> bool:
    return path.startswith("..") and not path.startswith("../") and path != ".."


def _is_absolute(path: str) -> bool:
    return path.startswith("/")


_DESCENDING: Final = (("V8.path.relative", _is_absolute), ("V8.path.backsteps", has_backsteps))

absolute: Final = held(("V8.path.absolute", lambda path: not _is_absolute(path)))
"""A path that starts with a slash."""
without_backsteps: Final = held(("V8.path.backsteps", has_backsteps))
"""A path without `..`."""
descending: Final = held(*_DESCENDING)
"""A relative path without `..`."""
file: Final = held(*_DESCENDING, ("V8.path.reserved", _is_reserved))
"""The path of a file that Kubernetes writes into a volume."""


def descend(value: str, path: Path, report: Report) -> None:
    """Report a value at `path` that is not a relative path without `..`."""
    for known, breaks in _DESCENDING:
        if breaks(value):
            report.add(known, path, value)
