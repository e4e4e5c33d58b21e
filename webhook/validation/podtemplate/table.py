"""The language of the pod template tables: the checks that a field may have, and one generic walk.

A `Type` has a row for each field of a Kubernetes API type. At import it is compiled to a function
that walks an object of that type. Each row declares its own rules, `V8.<type>.<field>.<what>`:
every message of the API server has an id.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from hyperjob.api.field import ErrorType, Path, Step
from hyperjob.api.meta import Object
from webhook.validation.forms import FormCheck, validate_labels
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.report import Report
from webhook.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    Rule,
    rule,
)

Check = Callable[..., None]
"""A check of a field's value: `check(value, holder, path, pod, report, step)`.

`holder` is the object with the field and `path` the path of the holder; `step` is the name of the
field, or the index of the value in a list. The walk of an object takes the object, its holder and
its own path.
"""

ENUM_REMEDY: Final = "use one of the values listed; upper and lower case matter"


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


class Row(NamedTuple):
    """One compiled field of a type: its checks for a set, an absent (or null) and a zero value."""

    name: str
    check: Check
    absent: Check | None = None
    zero: Check | None = None


Field = Callable[["Type"], Row]
"""One field in the table: a function that returns its row for a type."""


class Type:
    """The fields of one API type, in the order in which they are checked."""

    def __init__(
        self, name: str, noun: str, *fields: Field, together: Collection[Check] = ()
    ) -> None:
        self.name = name
        self.noun = noun
        self.walk = _walk(tuple(field(self) for field in fields), tuple(together))


def _walk(rows: tuple[Row, ...], together: tuple[Check, ...]) -> Check:
    def walk(obj: Object, holder: Object, path: Path, pod: Pod, report: Report) -> None:
        get = obj.get
        for name, check, absent, zero in rows:
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


def _all(checks: Sequence[Check]) -> Check:
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
    return _all([make(cell) for make in makers])


def optional(name: str, *makers: Maker) -> Field:
    """Check the field unless it is absent or zero."""
    return lambda owner: Row(name, _made(owner, name, makers))


def pointer(name: str, *makers: Maker) -> Field:
    """Check the field unless it is absent: zero is a value like any other."""

    def field(owner: Type) -> Row:
        check = _made(owner, name, makers)
        return Row(name, check, zero=check)

    return field


def always(name: str, *makers: Maker, default: object = "") -> Field:
    """Check the field even if it is absent, as the zero value that Kubernetes then reads."""

    def field(owner: Type) -> Row:
        check = _made(owner, name, makers)
        return Row(name, check, lambda _, *rest: check(default, *rest), check)

    return field


def required(
    name: str, *makers: Maker, detail: str = "", cause: str = "", remedy: str = ""
) -> Field:
    """Report an object without the field, and check the value of the field."""

    def field(owner: Type) -> Row:
        cell = Cell(owner.name, owner.noun, name)
        cause_ = cause or f"{owner.noun} has no {name}"
        missing = cell.rule("required", REQUIRED, detail, cause_, remedy or f"set {name}")

        def refuse(_v: object, _o: object, path: Path, _p: object, report: Report) -> None:
            report.add(missing, Path(name, path))

        return Row(name, _made(owner, name, makers), refuse, refuse)

    return field


# The checks of values.


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
            refuse(report, Path(step, path), value, broken)

    return check


def enum(*known: str, cause: str = "") -> Maker:
    """Allow a closed set of values."""
    values = frozenset(known)

    def make(cell: Cell) -> Check:
        unknown = cell.rule(
            "enum",
            NOT_SUPPORTED,
            "supported values: {values}",
            cause or f"{cell.field} of {cell.noun} has a value that Kubernetes does not know",
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


def held(*rules: tuple[Rule, Callable[[Any], bool]], **words: str) -> Maker:
    """Check a value by rules, each with a function that returns whether a value breaks it."""

    def make(cell: Cell) -> Check:
        return _all([_value(cell, breaks, partial(refuse, known)) for known, breaks in rules])

    def refuse(known: Rule, report: Report, at: Path, value: object, _: object) -> None:
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
            inner(value, obj, path.parent, pod, report, path.step)

        return check

    return make


def one_known(unknown: Rule, known: Callable[[Pod], Collection[str]]) -> Maker:
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
            validate_labels(value, Path(cell.field, path), report)

        return check

    return make


def code(check: Check) -> Maker:
    """Check the field by a function, for rules that compare it with other fields."""
    return lambda _: check


def struct(kind: Type, *together: Check) -> Maker:
    """Walk the object in the field; `together` is called after that walk."""

    def make(cell: Cell) -> Check:
        walk, name = _all([kind.walk, *together]), cell.field

        def check(value: Object, obj: Object, path: Path, pod: Pod, report: Report) -> None:
            walk(value, obj, Path(name, path), pod, report)

        return check

    return make


def each(maker: Maker) -> Maker:
    """Check every value of a list."""

    def make(cell: Cell) -> Check:
        inner = maker(cell)

        def check(value: list[Any], obj: Object, path: Path, pod: Pod, report: Report) -> None:
            at = Path(cell.field, path)
            for index, item in enumerate(value):
                inner(item, obj, at, pod, report, index)

        return check

    return make


class Unique(NamedTuple):
    """A field that no two items of a list may share, and how Kubernetes reports the second."""

    field: str
    kind: ErrorType = DUPLICATE
    text: str = ""
    form: FormCheck | None = None
    """Values that break this form are not compared."""
    of_item: bool = False
    """The error is at the item, not at its field; empty values count too."""
    taken: Callable[[Pod], Collection[str]] | None = None
    """Values that no item may have."""

    def declare(self, cell: Cell, noun: str) -> Rule:
        """Declare the rule."""
        cause = f"two items of {cell.field} of {cell.noun} have the same {self.field}"
        what = f"unique-{self.field}"
        return cell.rule(what, self.kind, self.text, cause, f"change {self.field} of {noun}")


def items(kind: Type, *unique: Unique, together: Collection[Check] = ()) -> Maker:
    """Walk every object of a list; `together` is called with each item after its own walk."""

    def make(cell: Cell) -> Check:
        walk, name = _all([kind.walk, *together]), cell.field
        fixed = any(key.taken for key in unique)
        keys = [(key, key.declare(cell, kind.noun)) for key in unique]

        def check(value: list[Object], obj: Object, path: Path, pod: Pod, report: Report) -> None:
            listed = Path(name, path)
            seen = _seen(keys, pod) if fixed or len(value) > 1 else ()
            for index, item in enumerate(value):
                at = Path(index, listed)
                for key, repeated, known in seen:
                    _note(item, key, repeated, known, at, report)
                walk(item, obj, at, pod, report)

        return check

    return make


Seen = tuple[Unique, Rule, set[str]]


def _seen(keys: Sequence[tuple[Unique, Rule]], pod: Pod) -> Sequence[Seen]:
    return [(key, repeated, set(key.taken(pod) if key.taken else ())) for key, repeated in keys]


def _note(
    item: Object, key: Unique, repeated: Rule, known: set[str], path: Path, report: Report
) -> None:
    """Report a value that an earlier item had; else add it to the known ones."""
    value = item.get(key.field) or ""
    if not value and not key.of_item:
        return
    if value not in known:
        known.add(value)
    elif key.form is None or not key.form(value):
        report.add(repeated, path if key.of_item else Path(key.field, path), value)


def one_of(
    owner: str,
    noun: str,
    kinds: Mapping[str, Maker],
    *,
    twice: tuple[str, str],
    none: tuple[str, str] | None = None,
) -> Check:
    """Allow one of several fields of a type; the first in the table is checked.

    `none` and `twice` are Kubernetes' messages, each with its remedy; without `none` an object may
    set none of the fields.
    """
    missing = none and rule(
        f"V8.{owner}.one-of.required", REQUIRED, none[0], f"{noun} is empty", none[1]
    )
    several = rule(
        f"V8.{owner}.one-of.max",
        FORBIDDEN,
        twice[0],
        f"{noun} sets two fields of which it can have one",
        twice[1],
    )
    order = {name: maker(Cell(owner, noun, name)) for name, maker in kinds.items()}

    def check(obj: Object, _holder: object, path: Path, pod: Pod, report: Report) -> None:
        given = [name for name, value in obj.items() if name in order and value is not None]
        if not given:
            if missing:
                report.add(missing, path)
            return
        if len(given) > 1:
            given = [name for name in order if name in given]
        order[given[0]](obj[given[0]], obj, path, pod, report)
        for name in given[1:]:
            report.add(several, path.child(name))

    return check


def exactly_one(
    *fields: str, none: Rule, twice: Rule, at: str = "", shown: str | None = None
) -> Check:
    """Check that exactly one of several fields with plain values is set.

    The error is at the object, or at its field `at`, with the present value or with `shown`.
    """

    def check(obj: Object, _holder: object, path: Path, _p: Pod, report: Report) -> None:
        given = sum(bool(obj.get(field)) for field in fields)
        if given == 1:
            return
        where, value = (path.child(at), obj.get(at)) if at else (path, obj)
        report.add(twice if given else none, where, value if shown is None else shown)

    return check
