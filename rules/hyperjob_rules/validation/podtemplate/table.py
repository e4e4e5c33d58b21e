"""The language of the pod template tables: the checks that a field may have, and one generic walk.

A `Type` has a row for each field of a Kubernetes API type. At import it is compiled to a function
that walks an object of that type. Each row declares its own rules, `V8.<type>.<field>.<what>`:
every message of the API server has an id.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from hyperjob_core.api.field import ErrorType, Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.podtemplate.pod import Pod
from hyperjob_rules.validation.rules import REQUIRED, Report, Rule, rule

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

    def rule(self, what: str, kind: ErrorType, form: str, cause: str, remedy: str) -> Rule:
        """Declare a rule of this field."""
        return rule(f"V8.{self.type}.{self.field}.{what}", kind, form, cause, remedy)


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
        self, name: str, noun: str, *fields: Field, together: Collection[Check] = ()
    ) -> None:
        self.name = name
        self.noun = noun
        self._rows = tuple(field(self) for field in fields)
        self._together = tuple(together)
        self.walk = self.walk_then()

    def walk_then(self, *checks: Check) -> Check:
        """Return the walk of an object of this type; `checks` are called after it."""
        return _walk(self._rows, (*self._together, *checks))


def _walk(rows: tuple[FieldRow, ...], together: tuple[Check, ...]) -> Check:
    """Compile rows to the walk of an object; `together` are called after all rows."""
    position = {row.name: number for number, row in enumerate(rows)}
    needed = frozenset(number for number, row in enumerate(rows) if row.absent is not None)

    def walk(obj: Object, holder: Object, path: Path, pod: Pod, report: Report) -> None:
        get = obj.get
        chosen = rows
        if len(obj) * 5 < len(rows):  # few of many fields are set: the others have no check
            numbers = needed.union([position[name] for name in obj if name in position])
            chosen = tuple([rows[number] for number in sorted(numbers)])
        for name, check, absent, zero in chosen:
            value = get(name)
            if value:
                check(value, obj, path, pod, report)
            elif value is None:
                if absent is not None:
                    absent(value, obj, path, pod, report)
            elif zero is not None:
                zero(value, obj, path, pod, report)
        for check in together:
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


def required(
    name: str, *makers: Maker, detail: str = "", cause: str = "", remedy: str = ""
) -> Field:
    """Report an object without the field, and check the value of the field."""

    def field(owner: Type) -> FieldRow:
        cell = Cell(owner.name, owner.noun, name)
        cause_ = cause or f"{owner.noun} has no {name}"
        missing = cell.rule("required", REQUIRED, detail, cause_, remedy or f"set {name}")

        def refuse(_v: object, _o: object, path: Path, _p: object, report: Report) -> None:
            report.add(missing, path.child(name))

        return FieldRow(name, _made(owner, name, makers), refuse, refuse)

    return field
