"""The values that an explanation is made from, how they are read, and the explanation itself.

An error replaces objects that cannot be read.
"""

import asyncio
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from hyperjob.client.members import pods_of_all, refusals_of_all
from hyperjob.client.reading import Reading, events_of, items, lease, listed
from hyperjob.client.summary import Summary, read
from hyperjob_core.api.leader import Leader, leader_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import string, timestamp
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import CORE_EVENTS, HYPERJOBS, RESOURCE_BINDINGS, VCJOBS
from hyperjob_engine.reasons.pods import PodsRefused
from hyperjob_engine.reasons.reason import Reason

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

    `pods` and `pods_refused` are what members have, by sub-job; `of_bindings` are the Warnings
    about ResourceBindings, where a sub-job is on its way.
    """

    now: datetime
    summary: Summary
    vcjobs: Reading = field(default_factory=list)
    bindings: Reading = field(default_factory=list)
    events: Reading = field(default_factory=list)
    lease: Reading = field(default_factory=list)
    of_bindings: Reading = field(default_factory=list)
    pods: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    pod_errors: Mapping[str, KubeError] = field(default_factory=dict)
    pods_refused: Mapping[str, PodsRefused] = field(default_factory=dict)

    @property
    def leader(self) -> Leader | None:
        """The content of the controller's Lease; None where the Lease cannot be read."""
        return leader_of(items(self.lease), now=self.now)

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


_JOBS_LOOKED_INTO: Final = 4
ON_ITS_WAY: Final = frozenset({Reason.DISPATCHING, Reason.NOTHING_REPORTED})
"""Reasons of sub-jobs that their members have not reported."""


async def gather(kube: Kube, namespace: str, name: str) -> Evidence:
    """Read a HyperJob and the objects around it; KubeError when the HyperJob cannot be read."""
    hyperjob = await kube.get(HYPERJOBS, name, namespace=namespace)
    summary = read(hyperjob)
    selector = f"{LABEL_HYPERJOB}={name}"
    inspected = _with_pods(summary)
    unstarted = [job for job in inspected if job.phase != JobPhase.RUNNING]
    vcjobs, bindings, leases, (events, karmada), (pods, errors), refusals = await asyncio.gather(
        listed(kube, VCJOBS, namespace=namespace, label_selector=selector),
        listed(kube, RESOURCE_BINDINGS, namespace=namespace),
        lease(kube, of=namespace),
        asyncio.gather(events_of(kube, hyperjob), _warnings(kube, summary)),
        pods_of_all(kube, namespace, inspected),
        refusals_of_all(kube, namespace, unstarted),
    )
    return Evidence(
        now=datetime.now(UTC),
        summary=summary,
        vcjobs=vcjobs,
        bindings=bindings,
        events=events,
        lease=leases,
        of_bindings=karmada,
        pods=pods,
        pod_errors=errors,
        pods_refused=refusals,
    )


async def _warnings(kube: Kube, summary: Summary) -> Reading:
    """Read Karmada's Warnings about bindings while a sub-job is on its way to its member."""
    if not any(job.reason in ON_ITS_WAY for job in summary.jobs):
        return []
    about = "involvedObject.kind=ResourceBinding,type=Warning"
    return await listed(kube, CORE_EVENTS, namespace=summary.namespace, field_selector=about)


def _with_pods(summary: Summary) -> list[JobStatus]:
    """Return the few sub-jobs whose pods to read: those on a cluster, incomplete ones first."""
    started = (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING)
    placed = [job for job in summary.jobs if job.cluster and job.phase in started]
    return sorted(placed, key=lambda job: job.running >= job.pods)[:_JOBS_LOOKED_INTO]
