"""Which HyperJob has what on which cluster, kept up to date one HyperJob at a time. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hyperjob.api.phases import JobPhase
from hyperjob.client.summary import SubJob
from hyperjob.ui.rows import Row
from hyperjob.ui.visitor import Scope

Where: TypeAlias = tuple[str, str]
"""A cluster and an accelerator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one HyperJob, `key`, has of one accelerator on one cluster."""

    key: str
    queue: str
    running: int
    reserved: int


class Holdings:
    """All parts, by cluster and accelerator."""

    def __init__(self) -> None:
        self._parts: dict[Where, dict[str, Part]] = {}
        self._where: dict[str, Sequence[Where]] = {}

    def change(self, key: str, row: Row | None) -> None:
        """Take a change of one HyperJob; None: it is gone."""
        for where in self._where.pop(key, ()):
            there = self._parts[where]
            del there[key]
            if not there:
                del self._parts[where]
        parts = parts_of(row) if row is not None else {}
        for where, part in parts.items():
            self._parts.setdefault(where, {})[key] = part
        if parts:
            self._where[key] = tuple(parts)

    def of(self, scope: Scope) -> dict[Where, list[Part]]:
        """Give the parts of the HyperJobs that a visitor may see."""
        return {
            where: [part for key, part in parts.items() if _visible(scope, key)]
            for where, parts in self._parts.items()
        }


def parts_of(row: Row) -> dict[Where, Part]:
    """Say by cluster and accelerator what one HyperJob takes."""
    found: dict[Where, Part] = {}
    summary = row.summary
    for job in summary.jobs:
        accelerator, number = summary.accelerators(job)
        if not number or not job.cluster or job.has_ended:
            continue
        group = summary.group(job.group)
        before = found.get((job.cluster, accelerator))
        runs = number if _has_started(job) else 0
        found[job.cluster, accelerator] = Part(
            key=row.key,
            queue=group.queue if group is not None else "default",
            running=runs + (before.running if before else 0),
            reserved=number - runs + (before.reserved if before else 0),
        )
    return found


def _visible(scope: Scope, key: str) -> bool:
    return scope.namespaces is None or key.partition("/")[0] in scope.namespaces


def _has_started(job: SubJob) -> bool:
    """Tell whether a sub-job is in its cluster, and not merely placed or held."""
    return JobPhase(job.phase) is not JobPhase.UNKNOWN
