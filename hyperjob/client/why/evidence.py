"""The values that an explanation is made from, and the explanation itself."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hyperjob.client.reading import Reading, items
from hyperjob.client.summary import Summary
from hyperjob_core.api.leader import Leader, leader_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import string, timestamp
from hyperjob_core.kube.errors import KubeError
from hyperjob_engine.reasons.pods import PodsRefused

_PATIENCE: Final = timedelta(seconds=15)
"""The age of an unobserved change after which the controller counts as missing."""


class Outcome(enum.StrEnum):
    """The result of an explanation, which decides the exit code."""

    FINE = "Fine"
    WAITS = "Waits"
    NEEDS_HELP = "NeedsHelp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A HyperJob and the objects around it; an error in place of objects that cannot be read.

    `pods` and `pods_refused` are what members have, by sub-job.
    """

    now: datetime
    summary: Summary
    vcjobs: Reading = field(default_factory=list)
    bindings: Reading = field(default_factory=list)
    events: Reading = field(default_factory=list)
    lease: Reading = field(default_factory=list)
    pods: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    pod_errors: Mapping[str, KubeError] = field(default_factory=dict)
    pods_refused: Mapping[str, PodsRefused] = field(default_factory=dict)

    @property
    def leader(self) -> Leader | None:
        """The content of the controller's Lease; None where the Lease cannot be read."""
        found = items(self.lease)
        return leader_of(found[0], now=self.now) if found else None

    def is_old(self, time: str) -> bool:
        """Return whether a change is so old that a controller would have acted on it."""
        moment = timestamp(time)
        return moment is not None and self.now - moment > _PATIENCE

    def created(self, job: JobStatus) -> str:
        """Return when the vcjob of a sub-job was created; empty without a vcjob."""
        times = {
            each["metadata"]["name"]: each["metadata"].get("creationTimestamp")
            for each in items(self.vcjobs)
        }
        return string(times.get(job.name))

    def unstarted(self) -> list[JobStatus]:
        """Return the sub-jobs that neither run nor have ended."""
        started = ("Running", "Completing")
        return [job for job in self.summary.jobs if not job.has_ended and job.phase not in started]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A reason why the HyperJob does not run; `next` is the command to type.

    `log` has the last lines of the container that failed, such as a traceback.
    """

    reason: str
    message: str
    next: str = ""
    needs_help: bool = False
    log: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """The answer: a headline, the causes, the decisive cause first, and the unreadable objects."""

    summary: Summary
    outcome: Outcome
    headline: str
    causes: Sequence[Cause]
    unseen: Sequence[str] = ()
    admission: str = ""
    """The queue admission, while the HyperJob waits for it; else empty."""

    def __repr__(self) -> str:
        causes = [
            f"  {cause.reason}: {cause.message}" + (f"\n    {cause.next}" if cause.next else "")
            for cause in self.causes
        ]
        return "\n".join((self.headline, *causes))
