"""Volcano Global's dispatcher: releases suspended bindings by queue, priority and capacity.

Its quirks are kept on purpose: a release replaces the whole suspension, whatever else it held; a
binding without replicas counts as zero; a finished job keeps its share until it is deleted. Its
webhook's half is in `reviews`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import Kube, PatchType
from hyperjob.kube.errors import Conflict, Invalid, KubeError, NotFound
from hyperjob.kube.resources import (
    CLUSTERS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    key_of,
)
from hyperjob_sandbox.karmada.caches import Caches, reference_key
from hyperjob_sandbox.member import resources

Amounts = dict[str, int]
_DEFAULT_QUEUE: Final = "default"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A binding as the dispatcher sees it: of which queue, how urgent, how big, since when."""

    key: str
    queue: str
    priority: int
    created: str
    request: tuple[tuple[str, int], ...]
    suspended: bool


def dispatch(
    candidates: list[Candidate], queues: Mapping[str, Object], total: Amounts
) -> list[str]:
    """Return the keys of the bindings to release now, in order.

    Queues take turns by priority; in a queue the higher job priority goes first, then the older.
    Pure.
    """
    allocated: dict[str, Amounts] = defaultdict(dict)
    waiting: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.queue not in queues:
            continue
        if candidate.suspended:
            waiting[candidate.queue].append(candidate)
        else:
            _add(allocated[candidate.queue], candidate)
    order = sorted(waiting, key=lambda name: (-_priority(queues[name]), name))
    for name in order:
        waiting[name].sort(key=lambda each: (-each.priority, each.created, each.key))
    released: list[str] = []
    while order:
        for name in list(order):
            candidate = waiting[name].pop(0)
            if _fits(candidate, allocated[name], queues[name], total):
                _add(allocated[name], candidate)
                released.append(candidate.key)
            if not waiting[name]:
                order.remove(name)
    return released


def candidate_of(binding: Object, *, job: Object, priority: int) -> Candidate:
    """Return how the dispatcher sees the binding of a vcjob. Pure."""
    spec: Object = binding["spec"]
    required: Object = (spec.get("replicaRequirements") or {}).get("resourceRequest") or {}
    request = resources.times(resources.parse(required), int(spec.get("replicas") or 0))
    return Candidate(
        key=key_of(binding),
        queue=str(job["spec"].get("queue") or _DEFAULT_QUEUE),
        priority=priority,
        created=str(binding["metadata"]["creationTimestamp"]),
        request=tuple((name, amount.nano) for name, amount in request.items() if amount),
        suspended=bool((spec.get("suspension") or {}).get("scheduling")),
    )


class Dispatcher:
    """Runs `dispatch` once a period; `run()` belongs in a TaskGroup."""

    def __init__(self, kube: Kube, caches: Caches, *, period: float) -> None:
        self._kube = kube
        self._caches = caches
        self._period = period
        self._priority_classes = caches.add(PRIORITY_CLASSES)

    async def run(self) -> None:
        """Dispatch until cancelled."""
        while True:
            await asyncio.sleep(self._period)
            bindings = self._caches[RESOURCE_BINDINGS].items()
            if not any(_is_suspended(binding) for binding in bindings):
                continue
            queues = {each["metadata"]["name"]: each for each in self._caches[QUEUES].items()}
            candidates = [
                candidate for binding in bindings if (candidate := self._candidate(binding))
            ]
            released = dispatch(candidates, queues, self._total())
            await asyncio.gather(*map(self._release, released))

    def _candidate(self, binding: Object) -> Candidate | None:
        reference: Object = binding["spec"]["resource"]
        if binding["metadata"].get("deletionTimestamp") or reference["kind"] != VCJOBS.kind:
            return None
        job = self._caches[VCJOBS].get(reference_key(reference))
        if job is None:
            return None
        name = job["spec"].get("priorityClassName")
        if not name:
            return candidate_of(binding, job=job, priority=0)
        priority_class = self._priority_classes.get(name)
        if priority_class is None:
            return None  # skipped in every round, without a message
        return candidate_of(binding, job=job, priority=int(priority_class.get("value") or 0))

    def _total(self) -> Amounts:
        lists = [
            resources.parse(
                ((each.get("status") or {}).get("resourceSummary") or {}).get("allocatable")
            )
            for each in self._caches[CLUSTERS].items()
        ]
        return {name: amount.nano for name, amount in resources.total(lists).items()}

    async def _release(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        operations: list[Object] = [
            {"op": "add", "path": "/spec/suspension", "value": {"scheduling": False}}
        ]
        try:
            await self._kube.patch(
                RESOURCE_BINDINGS,
                name,
                operations,
                kind=PatchType.JSON,
                namespace=namespace,
            )
        except (NotFound, Conflict, Invalid):
            return  # the next round looks at what is there then
        except KubeError:
            return


def _is_suspended(binding: Object) -> bool:
    return bool((binding["spec"].get("suspension") or {}).get("scheduling"))


def _priority(queue: Object) -> int:
    return int((queue.get("spec") or {}).get("priority") or 0)


def _add(allocated: Amounts, candidate: Candidate) -> None:
    for name, amount in candidate.request:
        allocated[name] = allocated.get(name, 0) + amount


def _fits(candidate: Candidate, allocated: Amounts, queue: Object, total: Amounts) -> bool:
    """Tell whether a queue may take a binding: only what it asks for counts."""
    capability = {
        name: amount.nano
        for name, amount in resources.parse((queue.get("spec") or {}).get("capability")).items()
    }
    for name, amount in candidate.request:
        limit = min(total.get(name, 0), capability.get(name, total.get(name, 0)))
        if allocated.get(name, 0) + amount > limit:
            return False
    return True
