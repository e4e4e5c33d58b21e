"""What differs between a Karmada API server that was put back from a backup and its members.

A backup knows nothing of what came after it. Karmada carries out the restored objects: it starts a
sub-job in the cluster that it has left, and starts again what was deleted or suspended since. The
controller starts a second time what it has admitted since. `differences` finds all three in the
vcjobs of the members; `correct` prevents them, while Karmada's controller manager and HyperJob's
controller do not run.
"""

import asyncio
import contextlib
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hyperjob.client.reading import Target, answers
from hyperjob.client.requests import patch
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    LABEL_HYPERJOB,
    binding_name,
    bound_to,
    works_namespace,
)
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import at, mapping, objects, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import AlreadyExists, NotFound
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
    Resource,
    key_of,
)
from hyperjob_engine.expansion.objects import taken_over
from hyperjob_engine.model.parse import parse_hyperjob, pinned_clusters

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
        phase=_phase(there),
    )


def _hyperjob(job: Object) -> str:
    return string(at(job, "metadata", "labels", LABEL_HYPERJOB))


def _phase(obj: Object | None) -> str:
    return string(at(obj, "status", "state", "phase"))


def is_over(phase: str) -> bool:
    """Return whether a vcjob of this phase does not run again."""
    return JobPhase(phase).is_terminal


def _is_at_rest(restored: Restored, namespace: str, name: str) -> bool:
    """Return whether a HyperJob starts nothing: it has ended or is suspended."""
    owner = restored.hyperjobs.get(f"{namespace}/{name}")
    return _has_ended(owner) or at(owner, "spec", "suspend") is True


def _has_ended(owner: Object | None) -> bool:
    return _phase(owner) in (Phase.COMPLETED, Phase.FAILED)


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

    async def one(cluster: str) -> list[Object]:
        member = kube.member(cluster, time_limit=_MEMBER_SECONDS)
        return (await member.list(VCJOBS, label_selector=LABEL_HYPERJOB)).items

    names = sorted(key_of(each) for each in (await kube.list(CLUSTERS)).items)
    members, errors = await answers(one, names, most=_AT_ONCE)
    unread = {cluster: error.message for cluster, error in errors.items()}
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


Works = Mapping[tuple[str, str, str], Sequence[Object]]


async def correct(
    kube: Kube, found: Sequence[Difference], *, said: Callable[[str], None] = lambda _: None
) -> None:
    """Pin and adopt the vcjobs that members run, and suspend HyperJobs that would start again.

    `said` gets a sentence for each change. A second call changes nothing more. Raises KubeError.
    """
    suspended: set[tuple[str, str]] = set()
    works = await _works(kube, {each.expected for each in found if each.expected})
    for each in found:
        if each.kind is Kind.ELSEWHERE:
            await _pin_to(kube, each, works)
            said(f"vcjob {each.namespace}/{each.name} is pinned to {each.found}, where it is")
        elif each.suspends:
            if (owner := (each.namespace, each.hyperjob)) not in suspended:
                suspended.add(owner)
                await patch(Target(kube, *owner), {"spec": {"suspend": True}})
                said(f"HyperJob {each.namespace}/{each.hyperjob} is suspended")
            await _without_works(kube, each, works)
        elif each.adopts:
            await _adopt(kube, each, said)


async def _adopt(kube: Kube, each: Difference, said: Callable[[str], None]) -> None:
    """Create policy and vcjob in Karmada for a vcjob that a member has.

    A HyperJob that was suspended at the time of the backup was resumed since. It is resumed first:
    the controller deletes the vcjobs of a suspended HyperJob.
    """
    if await _is_being_deleted(kube, each):
        said(f"vcjob {each.namespace}/{each.name} is being deleted in {each.found}")
        return
    target = Target(kube, each.namespace, each.hyperjob)
    owner = await target.get()
    member = kube.member(each.found)
    try:
        running = await member.get(VCJOBS, each.name, namespace=each.namespace)
    except NotFound:
        return
    if at(owner, "spec", "suspend") is True:
        await patch(target, {"spec": {"suspend": False}})
        said(f"HyperJob {each.namespace}/{each.hyperjob} is resumed")
    policy, job = taken_over(parse_hyperjob(owner), running, each.found)
    try:
        await kube.create(PROPAGATION_POLICIES, policy)
    except AlreadyExists:
        body: Object = {"spec": {"placement": policy["spec"]["placement"]}}
        await patch(replace(target, name=each.name), body, resource=PROPAGATION_POLICIES)
    with contextlib.suppress(AlreadyExists):
        await kube.create(VCJOBS, job)
    said(f"vcjob {each.namespace}/{each.name} is known to Karmada again, in {each.found}")


async def _is_being_deleted(kube: Kube, each: Difference) -> bool:
    """Return whether Karmada has no vcjob but its ResourceBinding: it deletes the member's."""
    try:
        await kube.get(RESOURCE_BINDINGS, binding_name(each.name), namespace=each.namespace)
    except NotFound:
        return False
    return True


async def _pin_to(kube: Kube, each: Difference, works: Works) -> None:
    """Move policy, binding and Work to the cluster that has the vcjob.

    The Work goes last: Karmada must not make it again for the former cluster.
    """
    policy = await kube.get(PROPAGATION_POLICIES, each.name, namespace=each.namespace)
    placement = mapping(at(policy, "spec", "placement"))
    affinities = [
        {**affinity, "clusterNames": [each.found]}
        for affinity in objects(placement.get("clusterAffinities"))
    ]
    body: Object = {"spec": {"placement": {"clusterAffinities": affinities}}}
    target = Target(kube, each.namespace, each.name)
    await patch(target, body, resource=PROPAGATION_POLICIES)
    name = binding_name(each.name)
    try:
        binding = await kube.get(RESOURCE_BINDINGS, name, namespace=each.namespace)
    except NotFound:
        return
    clusters = [
        {**target, "name": each.found} for target in objects(at(binding, "spec", "clusters"))
    ]
    body["spec"]["clusters"] = clusters
    await patch(replace(target, name=name), body, resource=RESOURCE_BINDINGS)
    await _without_works(kube, each, works)


async def _works(kube: Kube, clusters: Iterable[str]) -> Works:
    """Return the Works of the clusters by cluster and ResourceBinding."""
    found: dict[tuple[str, str, str], list[Object]] = {}
    for cluster in sorted(clusters):
        for work in (await kube.list(WORKS, namespace=works_namespace(cluster))).items:
            found.setdefault((cluster, *bound_to(work)), []).append(work)
    return found


async def _without_works(kube: Kube, each: Difference, works: Works) -> None:
    """Delete the listed Works of a vcjob for the cluster in which Karmada would start it.

    `works` is the listing from before all changes. A Work that is gone already is no error. A new
    Work of the same name has another uid: it stays, and Conflict is raised. Raises KubeError for
    other failures. A Work that is deleted while Karmada's controller manager is away starts
    nothing.
    """
    for work in works.get((each.expected, each.namespace, binding_name(each.name)), ()):
        metadata = work["metadata"]
        with contextlib.suppress(NotFound):
            await kube.delete(
                WORKS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"]
            )
