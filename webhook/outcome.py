"""What validation found out about an object.

A value only; it neither decides nor prints.
"""

from dataclasses import dataclass

from hyperjob.api.field import FieldError


@dataclass(frozen=True, slots=True)
class Outcome:
    """Every reason to refuse an object, and what its author should know although it is accepted."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the object may be stored."""
        return not self.errors


ACCEPTED = Outcome()
