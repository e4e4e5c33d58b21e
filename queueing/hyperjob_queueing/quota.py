"""Volcano Global's quota: the usage that it counts, and the ResourceBindings it will release.

Volcano Global counts `replicas x request` of every ResourceBinding that is not suspended, also
after the end of the Job. It releases suspended ones by PriorityClass and age, one by one, up to the
queue's capability, without regard to gangs. Source: its capacity plugin, measured with 0.3.0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hyperjob_core.api.wire import at, count, mapping, string
from hyperjob_engine.resources import Resources, accumulate, parse_resources
from hyperjob_queueing.queues import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The request of one ResourceBinding, and its queue.

    `sub_job` is the key of a HyperJob's vcjob; empty for another workload. `waits`: Volcano Global
    has not released it yet.
    """

    queue: str
    request: Resources
    waits: bool
    sub_job: str = ""
    created: str = ""


class Charges:
    """All ResourceBindings that count, and their sums by queue."""

    def __init__(self) -> None:
        self._charges: dict[str, Charge] = {}
        self._own: set[str] = set()
        self._sums: dict[str, dict[str, int]] = {}

    def put(self, key: str, charge: Charge | None) -> bool:
        """Add, replace or, with None, remove a ResourceBinding; return whether a charge changed."""
        before = self._charges.pop(key, None)
        if before is not None and not before.waits:
            accumulate(self._sums[before.queue], before.request, -1)
        self._own.discard(key)
        if charge is not None and (charge.sub_job or not charge.waits):
            self._charges[key] = charge
            if charge.sub_job:
                self._own.add(key)
            if not charge.waits:
                accumulate(self._sums.setdefault(charge.queue, {}), charge.request, 1)
        return before != self._charges.get(key)

    def released(self, but: Callable[[str], bool] = lambda _: False) -> dict[str, dict[str, int]]:
        """Return what Volcano Global counts as allocated, by queue, `but` some sub-jobs."""
        found = {queue: dict(sums) for queue, sums in self._sums.items()}
        for charge in map(self._charges.__getitem__, self._own):
            if not charge.waits and but(charge.sub_job):
                accumulate(found[charge.queue], charge.request, -1)
        return {queue: sums for queue, sums in found.items() if sums}

    def waiting(self) -> Iterable[Charge]:
        """Return the sub-jobs that wait for their release."""
        return [self._charges[key] for key in sorted(self._own) if self._charges[key].waits]


def forecast_dispatch(
    charges: Charges, queues: Iterable[Queue], priority: Callable[[str], int | None]
) -> dict[str, bool]:
    """Return the vcjobs that Volcano Global looks at next, and whether it will release each.

    `queues` are those of `confirm.bounded`. `priority` returns the value of a vcjob's PriorityClass
    by key; None if the class does not exist. Volcano Global ignores a vcjob with such a class, or
    with a Queue that does not exist.
    """
    limits = {queue.name: queue.capability for queue in queues}
    used, found = charges.released(), dict[str, bool]()
    known = [(charge, priority(charge.sub_job)) for charge in charges.waiting()]
    able = [(charge, urgency) for charge, urgency in known if urgency is not None]
    for charge, _ in sorted(able, key=lambda each: _order(*each)):
        limit = limits.get(charge.queue)
        if limit is None:
            continue
        taken = used.setdefault(charge.queue, {})
        found[charge.sub_job] = all(
            taken.get(name, 0) + amount <= limit.get(name, 0)
            for name, amount in charge.request.items()
            if amount > 0
        )
        if found[charge.sub_job]:
            accumulate(taken, charge.request, 1)
    return found


def _order(charge: Charge, priority: int) -> tuple[int, str, str]:
    return -priority, charge.created, charge.sub_job


def charge_of(binding: Mapping[str, object], *, queue: str, sub_job: str) -> Charge:
    """Return the charge of a ResourceBinding."""
    spec = mapping(binding.get("spec"))
    number = count(spec.get("replicas"))
    request = parse_resources(at(spec, "replicaRequirements", "resourceRequest"))
    return Charge(
        queue=queue,
        request={name: amount * number for name, amount in request.items() if amount * number},
        waits=at(spec, "suspension", "scheduling") is True,
        sub_job=sub_job,
        created=string(at(binding, "metadata", "creationTimestamp")),
    )
