"""The accelerators of each HyperJob on each cluster, updated one HyperJob at a time. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hyperjob.client.tally import has_started
from hyperjob_page.rows import Row
from hyperjob_page.visitor import Scope

Where: TypeAlias = tuple[str, str]
"""A cluster and an accelerator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The number of an accelerator that a HyperJob, `key`, has on a cluster."""

    key: str
    queue: str
    running: int
    reserved: int


class Holdings:
    """All parts, by cluster and accelerator."""

    def __init__(self) -> None:
        self._parts: dict[Where, dict[str, Holding]] = {}
        self._where: dict[str, Sequence[Where]] = {}
        self.versions: Counter[str] = Counter()
        """Counts changes by cluster."""

    def change(self, key: str, row: Row | None) -> None:
        """Apply a change of a HyperJob; None after its deletion."""
        parts = parts_of(row) if row is not None else {}
        before = {where: self._parts[where][key] for where in self._where.get(key, ())}
        if parts == before:
            return
        for where in before:
            self.versions[where[0]] += 1
            del self._parts[where][key]
        for where, part in parts.items():
            self.versions[where[0]] += 1
            self._parts.setdefault(where, {})[key] = part
        self._where[key] = tuple(parts)
        if not parts:
            del self._where[key]

    def at(self, where: Where, scope: Scope) -> list[Holding]:
        """Return the parts of a cluster and an accelerator, of HyperJobs that a visitor may see."""
        there = self._parts.get(where, {})
        return [part for key, part in there.items() if scope.includes(key.partition("/")[0])]


def parts_of(row: Row) -> dict[Where, Holding]:
    """Return the parts of a HyperJob by cluster and accelerator."""
    found: dict[Where, Holding] = {}
    summary = row.summary
    for job in summary.jobs:
        accelerator, number = summary.accelerators(job)
        if not number or not job.cluster or job.has_ended:
            continue
        group = summary.group(job.replicated_job)
        before = found.get((job.cluster, accelerator))
        runs = number if has_started(job) else 0
        found[job.cluster, accelerator] = Holding(
            key=row.key,
            queue=group.queue if group is not None else "default",
            running=runs + (before.running if before else 0),
            reserved=number - runs + (before.reserved if before else 0),
        )
    return found
