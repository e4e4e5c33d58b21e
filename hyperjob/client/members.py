"""Read pods and nodes of the members through Karmada's cluster proxy, and count pods by state."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from hyperjob.client.reading import answers, items, listed
from hyperjob.client.summary import COUNTERS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, count, mapping, natural, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Forbidden, KubeError, NotFound
from hyperjob_core.kube.resources import (
    CORE_EVENTS,
    DEVICES,
    HYPERNODES,
    NODES,
    PODS,
    VCJOBS,
    Resource,
    proxied,
)
from hyperjob_engine.members.facts import FACTS, Fact, refusal_fact
from hyperjob_engine.members.fold import view_of
from hyperjob_engine.members.podtroubles import trouble_of
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.reasons.pods import PodsRefused

_JOB_LABEL: Final = "volcano.sh/job-name"
_MEMBER_SECONDS: Final = 10.0
_FACT: Final = "fact"
_OPTIONAL: Final = (HYPERNODES, *DEVICES)


def log_path(cluster: str, namespace: str, pod: str) -> str:
    """Return the path of a pod's log through Karmada's cluster proxy."""
    return proxied(cluster, PODS.path(namespace, quote(pod, safe=""), "log"))


async def pods_of(kube: Kube, namespace: str, job: JobStatus) -> list[Object]:
    """List the pods of a sub-job in its cluster, ordered by task and index."""
    selector = f"{_JOB_LABEL}={job.name}"
    found = await kube.member(job.cluster).list(PODS, namespace=namespace, label_selector=selector)
    return sorted(found.items, key=_place)


async def pods_of_all(
    kube: Kube, namespace: str, jobs: Sequence[JobStatus]
) -> tuple[dict[str, list[Object]], Mapping[str, KubeError]]:
    """Return the pods of every placed sub-job, and the error for each that cannot be read."""
    placed = {job.name: job for job in jobs if job.cluster}
    return await answers(lambda name: pods_of(kube, namespace, placed[name]), placed)


async def refusals_of_all(
    kube: Kube, namespace: str, jobs: Sequence[JobStatus]
) -> dict[str, PodsRefused]:
    """Return the latest refusal of pods of each sub-job; unreadable Events are left out.

    The Events may be about an earlier vcjob of the name.
    """
    found: dict[str, PodsRefused] = {}
    names = {(job.cluster, job.name) for job in jobs}

    async def one(cluster: str) -> None:
        reading = await listed(
            kube.member(cluster),
            CORE_EVENTS,
            namespace=namespace,
            field_selector=f"involvedObject.kind={VCJOBS.kind}",
        )
        for fact in filter(None, map(refusal_fact, items(reading))):
            name, refused = fact.job.partition("/")[2], fact.refused
            known = found.get(name)
            if (cluster, name) in names and (known is None or known.last < refused.last):
                found[name] = refused

    await asyncio.gather(*(one(cluster) for cluster in {job.cluster for job in jobs}))
    return found


async def views_of(
    kube: Kube, clusters: Iterable[str]
) -> tuple[dict[str, MemberView], dict[str, KubeError]]:
    """Return the nodes of each member with their pods, and the error for each unread member."""
    return await answers(
        lambda name: _view(kube.member(name, time_limit=_MEMBER_SECONDS)), clusters, most=8
    )


async def _view(member: Kube) -> MemberView:
    # The reading of nodes comes first: a pod on an unknown node would hold nothing.
    nodes = await _facts(member, NODES)
    others = (PODS, *_OPTIONAL)
    found = await asyncio.gather(*(_facts(member, resource) for resource in others))
    facts = {NODES: nodes, **dict(zip(others, found, strict=True))}
    return view_of(facts)


async def _facts(member: Kube, resource: Resource) -> list[Fact | None] | None:
    """Return the facts of a resource; None if the member lacks a resource that it may lack."""
    fact = FACTS[resource]
    try:
        found = await member.list(resource, transform=lambda raw: {_FACT: fact(raw)})
    except (NotFound, Forbidden):
        if resource in _OPTIONAL:
            return None
        raise
    return [each[_FACT] for each in found.items]


def _place(pod: Object) -> tuple[str, int, str]:
    """Return the sort key of a pod by task and index: worker-2 comes before worker-10."""
    return task_of(pod), natural(_mark(pod, "volcano.sh/task-index")) or 0, pod["metadata"]["name"]


def task_of(pod: Object) -> str:
    """Return the task of a pod."""
    return _mark(pod, "volcano.sh/task-spec")


def _mark(pod: Object, name: str) -> str:
    """Return what Volcano has written into a label, or an annotation, of a pod."""
    metadata = mapping(pod.get("metadata"))
    return next(
        filter(None, (string(at(metadata, kind, name)) for kind in ("labels", "annotations"))), ""
    )


def pod_counts(job: JobStatus, vcjob: Object | None) -> dict[str, int]:
    """Count the pods of a sub-job by state, in lower case, from the vcjob's status.

    The counters of its tasks add states that its own counters lack. Without any counter, as without
    a vcjob, the HyperJob's status decides: the pods that do not run are pending.
    """
    status = mapping((vcjob or {}).get("status"))
    counts = {name: count(status.get(name)) for name in COUNTERS}
    for tasks in tasks_of(vcjob).values():
        for name, number in tasks.items():
            counts.setdefault(name, 0)
            if not status.get(name):
                counts[name] += number
    if not any(counts.values()):
        counts["running"] = job.running
        if job.cluster and not job.has_ended:
            counts["pending"] = job.pods - job.running
    return {name: number for name, number in counts.items() if number > 0}


def tasks_of(vcjob: Object | None) -> dict[str, dict[str, int]]:
    """Count the pods of each task by state, in lower case."""
    counts = mapping(mapping((vcjob or {}).get("status")).get("taskStatusCount"))
    return {
        str(task): {
            str(state).lower(): count(number)
            for state, number in mapping(mapping(entry).get("phase")).items()
        }
        for task, entry in counts.items()
    }


def pod_trouble(pod: Object) -> str:
    """Return the reason why a pod does not run; empty for a pod without a problem."""
    seen = trouble_of(pod)
    if seen is None or not seen.trouble.words:
        return string(at(pod, "status", "message"))
    trouble = seen.trouble
    words = trouble.words.removeprefix(":").strip()
    return f"{words}: {trouble.detail}" if trouble.detail else words
