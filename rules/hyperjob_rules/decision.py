"""The webhook's decision about an object, which every handler returns."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from hyperjob_core.api.field import FieldError
from hyperjob_core.api.meta import Object
from hyperjob_rules.patch import JsonPatchOp


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
