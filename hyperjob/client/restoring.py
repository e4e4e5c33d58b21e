"""Correct what differs between a Karmada that was put back from a backup and its members."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from hyperjob.client.changing import patch
from hyperjob.client.restored import Difference, Kind
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.wire import at, mapping, objects, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import AlreadyExists, NotFound
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
)
from hyperjob_engine.expansion.objects import taken_over
from hyperjob_engine.model.parse import parse_hyperjob

_WORKS_OF: Final = "karmada-es-"
_BINDING: Final = "resourcebinding.karmada.io/name"
_BINDING_NAMESPACE: Final = "resourcebinding.karmada.io/namespace"
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
                body: Object = {"spec": {"suspend": True}}
                await patch(kube, each.namespace, each.hyperjob, body)
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
    owner = await kube.get(HYPERJOBS, each.hyperjob, namespace=each.namespace)
    member = kube.member(each.found)
    try:
        running = await member.get(VCJOBS, each.name, namespace=each.namespace)
    except NotFound:
        return
    if at(owner, "spec", "suspend") is True:
        await patch(kube, each.namespace, each.hyperjob, {"spec": {"suspend": False}})
        said(f"HyperJob {each.namespace}/{each.hyperjob} is resumed")
    policy, job = taken_over(parse_hyperjob(owner), running, each.found)
    try:
        await kube.create(PROPAGATION_POLICIES, policy)
    except AlreadyExists:
        body: Object = {"spec": {"placement": policy["spec"]["placement"]}}
        await patch(kube, each.namespace, each.name, body, resource=PROPAGATION_POLICIES)
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
    await patch(kube, each.namespace, each.name, body, resource=PROPAGATION_POLICIES)
    name = binding_name(each.name)
    try:
        binding = await kube.get(RESOURCE_BINDINGS, name, namespace=each.namespace)
    except NotFound:
        return
    clusters = [
        {**target, "name": each.found} for target in objects(at(binding, "spec", "clusters"))
    ]
    body["spec"]["clusters"] = clusters
    await patch(kube, each.namespace, name, body, resource=RESOURCE_BINDINGS)
    await _without_works(kube, each, works)


async def _works(kube: Kube, clusters: Iterable[str]) -> Works:
    """Return the Works of the clusters by cluster and ResourceBinding."""
    found: dict[tuple[str, str, str], list[Object]] = {}
    for cluster in sorted(clusters):
        for work in (await kube.list(WORKS, namespace=f"{_WORKS_OF}{cluster}")).items:
            notes = mapping(at(work, "metadata", "annotations"))
            binding = string(notes.get(_BINDING_NAMESPACE)), string(notes.get(_BINDING))
            found.setdefault((cluster, *binding), []).append(work)
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
