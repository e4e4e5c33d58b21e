"""The report of a validation: its errors and warnings, in order and each once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from hyperjob_core.api.field import FieldError, Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.decision import Decision
from hyperjob_rules.validation.rules import Rule
from hyperjob_rules.validation.suggest import Hints

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


@dataclass(frozen=True, slots=True)
class RuleWarning:
    """A warning and its rule."""

    rule: Rule
    text: str


class Report:
    """The errors and warnings about one object; `checked` is the object with the right types."""

    __slots__ = ("checked", "hints", "refusals", "remarks")

    def __init__(self) -> None:
        self.checked: Object | None = None
        self.refusals: list[Violation] = []
        self.remarks: list[RuleWarning] = []
        self.hints = Hints()

    def refuse(self, rule: Rule, error: FieldError) -> None:
        """Add an error; raises EnoughError if it is the last one possible."""
        self.refusals.append(Violation(rule, error))
        if self.is_full:
            raise EnoughError

    @property
    def is_full(self) -> bool:
        """Whether the validation stopped before its end because of too many errors."""
        return len(self.refusals) >= MAX_REFUSALS

    def add(self, rule: Rule, path: Path, value: object = "", /, **words: object) -> None:
        """Add the error of a rule at the field at `path`."""
        self.refuse(rule, rule.at(path, value, **words))

    def unsupported(self, rule: Rule, path: Path, value: str, known: tuple[str, ...]) -> None:
        """Add the error of a value outside a closed set at `path`."""
        self.refuse(rule, rule.unsupported(path, value, known))

    def missing(self, rule: Rule, path: Path, value: str, known: Iterable[str]) -> None:
        """Add the error of a reference to a missing name at `path`."""
        hint = self.hints.did_you_mean(value, known).removeprefix("; ")
        self.refuse(rule, rule.missing(path, value, hint))

    def warn(self, rule: Rule, path: Path, /, **words: object) -> None:
        """Add a warning about the field at `path`."""
        if len(self.remarks) < MAX_REMARKS:
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
            str(found.error): replace(found.error, remedy=found.rule.remedy)
            for found in self.refusals
        }
        warnings = dict.fromkeys(found.text for found in self.remarks)
        return Decision(
            errors=tuple(errors.values()),
            warnings=tuple(warnings),
            checked=None if errors else self.checked,
        )
