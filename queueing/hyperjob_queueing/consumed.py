"""What queues have consumed: an average of their use in which the past counts less and less.

It decides which queue is next, and when a HyperJob larger than the share of its queue has its turn.
Names are those of Kueue's admission fair sharing: `usageHalfLifeTime`, `consumedResources`,
`lastUpdate`. The record of a queue is an annotation of its Queue object, and outlives the process.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, decoded, mapping, rfc3339, string, timestamp
from hyperjob_engine.resources import Resources, order_of, parse_resources, quantities

FAIR_SHARING: Final = "training.volcano.sh/fair-sharing"
"""Annotation of a Queue, which the controller alone writes: what the queue has consumed."""

HALF_LIFE: Final = timedelta(days=1)
"""The default: what a queue has consumed counts half after so long."""
_STEP: Final = timedelta(seconds=10)
_MOST_NAMES: Final = 16
_LONGEST: Final = 4096
_PRECISION: Final = 40
"""Bits of the factor of a decay: amounts may be of any size, and a float of any of them is not."""


class Consumed(NamedTuple):
    """The average use of a queue at a time, in nano-units."""

    resources: Resources
    last_update: datetime


class Consumption:
    """What each queue has consumed: what it used one half-life ago counts half as much as now.

    Without a half-life nothing is remembered. It follows the time in steps of ten seconds at least:
    a use that changes more often counts as its last value.
    """

    def __init__(self, half_life: timedelta | None = None) -> None:
        self.half_life = half_life
        self._known: dict[str, Consumed] = {}
        self._followed: datetime | None = None

    def of(self, queue: str) -> Resources:
        """Return what a queue has consumed, in nano-units of an average use."""
        known = self._known.get(queue)
        return known.resources if known is not None else {}

    def is_due(self, *, now: datetime) -> bool:
        """Return whether `follow` would change anything."""
        return self.half_life is not None and (
            self._followed is None or now >= self._followed + _STEP
        )

    def follow(self, used: Mapping[str, Resources], *, now: datetime) -> None:
        """Let all queues have used so much since the last time, or since their record."""
        self._followed = now
        self._known = {name: self._later(name, each, now) for name, each in used.items()}

    def restore(self, queue: str, consumed: Consumed) -> None:
        """Take over a record, unless the queue is known already or nothing is remembered."""
        if self.half_life is not None:
            self._known.setdefault(queue, consumed)

    def record(self, queue: str) -> Consumed | None:
        """Return what is to be recorded of a queue: a bounded number of its resources."""
        known = self._known.get(queue)
        if known is None:
            return None
        names = islice(sorted(known.resources, key=order_of), _MOST_NAMES)
        return known._replace(resources={name: known.resources[name] for name in names})

    def _later(self, name: str, used: Resources, now: datetime) -> Consumed:
        known = self._known.get(name)
        if known is None or self.half_life is None:
            return Consumed({}, now)
        elapsed = max(timedelta(), now - known.last_update)
        kept = int(0.5 ** (elapsed / self.half_life) * (1 << _PRECISION))
        found = {}
        for each in {**known.resources, **used}:
            amount = used.get(each, 0)
            amount += (known.resources.get(each, 0) - amount) * kept >> _PRECISION
            if amount > 0:
                found[each] = amount
        return Consumed(found, now)


def parse_consumed(queue: Object) -> Consumed | None:
    """Return the record of a Queue; None without a record in the form of `consumed_text`."""
    text = string(at(queue, "metadata", "annotations", FAIR_SHARING))
    try:
        found = mapping(decoded(text if len(text) <= _LONGEST else ""))
    except ValueError:
        return None
    last = timestamp(found.get("lastUpdate"))
    return None if last is None else Consumed(parse_resources(found.get("consumedResources")), last)


def consumed_text(consumed: Consumed) -> str:
    """Return the value of the annotation."""
    milli = {name: -(-amount // 10**6) * 10**6 for name, amount in consumed.resources.items()}
    value = {"consumedResources": quantities(milli), "lastUpdate": rfc3339(consumed.last_update)}
    return json.dumps(value, separators=(",", ":"))
