"""The webhook's decision about an object, which every handler returns."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from hyperjob.api.field import FieldError
from hyperjob.api.meta import Object
from webhook.patch import JsonPatchOp


class Decision(NamedTuple):
    """Whether an object may be stored: not with errors, and changed where there is a patch.

    Warnings are for the author of an object that is accepted.
    """

    patch: Sequence[JsonPatchOp] = ()
    errors: Sequence[FieldError] = ()
    warnings: Sequence[str] = ()
    checked: Object | None = None
    """A new object that is accepted, with the right types throughout; None: none was checked."""

    @property
    def allowed(self) -> bool:
        """Whether the request may go on."""
        return not self.errors


ALLOWED: Final = Decision()
