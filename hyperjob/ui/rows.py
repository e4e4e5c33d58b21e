"""What is kept in memory of each HyperJob: its summary and what tables need of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from controller.model.reasons import Reason
from controller.model.wire import at, mapping, string, string_map
from controller.queueing.priority import value_of
from controller.queueing.units import OrderInQueue
from hyperjob.api.meta import Object
from hyperjob.api.phases import Phase
from hyperjob.client.summary import Summary, read
from hyperjob.client.tally import waits
from hyperjob.text import shortened

_MESSAGE_LIMIT: Final = 4096
_NOT_IN_LINE: Final = frozenset(
    {
        Reason.WAITING_FOR_DEPENDENCY,
        Reason.GANG_BACK_OFF,
        Reason.INVALID_SPEC,
        Reason.NAME_CONFLICT,
        Reason.REFUSED,
        Reason.BEING_DELETED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One HyperJob; `search` is what a search looks through, in lower case.

    `waits_in` is the queue in whose line it waits, empty when it waits in none. `accelerators` are
    numbers by resource of all sub-jobs together. `version` differs after each change.
    """

    summary: Summary
    labels: Mapping[str, str]
    queues: tuple[str, ...]
    waits_in: str
    accelerators: Mapping[str, int]
    search: str
    version: str

    @property
    def key(self) -> str:
        """Give namespace/name."""
        return self.summary.key


def row_of(hyperjob: Object) -> Row:
    """Read a HyperJob; texts that no person reads to their end are cut."""
    summary = read(hyperjob)
    summary = replace(
        summary,
        message=shortened(summary.message, _MESSAGE_LIMIT),
        jobs=tuple(
            replace(job, message=shortened(job.message, _MESSAGE_LIMIT)) for job in summary.jobs
        ),
        annotations={},
    )
    labels = string_map(mapping(hyperjob.get("metadata")).get("labels"))
    words = [summary.key, summary.reason, *summary.clusters]
    words += [f"{name}={value}" for name, value in labels.items()]
    return Row(
        summary=summary,
        labels=labels,
        queues=tuple(dict.fromkeys(group.queue for group in summary.groups)),
        waits_in=_line_of(summary),
        accelerators=_accelerators(summary),
        search=" ".join(words).lower(),
        version=f"{summary.uid}/{string(at(hyperjob, 'metadata', 'resourceVersion'))}",
    )


def order_of(row: Row, classes: Mapping[str, Object]) -> OrderInQueue:
    """Give the place of a HyperJob among those of its queue: priority, then age."""
    names = {group.priority_class for group in row.summary.groups}
    priority = max((value_of(name, classes) for name in names), default=0)
    return -priority, row.summary.created, row.key


def _line_of(summary: Summary) -> str:
    """Name the queue in whose line a HyperJob waits."""
    if summary.has_ended or summary.deleting or summary.suspend:
        return ""
    if summary.reason in _NOT_IN_LINE:
        return ""
    if not summary.jobs:
        return summary.groups[0].queue if summary.groups else ""
    if summary.phase not in (Phase.PENDING, Phase.QUEUED):
        return ""
    for job in summary.jobs:
        if not job.has_ended and waits(job) and job.reason not in _NOT_IN_LINE:
            group = summary.group(job.group)
            return group.queue if group is not None else "default"
    return ""


def _accelerators(summary: Summary) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for job in summary.jobs:
        name, number = summary.accelerators(job)
        if number:
            found[name] = found.get(name, 0) + number
    if not summary.jobs:
        for group in summary.groups:
            if group.accelerator:
                found[group.accelerator] = found.get(group.accelerator, 0) + group.size
    return found
