"""Named checks of /healthz and /readyz, answered in the format of Kubernetes.

A check must be quick and do no I/O. It returns the reason of a failure; a check that raises has
failed.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

Check = Callable[[], str | None]
"""Returns None or a Remark if the check passes, else the reason."""


class Remark(str):
    """A remark of a check that passes."""

    __slots__ = ()


def ping() -> None:
    """Pass: the process answers."""


@dataclass(frozen=True, slots=True)
class CheckResults:
    """The results of the checks: name and reason (None or a Remark if passed), in order."""

    name: str
    results: tuple[tuple[str, str | None], ...]

    @property
    def passed(self) -> bool:
        """Return whether every check passes."""
        return all(_has_passed(reason) for _, reason in self.results)

    def text(self, *, verbose: bool) -> str:
        """Return `ok`, or a line for each check."""
        if self.passed and not verbose:
            return "ok"
        lines = [_line(name, reason) for name, reason in self.results]
        lines.append(f"{self.name} check {'passed' if self.passed else 'failed'}")
        return "\n".join(lines) + "\n"


class Checks:
    """The checks of one path; `ping` is always the first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._checks: dict[str, Check] = {"ping": ping}

    def __iter__(self) -> Iterator[str]:
        return iter(self._checks)

    def add(self, name: str, check: Check) -> None:
        """Add a check; raises ValueError for a duplicate name."""
        if name in self._checks:
            raise ValueError(f"duplicate check {name!r}")
        self._checks[name] = check

    def report(self, *, only: str | None = None, exclude: Collection[str] = ()) -> CheckResults:
        """Run all checks except excluded checks, or the check `only`; KeyError if it is unknown."""
        chosen = (
            {only: self._checks[only]}
            if only is not None
            else {name: check for name, check in self._checks.items() if name not in exclude}
        )
        return CheckResults(self.name, tuple((name, _run(check)) for name, check in chosen.items()))


def _has_passed(reason: str | None) -> bool:
    return reason is None or isinstance(reason, Remark)


def _line(name: str, reason: str | None) -> str:
    if not _has_passed(reason):
        return f"[-]{name} failed: {reason}"
    return f"[+]{name} ok" if reason is None else f"[+]{name} ok: {reason}"


def _run(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a broken check is a failed one
        return f"{type(error).__name__}: {error}"
