"""What differs between a Karmada API server that was put back from a backup and its members.

A backup knows nothing of what came after it. Karmada carries out the restored objects: it starts a
sub-job in the cluster that it has left, and starts again what was deleted or suspended since. The
controller starts a second time what it has admitted since. `differences` finds all three in the
vcjobs of the members; `restoring.correct` prevents them, while Karmada's controller manager and
HyperJob's controller do not run.
"""

import asyncio
import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    VCJOBS,
    Resource,
    key_of,
)
from hyperjob_engine.model.parse import pinned_clusters

_MEMBER_SECONDS: Final = 30.0
_AT_ONCE: Final = 8


class Kind(enum.StrEnum):
    """How a vcjob of a member differs from the Karmada API server."""

    ELSEWHERE = "Elsewhere"
    """A member has the vcjob, and Karmada would start it in another member."""
    TWICE = "Twice"
    """A member has the vcjob beside the member in which Karmada expects it."""
    GONE = "Gone"
    """No member has a vcjob that ran at the time of the backup: Karmada would start it again."""
    UNPLACED = "Unplaced"
    """A member has the vcjob, and Karmada only its HyperJob: it would start in any member."""
    FOREIGN = "Unknown"
    """A member has the vcjob of a HyperJob that the Karmada API server does not have."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Difference:
    """A vcjob that a member and the Karmada API server do not agree about."""

    namespace: str
    name: str
    kind: Kind
    hyperjob: str
    expected: str = ""
    """The cluster in which Karmada starts the vcjob; empty where it has no such vcjob."""
    found: str = ""
    """The cluster that has the vcjob; empty where no member has it."""
    phase: str = ""
    """The phase of the vcjob in the member."""
    suspends: bool = False
    """Whether `correct` suspends the HyperJob, because nothing of it runs where it should."""
    adopts: bool = False
    """Whether `correct` creates policy and vcjob in Karmada for the vcjob that a member has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The objects of the Karmada API server, by `namespace/name`."""

    hyperjobs: Mapping[str, Object]
    jobs: Mapping[str, Object]
    policies: Mapping[str, Object]


@dataclass(frozen=True, slots=True)
class Report:
    """The differences, and the error of each member that could not be read."""

    differences: Sequence[Difference]
    unread: Mapping[str, str] = field(default_factory=dict)


def differences(restored: Restored, members: Mapping[str, Iterable[Object]]) -> list[Difference]:
    """Compare the vcjobs of HyperJobs with those of every member that could be read. Pure.

    `members` has the vcjobs of HyperJobs by cluster. A sub-job that is expected in a cluster which
    `members` lacks is left out.
    """
    places: dict[str, dict[str, Object]] = {}
    for cluster, jobs in members.items():
        for job in jobs:
            places.setdefault(key_of(job), {})[cluster] = job
    found = [
        difference
        for key, job in restored.jobs.items()
        if (difference := _of_known(restored, key, job, places.get(key, {}), members)) is not None
    ]
    for key, where in places.items():
        if key not in restored.jobs:
            found += _of_unknown(restored, where)
    return sorted(_with_suspensions(restored, found))


def _of_known(
    restored: Restored,
    key: str,
    job: Object,
    where: Mapping[str, Object],
    members: Mapping[str, Iterable[Object]],
) -> Difference | None:
    expected = _pin(restored.policies.get(key))
    if is_over(_phase(job)) or expected not in members:
        return None
    if _is_at_rest(restored, job["metadata"]["namespace"], _hyperjob(job)):
        return None
    others = sorted(set(where) - {expected})
    if others:
        kind = Kind.TWICE if expected in where else Kind.ELSEWHERE
        return _difference(kind, job, expected=expected, found=others[0], there=where[others[0]])
    if expected in where or not _phase(job):
        return None
    return _difference(Kind.GONE, job, expected=expected)


def _of_unknown(restored: Restored, where: Mapping[str, Object]) -> Iterable[Difference]:
    """Return a difference for each cluster that has the vcjob; one of them keeps it."""
    kept = min(where, key=lambda cluster: (is_over(_phase(where[cluster])), cluster))
    for cluster, job in where.items():
        owner = restored.hyperjobs.get(f"{job['metadata']['namespace']}/{_hyperjob(job)}")
        yield replace(
            _difference(
                Kind.FOREIGN if owner is None else Kind.UNPLACED, job, found=cluster, there=job
            ),
            adopts=cluster == kept and owner is not None and not _has_ended(owner),
        )


def _with_suspensions(restored: Restored, found: Iterable[Difference]) -> list[Difference]:
    """Mark what `correct` suspends: HyperJobs of which no sub-job is where Karmada expects it."""
    found = list(found)
    gone = {(each.namespace, each.name) for each in found if each.kind is Kind.GONE}
    kept = {
        (job["metadata"]["namespace"], _hyperjob(job))
        for job in restored.jobs.values()
        if (job["metadata"]["namespace"], job["metadata"]["name"]) not in gone
        and not is_over(_phase(job))
    } | {(each.namespace, each.hyperjob) for each in found if each.adopts}

    def suspends(each: Difference) -> bool:
        return each.kind is Kind.GONE and (each.namespace, each.hyperjob) not in kept

    return [replace(each, suspends=suspends(each)) for each in found]


def _difference(
    kind: Kind, job: Object, *, expected: str = "", found: str = "", there: Object | None = None
) -> Difference:
    return Difference(
        namespace=job["metadata"]["namespace"],
        name=job["metadata"]["name"],
        kind=kind,
        hyperjob=_hyperjob(job),
        expected=expected,
        found=found,
        phase=_phase(there) if there is not None else "",
    )


def _hyperjob(job: Object) -> str:
    return string(at(job, "metadata", "labels", LABEL_HYPERJOB))


def _phase(job: Object) -> str:
    return string(at(job, "status", "state", "phase"))


def is_over(phase: str) -> bool:
    """Return whether a vcjob of this phase does not run again."""
    return JobPhase(phase).is_terminal


def _is_at_rest(restored: Restored, namespace: str, name: str) -> bool:
    """Return whether a HyperJob starts nothing: it has ended or is suspended."""
    owner = restored.hyperjobs.get(f"{namespace}/{name}")
    return _has_ended(owner) or at(owner, "spec", "suspend") is True


def _has_ended(owner: Object | None) -> bool:
    return string(at(owner, "status", "state", "phase")) in (Phase.COMPLETED, Phase.FAILED)


def _pin(policy: Object | None) -> str:
    """Return the cluster of a sub-job's policy; empty without exactly one."""
    names = pinned_clusters(at(policy, "spec", "placement"))
    return names[0] if len(names) == 1 else ""


def is_settled(each: Difference) -> bool:
    """Return whether nothing starts because of the difference."""
    if each.kind is Kind.UNPLACED:
        return not each.adopts
    return each.kind is Kind.FOREIGN and is_over(each.phase)


async def report(kube: Kube) -> Report:
    """Read the Karmada API server and all members; return the differences.

    Raises KubeError where the Karmada API server cannot be read.
    """
    restored = await _restored(kube)
    members: dict[str, list[Object]] = {}
    unread: dict[str, str] = {}
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(cluster: str) -> None:
        async with limit:
            try:
                member = kube.member(cluster, time_limit=_MEMBER_SECONDS)
                members[cluster] = (await member.list(VCJOBS, label_selector=LABEL_HYPERJOB)).items
            except KubeError as error:
                unread[cluster] = error.message

    names = [key_of(each) for each in (await kube.list(CLUSTERS)).items]
    await asyncio.gather(*(one(name) for name in sorted(names)))
    return Report(differences(restored, members), unread)


async def _restored(kube: Kube) -> Restored:
    async def of(resource: Resource) -> dict[str, Object]:
        selector = None if resource is HYPERJOBS else LABEL_HYPERJOB
        found = (await kube.list(resource, label_selector=selector)).items
        return {key_of(each): each for each in found}

    hyperjobs, jobs, policies = await asyncio.gather(
        of(HYPERJOBS), of(VCJOBS), of(PROPAGATION_POLICIES)
    )
    return Restored(hyperjobs=hyperjobs, jobs=jobs, policies=policies)
