"""The checks of objects and lists in the pod template tables, and of which fields go together."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from hyperjob_core.api.field import ErrorType, Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import FormCheck
from hyperjob_rules.validation.podtemplate.table import Cell, Check, Field, Maker, Pod, Type
from hyperjob_rules.validation.rules import DUPLICATE, FORBIDDEN, REQUIRED, Report, declare


def struct(kind: Type, *across: Check) -> Maker:
    """Walk the object in the field; `together` is called after that walk."""

    def make(cell: Cell) -> Check:
        walk, name = kind.walk_then(*across), cell.field

        def check(value: Object, obj: Object, path: Path, pod: Pod, report: Report) -> None:
            walk(value, obj, Path((name, path)), pod, report)

        return check

    return make


def struct_of(name: str, noun: str, *fields: Field, across: Collection[Check] = ()) -> Maker:
    """Walk the object in the field, whose type no other field has."""
    return struct(Type(name, noun, *fields, across=across))


def each(maker: Maker) -> Maker:
    """Check every value of a list."""

    def make(cell: Cell) -> Check:
        inner = maker(cell)

        def check(value: list[Any], obj: Object, path: Path, pod: Pod, report: Report) -> None:
            at = path.child(cell.field)
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

    def declare(self, cell: Cell, noun: str) -> str:
        """Declare the rule, and return its id."""
        cause = f"two items of {cell.field} of {cell.noun} have the same {self.field}"
        what = f"unique-{self.field}"
        return cell.rule(what, self.kind, self.text, cause, f"change {self.field} of {noun}")


def items(kind: Type, *unique: Unique, across: Collection[Check] = ()) -> Maker:
    """Walk every object of a list; `together` is called with each item after its own walk."""

    def make(cell: Cell) -> Check:
        walk, name = kind.walk_then(*across), cell.field
        fixed = any(key.taken for key in unique)
        keys = [(key, key.declare(cell, kind.noun)) for key in unique]

        def check(value: list[Object], obj: Object, path: Path, pod: Pod, report: Report) -> None:
            listed = Path((name, path))
            seen = _seen(keys, pod) if fixed or len(value) > 1 else ()
            for index, item in enumerate(value):
                at = Path((index, listed))
                for key, repeated, known in seen:
                    _note(item, key, repeated, known, at, report)
                walk(item, obj, at, pod, report)

        return check

    return make


Seen = tuple[Unique, str, set[str]]


def _seen(keys: Sequence[tuple[Unique, str]], pod: Pod) -> Sequence[Seen]:
    return [(key, repeated, set(key.taken(pod) if key.taken else ())) for key, repeated in keys]


def _note(
    item: Object, key: Unique, repeated: str, known: set[str], path: Path, report: Report
) -> None:
    """Report a value that an earlier item had; else add it to the known ones."""
    value = item.get(key.field) or ""
    if not value and not key.of_item:
        return
    if value not in known:
        known.add(value)
    elif key.form is None or not key.form(value):
        report.add(repeated, path if key.of_item else path.child(key.field), value)


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
    missing = none and declare(
        f"V8.{owner}.one-of.required", REQUIRED, none[0], f"{noun} is empty", none[1]
    )
    several = declare(
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
    *fields: str, none: str, twice: str, at: str = "", shown: str | None = None
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
