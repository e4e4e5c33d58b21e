"""Where a field is, put into words only when there is something to say about it.

A valid object has hundreds of fields and no error, so the way down to a field is kept as links
and its text made at the end.
"""

from collections.abc import Iterable
from typing import Final

Step = str | int | tuple[str]


class Path:
    """The place of a field, printed as `hyperjob.api.field.Path` prints it."""

    __slots__ = ("parent", "step")

    def __init__(self, parent: "Path | None" = None, step: Step = "") -> None:
        self.parent = parent
        self.step = step

    def child(self, name: str, *more: str) -> "Path":
        """Return the path of a named field below this one."""
        return Path(self, name).below(more) if more else Path(self, name)

    def index(self, position: int) -> "Path":
        """Return the path of a list item."""
        return Path(self, position)

    def key(self, key: str) -> "Path":
        """Return the path of a map entry."""
        return Path(self, (key,))

    def below(self, steps: Iterable[str | int]) -> "Path":
        """Return the path of a field or item further down."""
        path = self
        for step in steps:
            path = Path(path, step)
        return path

    def __str__(self) -> str:
        parts: list[str] = []
        path: Path | None = self
        while path is not None:
            step = path.step
            match step:
                case str():
                    parts.append(f".{step}" if step else "")
                case int():
                    parts.append(f"[{step}]")
                case (key,):
                    parts.append(f"[{key}]")
            path = path.parent
        return "".join(reversed(parts)).removeprefix(".") or "<nil>"


ROOT: Final = Path()
SPEC: Final = ROOT.child("spec")
METADATA: Final = ROOT.child("metadata")
