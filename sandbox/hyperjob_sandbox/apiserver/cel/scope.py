"""What a running expression works with: the variables' values and a bound on its steps."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from hyperjob_sandbox.apiserver.cel.functions import CelError, overload
from hyperjob_sandbox.apiserver.jsonvalue import Json

MAX_STEPS: Final = 1_000_000


class Scope(dict[str, Json]):
    """The variables' values while an expression runs, and how many steps it has left."""

    __slots__ = ("left",)

    def __init__(self, values: Mapping[str, Json]) -> None:
        super().__init__(values)
        self.left = MAX_STEPS

    def step(self) -> None:
        """Count one step of a loop."""
        self.left -= 1
        if self.left < 0:
            raise CelError("operation cancelled: actual cost limit exceeded")


Run: TypeAlias = Callable[[Scope], Json]


def truth(run: Run, scope: Scope) -> bool:
    """Return what a closure says, which must be true or false."""
    value = run(scope)
    if value is not True and value is not False:
        raise overload()
    return bool(value)
