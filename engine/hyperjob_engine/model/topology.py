"""Volcano's network topology of a vcjob: which of its pods must share a HyperNode of which tier.

A whole vcjob has a topology (`networkTopology`), and so has each partition of a task
(`partitionPolicy.networkTopology`). The mode `hard` is a requirement. The mode `soft` is a
preference, which Volcano follows in the member: it does not choose the cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, count, integer, mapping, string
from hyperjob_engine.model.nodes import Domain, PodGroup


@dataclass(frozen=True, slots=True)
class Tier:
    """The highest tier of a HyperNode that may hold pods together: by number, or by name."""

    number: int
    name: str = ""


def parse_tier(topology: object) -> Tier | None:
    """Parse a `networkTopology`; None unless it is hard and names its highest tier."""
    raw = mapping(topology)
    mode = string(raw.get("mode")) or "hard"
    number, name = integer(raw.get("highestTierAllowed")), string(raw.get("highestTierName"))
    if mode != "hard" or (number is None and not name):
        return None
    return Tier(number or 0, name)


def partitioned(group: PodGroup, task: Object) -> PodGroup:
    """Return the pods of a task with the domains of its partitions."""
    policy = mapping(task.get("partitionPolicy"))
    tier, size = parse_tier(policy.get("networkTopology")), count(policy.get("partitionSize"))
    if tier is None or not size:
        return group
    key = _key(tier, (group.frozen, group.wants, size))
    return replace(group, domains=(Domain(tier.number, tier.name, size, key),))


def together(groups: Sequence[PodGroup], tier: Tier | None) -> tuple[PodGroup, ...]:
    """Return the pods of a vcjob, all in one domain of `tier`; None: without such a domain.

    The new domain is the outermost: domains of partitions stay inside it. Its key is equal for two
    vcjobs with the same pods, which placement then tries once.
    """
    if tier is None:
        return tuple(groups)
    mates = ((each.frozen, each.wants, each.domains, each.number) for each in groups)
    key = _key(tier, tuple(mates))
    return tuple(
        replace(each, domains=(Domain(tier.number, tier.name, each.number, key), *each.domains))
        for each in groups
    )


def tier_of(template: Object) -> Tier | None:
    """Return the tier within which a vcjob spec wants all of its pods."""
    return parse_tier(at(template, "networkTopology"))


def _key(tier: Tier, pods: tuple[object, ...]) -> str:
    """Return a short text, equal for domains that want the same pods."""
    return blake2b(repr((tier, pods)).encode(), digest_size=8).hexdigest()
