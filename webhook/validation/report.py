"""Where validators put what they find.

Keeps findings in the order in which they were made, each once; judges nothing.
"""

from hyperjob.api.field import FieldError
from webhook.outcome import ACCEPTED, Outcome
from webhook.validation.place import Path
from webhook.validation.rules import Rule


class Report:
    """The errors and warnings about one object, collected."""

    __slots__ = ("errors", "warnings")

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []

    def add(self, rule: Rule, path: Path, value: object = "", /, **words: object) -> None:
        """Note that the field at `path` breaks a rule."""
        self.errors.append(rule.at(path, value, **words))

    def warn(self, rule: Rule, path: Path, /, **words: object) -> None:
        """Note something about the field at `path` that is legal and may surprise."""
        self.warnings.append(rule.warning(path, **words))

    def outcome(self) -> Outcome:
        """Return the findings, repeats removed."""
        if not self.errors and not self.warnings:
            return ACCEPTED
        errors = {str(error): error for error in self.errors}
        return Outcome(tuple(errors.values()), tuple(dict.fromkeys(self.warnings)))
