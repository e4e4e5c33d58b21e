"""Where validators put what they find.

Keeps findings in the order in which they were made, each once; judges nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from hyperjob.api.field import FieldError, Path
from hyperjob.api.meta import Object
from webhook.decision import Decision
from webhook.validation.rules import Rule
from webhook.validation.suggest import Hints

MAX_REFUSALS: Final = 500
"""Errors after which an object is not looked at any further; an answer has 200 of them."""
MAX_REMARKS: Final = 500
"""Warnings that are kept; an answer has room for 4,096 characters of them."""


class EnoughError(Exception):
    """So much is wrong with an object that the rest is not looked at."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error, and the rule that was broken."""

    rule: Rule
    error: FieldError


@dataclass(frozen=True, slots=True)
class Remark:
    """A warning, and the rule that it comes from."""

    rule: Rule
    text: str


class Report:
    """The errors and warnings about one object, collected; `checked` is it in the right types."""

    __slots__ = ("checked", "hints", "refusals", "remarks")

    def __init__(self) -> None:
        self.checked: Object | None = None
        self.refusals: list[Refusal] = []
        self.remarks: list[Remark] = []
        self.hints = Hints()

    def refuse(self, rule: Rule, error: FieldError) -> None:
        """Note an error; raises EnoughError where it is the last that is looked for."""
        self.refusals.append(Refusal(rule, error))
        if self.is_full:
            raise EnoughError

    @property
    def is_full(self) -> bool:
        """Whether there are so many errors that not all were looked for."""
        return len(self.refusals) >= MAX_REFUSALS

    def add(self, rule: Rule, path: Path, value: object = "", /, **words: object) -> None:
        """Note that the field at `path` breaks a rule."""
        self.refuse(rule, rule.at(path, value, **words))

    def unsupported(self, rule: Rule, path: Path, value: str, known: tuple[str, ...]) -> None:
        """Note that the field at `path` has a value outside a closed set."""
        self.refuse(rule, rule.unsupported(path, value, known))

    def missing(self, rule: Rule, path: Path, value: str, known: Iterable[str]) -> None:
        """Note that the field at `path` names something that is not there."""
        hint = self.hints.did_you_mean(value, known).removeprefix("; ")
        self.refuse(rule, rule.missing(path, value, hint))

    def warn(self, rule: Rule, path: Path, /, **words: object) -> None:
        """Note something about the field at `path` that is legal and may surprise."""
        if len(self.remarks) < MAX_REMARKS:
            self.remarks.append(Remark(rule, rule.warning(path, **words)))

    def take(
        self,
        other: "Report",
        *,
        refusal: Callable[[FieldError], bool] = lambda _: True,
        remark: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Take over the findings of another report that the filters let pass."""
        self.refusals.extend(found for found in other.refusals if refusal(found.error))
        self.remarks.extend(found for found in other.remarks if remark(found.text))

    def decision(self) -> Decision:
        """Return the findings, repeats removed."""
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
