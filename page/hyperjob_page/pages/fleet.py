"""The first screen: the accelerators of each cluster, used by each HyperJob, reserved or free."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from hyperjob.client.reading import is_ready, why_not_ready
from hyperjob.client.usage import ClusterUse, free_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, mapping, string
from hyperjob_page.render import render
from hyperjob_page.rows import Holding
from hyperjob_page.visitor import Scope
from hyperjob_page.world import LiveState

_CARDS: Final = 2000
_BETWEEN: Final = 20
"""Number of cards to make before other requests get a turn."""
_NAMED: Final = 5
_DRAWN: Final = 24
"""Number of HyperJobs with a segment of their own; the others of a queue share a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarSegment:
    """A segment of a bar; `kind` is used, reserved, other, free or lost.

    `key` is the HyperJob, empty for several or none; `start` and `width` are percents.
    """

    kind: str
    label: str
    number: int
    start: float = 0.0
    width: float = 0.0
    key: str = ""
    queue: str = ""
    colour: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An accelerator of a cluster, or of all clusters; None where the status has no value."""

    accelerator: str
    total: int | None
    used: int
    reserved: int
    other: int
    free: int
    segments: Sequence[BarSegment]

    @property
    def busy(self) -> int:
        """Return the percentage in use or reserved."""
        taken = self.used + self.reserved + self.other
        return round(100 * taken / self.total) if self.total else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCard:
    """A cluster; `trouble` is why it is not Ready. `hyperjobs` are the largest of `count`."""

    name: str
    ready: bool
    trouble: str
    place: str
    bars: Sequence[Bar]
    hyperjobs: Sequence[BarSegment]
    count: int


Taken = Callable[[str], Sequence[Holding]]
"""Returns the HyperJobs' parts of an accelerator of the cluster."""

Colour = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Card:
    """The HTML of a card, and the version of the cluster in it."""

    version: Hashable
    card: ClusterCard
    html: str


class CardCache:
    """A cache of cards of unchanged clusters: most changes concern a few clusters."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[Scope, str], Card] = OrderedDict()

    def card(
        self, key: tuple[Scope, str], version: Hashable, make: Callable[[], ClusterCard]
    ) -> Card:
        """Return a card; make it again if its version has changed."""
        known = self._made.pop(key, None)
        if known is None or known.version != version:
            card = make()
            if known is None or known.card != card:
                html = render("parts/cluster.html", card=card)
            else:
                html = known.html
            known = Card(version, card, html)
        self._made[key] = known
        while len(self._made) > _CARDS:
            self._made.popitem(last=False)
        return known


@dataclass(frozen=True, slots=True)
class FleetPage:
    """All clusters."""

    world: LiveState = field(compare=False)
    scope: Scope
    cards: CardCache = field(default_factory=CardCache, compare=False)

    title = "Fleet"
    section = "fleet"
    template = "fleet.html"

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return self.world.version("hyperjobs", "clusters", "queues")

    async def parts(self) -> Mapping[str, str]:
        """Return the totals and a card for each cluster; other requests get turns in between."""
        world, scope = self.world, self.scope
        uses: dict[str, list[ClusterUse]] = {}
        for use in world.cluster_uses(scope):
            uses.setdefault(use.cluster, []).append(use)
        cards: list[ClusterCard] = []
        found = {"fleet-totals": ""}
        for cluster in world.clusters if scope.clusters else []:
            name = cluster["metadata"]["name"]
            made = self.cards.card(
                (scope, name),
                (cluster["metadata"]["resourceVersion"], *world.version_of(name)),
                partial(self._card, cluster, uses.get(name, ())),
            )
            cards.append(made.card)
            found[f"cluster-{name}"] = made.html
            if len(cards) % _BETWEEN == 0:
                await asyncio.sleep(0)
        found["fleet-totals"] = render(
            "parts/fleet_totals.html",
            bars=totals(cards),
            ready=sum(card.ready for card in cards),
            clusters=len(cards),
            phases=world.phases(scope),
        )
        return found

    def _card(self, cluster: Object, uses: Sequence[ClusterUse]) -> ClusterCard:
        world, name = self.world, cluster["metadata"]["name"]

        def taken(accelerator: str) -> Sequence[Holding]:
            return world.holdings.at((name, accelerator), self.scope)

        return card_of(cluster, uses, taken, world.colour)


def totals(found: Sequence[ClusterCard]) -> list[Bar]:
    """Return a bar for each accelerator, summed over clusters, by queue; the largest first."""
    by_name: dict[str, list[tuple[ClusterCard, Bar]]] = {}
    for card in found:
        for bar in card.bars:
            if bar.accelerator:
                by_name.setdefault(bar.accelerator, []).append((card, bar))
    bars = [_total(name, each) for name, each in by_name.items()]
    return sorted(bars, key=lambda bar: (-(bar.total or 0), bar.accelerator))


def _total(name: str, found: Sequence[tuple[ClusterCard, Bar]]) -> Bar:
    """Return the sum of the bars of an accelerator, with a segment for each queue."""
    queues: Counter[tuple[str, int]] = Counter()
    sums: Counter[str] = Counter()
    for card, bar in found:
        for segment in bar.segments:
            if segment.kind == "used":
                queues[segment.queue, segment.colour] += segment.number
        sums.update(used=bar.used, reserved=bar.reserved, other=bar.other)
        sums["free" if card.ready else "lost"] += bar.free
    used, reserved, other = sums["used"], sums["reserved"], sums["other"]
    free, lost = sums["free"], sums["lost"]
    parts = [
        BarSegment(kind="used", label=f"queue {queue}", number=number, queue=queue, colour=colour)
        for (queue, colour), number in queues.most_common()
    ]
    parts += _rest(reserved=reserved, other=other, free=free)
    if lost:
        parts.append(BarSegment(kind="lost", label="on clusters that are not ready", number=lost))
    return Bar(
        accelerator=name,
        total=used + reserved + other + free + lost,
        used=used,
        reserved=reserved,
        other=other,
        free=free,
        segments=placed(parts),
    )


def card_of(
    cluster: Object, uses: Sequence[ClusterUse], taken: Taken, colour: Colour
) -> ClusterCard:
    """Describe one cluster; `uses` are those of this cluster."""
    name = string(at(cluster, "metadata", "name"))
    ready = is_ready(cluster)
    spec = mapping(cluster.get("spec"))
    place = [string(spec.get(word)) for word in ("provider", "region", "zone")]
    bars = [_cluster_bar(use, taken(use.accelerator), colour, ready=ready) for use in uses]
    parts = [part for use in uses for part in taken(use.accelerator)]
    keys: dict[str, BarSegment] = {}
    for part in sorted(parts, key=lambda part: (-(part.running + part.reserved), part.key)):
        before = keys.get(part.key)
        number = part.running + part.reserved + (before.number if before else 0)
        kind = "used" if part.running else "reserved"
        keys[part.key] = _of_hyperjob(part, number, colour, kind=kind)
    return ClusterCard(
        name=name,
        ready=ready,
        trouble="" if ready else why_not_ready(cluster),
        place=" · ".join(word for word in place if word),
        bars=bars,
        hyperjobs=list(keys.values())[:_NAMED],
        count=len(keys),
    )


def _cluster_bar(use: ClusterUse, parts: Sequence[Holding], colour: Colour, *, ready: bool) -> Bar:
    """Return the bar of an accelerator; what is free on a cluster that is not Ready is lost."""
    running = sum(part.running for part in parts)
    reserved = sum(part.reserved for part in parts)
    other = max(0, (use.used or 0) - running)
    total = use.allocatable
    free = free_of(total or 0, use.used or 0, running=running, reserved=reserved)
    segments = [*_drawn(parts, colour), *_rest(reserved=reserved, other=other, free=free)]
    if not ready:
        segments = [each for each in segments if each.kind != "free"]
        segments.append(BarSegment(kind="lost", label="not ready", number=free))
    return Bar(
        accelerator=use.accelerator,
        total=total,
        used=running,
        reserved=reserved,
        other=other,
        free=free,
        segments=placed(segments),
    )


def _drawn(parts: Sequence[Holding], colour: Colour) -> list[BarSegment]:
    """Return the segments, ordered by queue; the largest HyperJobs have their own segment."""
    found = sorted(
        (part for part in parts if part.running), key=lambda part: (-part.running, part.key)
    )
    segments = [_of_hyperjob(part, part.running, colour) for part in found[:_DRAWN]]
    more: dict[str, list[Holding]] = {}
    for part in found[_DRAWN:]:
        more.setdefault(part.queue, []).append(part)
    segments += [
        BarSegment(
            kind="used",
            label=f"{len(members)} more of queue {queue}",
            number=sum(part.running for part in members),
            queue=queue,
            colour=colour(queue),
        )
        for queue, members in more.items()
    ]
    return sorted(segments, key=lambda segment: segment.queue)


def _of_hyperjob(part: Holding, number: int, colour: Colour, *, kind: str = "used") -> BarSegment:
    hue = colour(part.queue)
    return BarSegment(
        kind=kind, label=part.key, number=number, key=part.key, queue=part.queue, colour=hue
    )


def _rest(*, reserved: int, other: int, free: int) -> list[BarSegment]:
    """Return the segments behind those of running HyperJobs, without empty ones."""
    found = [
        BarSegment(kind="reserved", label="reserved for HyperJobs that start", number=reserved),
        BarSegment(kind="other", label="other work", number=other),
        BarSegment(kind="free", label="free", number=free),
    ]
    return [segment for segment in found if segment.number]


def placed(segments: Sequence[BarSegment]) -> list[BarSegment]:
    """Return the segments with start and width in the bar."""
    total = sum(segment.number for segment in segments)
    found: list[BarSegment] = []
    start = 0.0
    for segment in segments:
        if segment.number:
            width = 100 * segment.number / total
            found.append(replace(segment, start=round(start, 3), width=round(width, 3)))
            start += width
    return found
