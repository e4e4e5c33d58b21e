"""The rules of validation, and the report that collects what they find in one object.

A rule has an id, a message, a cause and a remedy. It is a row of `rules.md`, or a cell of the table
of pod templates. The code that applies it names its id. The page docs/messages.md is generated from
all rules.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Final, NamedTuple

from hyperjob_core.api import field
from hyperjob_core.api.field import ErrorType, FieldError, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.text import Hints, nearest, suggestion
from hyperjob_rules.patch import JsonPatchOp
from hyperjob_rules.validation import schema

REQUIRED: Final = ErrorType.REQUIRED
INVALID: Final = ErrorType.INVALID
NOT_SUPPORTED: Final = ErrorType.NOT_SUPPORTED
DUPLICATE: Final = ErrorType.DUPLICATE
FORBIDDEN: Final = ErrorType.FORBIDDEN


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `form` is the message, with varying words in braces; without `kind` it warns."""

    id: str
    kind: ErrorType | None
    form: str
    cause: str
    remedy: str

    def at(self, path: Path, value: object = "", /, **words: object) -> FieldError:
        """Return the error of this rule at a field; raises TypeError for a warning."""
        if self.kind is None:
            raise TypeError(f"{self.id} is a warning: {self.form}")
        return FieldError(self.kind, str(path), value, self.text(**words))

    def warning(self, path: Path, /, **words: object) -> str:
        """Return the warning about a field, as an AdmissionResponse has it."""
        return f"{path}: {self.text(**words)}"

    def text(self, **words: object) -> str:
        """Return the message with these words in place of the braces."""
        return self.form.format(**words) if words else self.form

    def unsupported(self, path: Path, value: str, supported: tuple[str, ...]) -> FieldError:
        """Return the error of a value outside a closed set, with the most similar member."""
        error, near = field.not_supported(path, value, supported), nearest(value, supported)
        if not near or near == value:
            return error
        return replace(error, detail=error.detail + suggestion(near), remedy=f"write {near}")

    def missing(self, path: Path, value: str, hint: str) -> FieldError:
        """Return the error of a reference to a missing name, with a hint."""
        return FieldError(ErrorType.NOT_FOUND, str(path), value, hint)


def _rows() -> Iterator[Rule]:
    """Yield the rules of `rules.md`."""
    text = resources.files(__package__).joinpath("rules.md").read_text(encoding="utf-8")
    for line in text.partition("|---|---|---|---|---|\n")[2].splitlines():
        name, kind, form, cause, remedy = line[2:-2].split(" | ")
        type_ = None if kind == "Warning" else ErrorType(f"FieldValue{kind}")
        yield Rule(name, type_, form, cause, remedy)


_RULES: Final = {rule.id: rule for rule in _rows()}


def declare(name: str, kind: ErrorType | None, form: str, cause: str, remedy: str) -> str:
    """Declare a rule beside those of `rules.md`, and return its id.

    Raises ValueError if the id exists already.
    """
    if name in _RULES:
        raise ValueError(f"two rules have the id {name}")
    _RULES[name] = Rule(name, kind, form, cause, remedy)
    return name


def bounded(name: str, **values: int | str) -> None:
    """Write the bounds of a rule into its texts, in place of their words in braces."""
    known = _RULES[name]
    texts = {part: getattr(known, part) for part in ("form", "cause", "remedy")}
    for word, value in values.items():
        texts = {part: text.replace(f"{{{word}}}", str(value)) for part, text in texts.items()}
    _RULES[name] = replace(known, **texts)


def rule_of(name: str) -> Rule:
    """Return the rule of an id, which is a row of `rules.md` or declared; KeyError otherwise."""
    return _RULES[name]


def declared() -> tuple[Rule, ...]:
    """Return the rules of `rules.md` and of all imported modules, in the order of their ids."""
    return tuple(sorted(_RULES.values(), key=lambda known: _sort_key(known.id)))


def _sort_key(name: str) -> tuple[str, int, str]:
    row, _, rest = name.partition(".")
    return row[:1], int(row[1:]), rest


class Decision(NamedTuple):
    """The decision about an object: errors deny it, a patch changes it.

    The author of an accepted object gets the warnings.
    """

    patch: Sequence[JsonPatchOp] = ()
    errors: Sequence[FieldError] = ()
    warnings: Sequence[str] = ()
    checked: Object | None = None
    """The accepted new object, whose types are all checked; None if no new object was checked."""

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return not self.errors


ALLOWED: Final = Decision()


MAX_REFUSALS: Final = 500
"""The number of errors after which a validation stops; a response has 200 of them."""
MAX_REMARKS: Final = 500
"""The greatest number of warnings; a response has 4,096 characters of them."""


class EnoughError(Exception):
    """The object has MAX_REFUSALS errors, and the validation stops."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An error and its rule."""

    rule: Rule
    error: FieldError

    @property
    def remedy(self) -> str:
        """Return the remedy of this error where its value shows what is meant, else the rule's."""
        error = self.error
        return error.remedy or schema.of_value(error.bad_value, error.detail) or self.rule.remedy


class RuleWarning(NamedTuple):
    """A warning and its rule."""

    rule: Rule
    text: str


class Report:
    """The errors and warnings about one object; `checked` is the object with the right types."""

    __slots__ = ("checked", "count", "flawless", "hints", "refusals", "remarks")

    def __init__(self, flawless: set[bytes] | None = None) -> None:
        self.checked: Object | None = None
        self.count = 0
        """The number of errors and warnings found until now, with those that are too many."""
        self.flawless: set[bytes] = set() if flawless is None else flawless
        """The pod templates without errors and warnings, as JSON: each is validated once."""
        self.refusals: list[Violation] = []
        self.remarks: list[RuleWarning] = []
        self.hints = Hints()

    def refuse(self, rule: Rule, error: FieldError) -> None:
        """Add an error; raises EnoughError if it is the last one possible."""
        self.count += 1
        self.refusals.append(Violation(rule, error))
        if self.is_full:
            raise EnoughError

    @property
    def is_full(self) -> bool:
        """Whether the validation stopped before its end because of too many errors."""
        return len(self.refusals) >= MAX_REFUSALS

    def add(self, name: str, path: Path, value: object = "", /, **words: object) -> None:
        """Add the error of the rule of an id at the field at `path`."""
        rule = rule_of(name)
        self.refuse(rule, rule.at(path, value, **words))

    def unsupported(self, name: str, path: Path, value: str, values: tuple[str, ...]) -> None:
        """Add the error of a value outside a closed set at `path`."""
        rule = rule_of(name)
        self.refuse(rule, rule.unsupported(path, value, values))

    def missing(self, name: str, path: Path, value: str, names: Iterable[str]) -> None:
        """Add the error of a reference to a missing name at `path`."""
        rule, hint = rule_of(name), self.hints.did_you_mean(value, names).removeprefix("; ")
        self.refuse(rule, rule.missing(path, value, hint))

    def warn(self, name: str, path: Path, /, **words: object) -> None:
        """Add a warning of the rule of an id about the field at `path`."""
        self.count += 1
        if len(self.remarks) < MAX_REMARKS:
            rule = rule_of(name)
            self.remarks.append(RuleWarning(rule, rule.warning(path, **words)))

    def take(
        self,
        other: "Report",
        *,
        refusal: Callable[[FieldError], bool] = lambda _: True,
        remark: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Add the errors and warnings of another report that pass the filters."""
        self.refusals.extend(found for found in other.refusals if refusal(found.error))
        self.remarks.extend(found for found in other.remarks if remark(found.text))

    def decision(self) -> Decision:
        """Return the decision with all errors and warnings, each once."""
        if not self.refusals and not self.remarks:
            return Decision(checked=self.checked)
        errors = {
            str(found.error): replace(found.error, remedy=found.remedy) for found in self.refusals
        }
        warnings = dict.fromkeys(found.text for found in self.remarks)
        return Decision(
            errors=tuple(errors.values()),
            warnings=tuple(warnings),
            checked=None if errors else self.checked,
        )
