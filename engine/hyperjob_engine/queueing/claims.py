"""What sub-jobs hold of each cluster, as a leader leaves it for the next one.

A new leader finds summaries of unknown age, and no object shows it which sub-jobs have ended in the
last seconds: a summary may count pods of these beside those of other workloads. The leader keeps
the claims as text in an annotation of its Lease. What they have of sub-jobs that are no longer
there is all that a first summary may count of ended ones.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.microtime import micro_time
from hyperjob_core.api.wire import decoded, timestamp
from hyperjob_engine.resources import Resources, positive, subtract, total

_KNOWN_WITHIN: Final = timedelta(seconds=5)
"""The longest time from the creation of a vcjob until the claims of a leader have it."""
_MOST_BYTES: Final = 96 * 1024
"""All annotations of an object have at most 256 KiB; the pods of stopped sub-jobs have 128."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What sub-jobs held of each cluster at a time; summaries may have had ended ones too."""

    at: datetime
    on: Mapping[str, Resources]

    def without(
        self, present: Iterable[tuple[str, Resources, datetime | None]]
    ) -> dict[str, Resources]:
        """Return what is left without the sub-jobs that are still there.

        `present` has their clusters, demands and times of creation: younger ones than the claims
        are no part of them.
        """
        held: dict[str, list[Resources]] = {}
        for cluster, demand, created in present:
            if created is not None and created + _KNOWN_WITHIN <= self.at:
                held.setdefault(cluster, []).append(demand)
        left = {
            name: positive(subtract(amounts, total(held.get(name, ()))))
            for name, amounts in self.on.items()
        }
        return {name: amounts for name, amounts in left.items() if amounts}


def together(*sums: Mapping[str, Resources]) -> dict[str, Resources]:
    """Return sums by cluster as one."""
    names = {name for each in sums for name in each}
    return {name: total(each.get(name, {}) for each in sums) for name in sorted(names)}


def to_text(claims: Claims) -> str:
    """Return claims as text; empty if they are too many, as if there were none."""
    on = {name: amounts for name, each in sorted(claims.on.items()) if (amounts := positive(each))}
    text = json.dumps({"at": micro_time(claims.at), "on": on}, separators=(",", ":"))
    return text if len(text) <= _MOST_BYTES else ""


def from_text(text: str) -> Claims | None:
    """Return the claims of a text; None if it has another form."""
    try:
        found = decoded(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("on"), dict):
        return None
    moment = timestamp(found.get("at"))
    if moment is None or not all(map(_are_amounts, found["on"].values())):
        return None
    return Claims(moment, found["on"])


def _are_amounts(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(amount, int) and amount >= 0 for amount in value.values()
    )
