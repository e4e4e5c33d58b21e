"""Named checks behind /healthz and /readyz, answered in Kubernetes' own form.

A check is quick, does no I/O and says why it fails; a check that raises has failed.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

Check = Callable[[], str | None]
"""Gives None when all is well, a Remark when it nearly is, or the reason why not."""


class Remark(str):
    """What a check has to say although all is well: the check passes all the same."""

    __slots__ = ()


def ping() -> None:
    """Be well: the process answers."""


@dataclass(frozen=True, slots=True)
class CheckResults:
    """What the checks said: name and reason (None or a Remark when well), in order."""

    name: str
    results: tuple[tuple[str, str | None], ...]

    @property
    def passed(self) -> bool:
        """Return whether every check is well."""
        return all(_is_well(reason) for _, reason in self.results)

    def text(self, *, verbose: bool) -> str:
        """Print `ok`, or a line for each check."""
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
        """Add a check; a name that is taken is a ValueError."""
        if name in self._checks:
            raise ValueError(f"there is a check {name!r} already")
        self._checks[name] = check

    def report(self, *, only: str | None = None, exclude: Collection[str] = ()) -> CheckResults:
        """Run all checks but the excluded, or one; KeyError for an unknown one."""
        chosen = (
            {only: self._checks[only]}
            if only is not None
            else {name: check for name, check in self._checks.items() if name not in exclude}
        )
        return CheckResults(self.name, tuple((name, _run(check)) for name, check in chosen.items()))


def _is_well(reason: str | None) -> bool:
    return reason is None or isinstance(reason, Remark)


def _line(name: str, reason: str | None) -> str:
    if not _is_well(reason):
        return f"[-]{name} failed: {reason}"
    return f"[+]{name} ok" if reason is None else f"[+]{name} ok: {reason}"


def _run(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a broken check is a failed one
        return f"{type(error).__name__}: {error}"
