"""The type of a validation rule: its id, its message, its cause and its remedy.

Every message of the webhook's validation is a Rule, declared beside the code that applies it. The
page docs/messages.md is generated from all rules.
"""

from dataclasses import dataclass
from typing import Final

from hyperjob_core.api import field
from hyperjob_core.api.field import ErrorType, FieldError, Path
from hyperjob_rules.validation.suggest import did_you_mean

REQUIRED: Final = ErrorType.REQUIRED
INVALID: Final = ErrorType.INVALID
NOT_SUPPORTED: Final = ErrorType.NOT_SUPPORTED
DUPLICATE: Final = ErrorType.DUPLICATE
FORBIDDEN: Final = ErrorType.FORBIDDEN
TOO_LONG: Final = ErrorType.TOO_LONG
TOO_MANY: Final = ErrorType.TOO_MANY
NOT_FOUND: Final = ErrorType.NOT_FOUND
TYPE_INVALID: Final = ErrorType.TYPE_INVALID
WARNING: Final = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `form` is the message, with varying words in braces; without `kind` it warns."""

    id: str
    kind: ErrorType | None
    form: str
    cause: str
    remedy: str

    def at(self, path: Path, value: object = "", /, **words: object) -> FieldError:
        """Return the error of this rule at a field; raises ValueError for a warning."""
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
        error = field.not_supported(path, value, supported)
        hint = did_you_mean(value, supported)
        return FieldError(error.type, error.field, value, error.detail + hint)

    def missing(self, path: Path, value: str, hint: str) -> FieldError:
        """Return the error of a reference to a missing name, with a hint."""
        return FieldError(ErrorType.NOT_FOUND, str(path), value, hint)


_RULES: Final[dict[str, Rule]] = {}


def rule(name: str, kind: ErrorType | None, form: str, cause: str, remedy: str) -> Rule:
    """Declare a rule; raises ValueError if its id exists already.

    The id is the row of the specification that the rule belongs to and, where a row has several
    rules, a dot and a name: `V5`, `V4.min-available`, `V8.Container.image.required`.
    """
    if name in _RULES:
        raise ValueError(f"two rules have the id {name}")
    return _RULES.setdefault(name, Rule(name, kind, form, cause, remedy))


def declared() -> tuple[Rule, ...]:
    """Return the rules of all modules that have been imported, in the order of their ids."""
    return tuple(sorted(_RULES.values(), key=lambda known: _sort_key(known.id)))


def _sort_key(name: str) -> tuple[str, int, str]:
    row, _, rest = name.partition(".")
    return row[:1], int(row[1:]), rest
