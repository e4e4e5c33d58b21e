"""Room kept for the first of those that wait for it, where no queue of ours keeps the order.

First is the most urgent, then the oldest, of those that would have room once all HyperJobs have
ended: any other would keep room for nothing. All that it could use is kept, so whoever passes it
cannot delay it. Only queues keys.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from controller.model.observed import Cluster, Kept
from controller.model.resources import Resources
from controller.placement.claim import Claim, beside, without
from controller.queueing.room import Space
from controller.queueing.units import OrderInQueue
from controller.waiting import Waiting

# The usable clusters as observed, and what will be free on each once all HyperJobs have ended.
Look: TypeAlias = Callable[[], tuple[Sequence[Cluster], Mapping[str, Resources]]]


class FirstInLine:
    """Who it is, and what it could use; nobody is until it is connected."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._look: Look | None = None
        self._keeps: Callable[[], bool] = _always
        self._stale = False
        self._first: OrderInQueue | None = None
        self._wants: Mapping[str, Resources] = {}
        self._eventual: Mapping[str, Resources] = {}
        self._space = Space((), {})
        self._judged: dict[OrderInQueue, tuple[Claim, Mapping[str, Resources] | None]] = {}

    def connect(self, look: Look, *, keeps: Callable[[], bool] | None = None) -> None:
        """Begin to keep room, while `keeps` says so."""
        self._look = look
        self._keeps = keeps or _always

    def changed(self) -> None:
        """Learn that clusters are not what they were; nothing is looked at yet."""
        self._stale = True

    def settle(self) -> None:
        """Take in that clusters have changed, before the next pass reads who is first."""
        if self._stale:
            self.look_again()

    def kept_from(self, order: OrderInQueue) -> Kept | None:
        """Return the room that one which comes in this order must leave to the first."""
        if self._first is None or order <= self._first:
            return None
        return Kept(owner=self._first[2], room=self._wants)

    def is_contended(self, key: str) -> bool:
        """Tell whether another one waits for room that there may be some day."""
        if self._look is None or not self._keeps():
            return self._waiting.is_contended(key)
        return any(
            order[2] != key and (claim is None or self._judge(order, claim) is not None)
            for order, claim in self._waiting.claims()
        )

    def wake(self, cluster: str, room: Resources) -> None:
        """Look again at those that can use what a cluster has free now."""
        rest = without(room, self._wants.get(cluster, {}))
        self._waiting.wake([(room, rest)], first=self._first)

    def look_again(self) -> None:
        """Find the first anew; if it is another, or needs other room, the others look again."""
        self._stale = False
        if self._look is None or (not len(self._waiting) and self._first is None):
            return
        if not self._keeps():
            self._first, self._wants = None, {}
            return
        clusters, eventual = self._look()
        if eventual != self._eventual or len(self._judged) > 2 * len(self._waiting):
            self._eventual = eventual
            self._judged.clear()
        self._space = Space(clusters, eventual)
        before = self._first, self._wants
        self._first, self._wants = self._find()
        if before != (self._first, self._wants):
            kept = Kept(owner="", room=self._wants)
            usable = [cluster for cluster in clusters if cluster.usable]
            rooms = [
                (cluster.free, rest.free)
                for cluster, rest in zip(usable, beside(usable, kept), strict=True)
            ]
            self._waiting.wake(rooms, first=self._first)

    def _find(self) -> tuple[OrderInQueue | None, Mapping[str, Resources]]:
        for order, claim in self._waiting.claims():
            wants = None if claim is None else self._judge(order, claim)
            if wants is not None:
                return order, wants
        return None, {}

    def _judge(self, order: OrderInQueue, claim: Claim) -> Mapping[str, Resources] | None:
        known = self._judged.get(order)
        if known is None or known[0] != claim:
            known = self._judged[order] = claim, _wants(claim, self._space)
        return known[1]


def _always() -> bool:
    return True


def _wants(claim: Claim, space: Space) -> Mapping[str, Resources] | None:
    """Return all that a claim could use; None if there will never be room for it."""
    if space.could(claim.requests, claim.standing, claim.max_domains) < claim.needed:
        return None
    return space.wants(claim.requests, most=claim.needed, max_domains=claim.max_domains)
