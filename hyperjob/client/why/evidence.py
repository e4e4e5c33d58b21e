"""What an explanation is made from, and what it is. Values only."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from controller.model.wire import timestamp
from hyperjob.api.leader import Leader, leader_of
from hyperjob.api.meta import Object
from hyperjob.client.reading import Reading, items
from hyperjob.client.summary import SubJob, Summary
from hyperjob.kube.errors import KubeError

_PATIENCE: Final = timedelta(seconds=15)
"""How long a change may be unobserved before the controller counts as missing."""


class Outcome(enum.StrEnum):
    """What the answer comes to."""

    FINE = "Fine"
    WAITS = "Waits"
    NEEDS_HELP = "NeedsHelp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was read about one HyperJob; parts that one may not read are errors.

    `lacks_defaults`: it was stored without what HyperJob's webhook fills in.
    """

    now: datetime
    summary: Summary
    vcjobs: Reading = field(default_factory=list)
    bindings: Reading = field(default_factory=list)
    queues: Reading = field(default_factory=list)
    clusters: Reading = field(default_factory=list)
    priority_classes: Reading = field(default_factory=list)
    events: Reading = field(default_factory=list)
    lease: Reading = field(default_factory=list)
    lease_name: str = ""
    lacks_defaults: bool = False
    pods: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    pod_errors: Mapping[str, KubeError] = field(default_factory=dict)
    pod_groups: Mapping[str, Sequence[Object]] = field(default_factory=dict)

    @property
    def leader(self) -> Leader | None:
        """What the controller's Lease says; None where it cannot be seen."""
        found = items(self.lease)
        return leader_of(found[0], now=self.now) if found else None

    def vcjob(self, name: str) -> Object | None:
        """Find the vcjob of a sub-job."""
        return _named(items(self.vcjobs), name)

    def binding(self, name: str) -> Object | None:
        """Find a ResourceBinding."""
        return _named(items(self.bindings), name)

    def queue(self, name: str) -> Object | None:
        """Find a queue."""
        return _named(items(self.queues), name)

    def unstarted(self) -> list[SubJob]:
        """List the sub-jobs that neither run nor have ended."""
        return [
            job
            for job in self.summary.jobs
            if not job.has_ended and job.phase not in ("Running", "Completing")
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that keeps it from running; `next` is the command to type."""

    reason: str
    message: str
    next: str = ""
    needs_help: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer: a headline, the causes with the deciding one first, and what was not readable."""

    summary: Summary
    outcome: Outcome
    headline: str
    causes: Sequence[Cause]
    unseen: Sequence[str] = ()
    admission: str = ""
    """Who confirms that a gang may start, while something waits for that."""


def is_older(time: str, now: datetime) -> bool:
    """Return whether something is older than one waits for it without a word."""
    moment = timestamp(time)
    return moment is not None and now - moment > _PATIENCE


def _named(objects: Sequence[Object], name: str) -> Object | None:
    return next((item for item in objects if item["metadata"]["name"] == name), None)
