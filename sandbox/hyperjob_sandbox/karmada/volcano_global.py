"""Volcano Global's dispatcher: releases suspended bindings by queue, priority and capacity.

As in the real one, a release replaces the whole suspension, whatever else it held; a binding
without replicas counts as zero; a finished job keeps its share until it is deleted.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import QUEUES, RESOURCE_BINDINGS, VCJOBS, key_of, split_key
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.objects import is_going

_DEFAULT_QUEUE: Final = "default"
_RELEASED: Final = [{"op": "add", "path": "/spec/suspension", "value": {"scheduling": False}}]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A binding as the dispatcher sees it: of which queue, how urgent, how big, since when."""

    key: str
    queue: str
    priority: int
    created: str
    request: resources.Amounts
    suspended: bool


def dispatch(
    candidates: list[Candidate], queues: Mapping[str, Object], total: Mapping[str, int]
) -> list[str]:
    """Return the keys of the bindings to release now, in order.

    Queues take turns by priority; in a queue the higher job priority goes first, then the older.
    Pure.
    """
    allocated: dict[str, resources.Amounts] = defaultdict(Counter)
    waiting: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.suspended and candidate.queue in queues:
            waiting[candidate.queue].append(candidate)
        elif not candidate.suspended:
            allocated[candidate.queue].update(candidate.request)
    order = sorted(waiting, key=lambda name: (-_priority(queues[name]), name))
    for name in order:
        waiting[name].sort(key=lambda each: (-each.priority, each.created, each.key))
    released: list[str] = []
    while order:
        for name in list(order):
            candidate = waiting[name].pop(0)
            if _fits(candidate, allocated[name], queues[name], total):
                allocated[name].update(candidate.request)
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
        request=request,
        suspended=_is_suspended(binding),
    )


class Dispatcher:
    """Runs `dispatch` once a period; `run()` belongs in a TaskGroup."""

    def __init__(self, caches: Caches, *, period: float) -> None:
        self._caches = caches
        self._period = period

    async def run(self) -> None:
        """Dispatch until cancelled."""
        while True:
            await asyncio.sleep(self._period)
            bindings = self._caches[RESOURCE_BINDINGS].items()
            if not any(map(_is_suspended, bindings)):
                continue
            queues = {key_of(queue): queue for queue in self._caches[QUEUES].items()}
            candidates = [each for binding in bindings if (each := self._candidate(binding))]
            released = dispatch(candidates, queues, self._total())
            await asyncio.gather(*map(self._release, released))

    def _candidate(self, binding: Object) -> Candidate | None:
        reference: Object = binding["spec"]["resource"]
        if is_going(binding) or reference["kind"] != VCJOBS.kind:
            return None
        job = self._caches.template(reference)
        if job is None:
            return None
        name = job["spec"].get("priorityClassName")
        found = self._caches.priority_classes.get(name) if name else {}
        if found is None:
            return None  # skipped in every round, without a message
        return candidate_of(binding, job=job, priority=int(found.get("value") or 0))

    def _total(self) -> resources.Amounts:
        statuses = [each.get("status") or {} for each in self._caches.clusters.items()]
        summaries = [status.get("resourceSummary") or {} for status in statuses]
        return resources.total(resources.parse(each.get("allocatable")) for each in summaries)

    async def _release(self, key: str) -> None:
        namespace, name = split_key(key)
        with suppress(KubeError):  # the next round looks at what is there then
            await self._caches.kube.patch(
                RESOURCE_BINDINGS, name, _RELEASED, kind=PatchType.JSON, namespace=namespace
            )


def _is_suspended(binding: Object) -> bool:
    return bool((binding["spec"].get("suspension") or {}).get("scheduling"))


def _priority(queue: Object) -> int:
    return int((queue.get("spec") or {}).get("priority") or 0)


def _fits(
    candidate: Candidate, allocated: resources.Amounts, queue: Object, total: Mapping[str, int]
) -> bool:
    """Tell whether a queue may take a binding: only what it asks for counts."""
    capability = resources.parse((queue.get("spec") or {}).get("capability"))
    return all(
        allocated[name] + amount <= min(total.get(name, 0), capability.get(name, inf))
        for name, amount in candidate.request.items()
        if amount
    )
