"""The first screen: the clusters, and the HyperJobs on each."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from hyperjob.client.usage import ClusterUse
from hyperjob.ui.holdings import Holding
from hyperjob.ui.query import Query
from hyperjob.ui.render import render
from hyperjob.ui.views import fleet
from hyperjob.ui.visitor import Scope
from hyperjob.ui.world import LiveState
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase

_CARDS: Final = 2000
_BETWEEN: Final = 20
"""Number of cards to make before other requests get a turn."""


@dataclass(frozen=True, slots=True)
class Card:
    """The HTML of a card, and the version of the cluster in it."""

    version: Hashable
    card: fleet.ClusterCard
    html: str


class CardCache:
    """A cache of cards of unchanged clusters: most changes concern a few clusters."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[Scope, str], Card] = OrderedDict()

    def card(
        self, key: tuple[Scope, str], version: Hashable, make: Callable[[], fleet.ClusterCard]
    ) -> Card:
        """Return a card; make it again if its version has changed."""
        known = self._made.pop(key, None)
        if known is None or known.version != version:
            card = make()
            same = known is not None and known.card == card
            html = known.html if known is not None and same else _html(card)
            known = Card(version, card, html)
        self._made[key] = known
        while len(self._made) > _CARDS:
            self._made.popitem(last=False)
        return known


def _html(card: fleet.ClusterCard) -> str:
    return str(render("parts/cluster.html", card=card))


@dataclass(frozen=True, slots=True)
class FleetPage:
    """All clusters."""

    world: LiveState
    scope: Scope
    cards: CardCache = field(default_factory=CardCache)

    title = "Fleet"
    section = "fleet"
    template = "fleet.html"

    @property
    def key(self) -> Hashable:
        """Return a value that no other page has."""
        return "fleet", self.scope

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return self.world.version("hyperjobs", "clusters", "queues")

    async def parts(self) -> Mapping[str, str]:
        """Return the totals and a card for each cluster; other requests get turns in between."""
        world, scope = self.world, self.scope
        phases = phase_counts(world.listing(Query(), scope).phases)
        uses: dict[str, list[ClusterUse]] = {}
        for use in world.cluster_uses(scope):
            uses.setdefault(use.cluster, []).append(use)
        cards: list[fleet.ClusterCard] = []
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
        found["fleet-totals"] = str(
            render(
                "parts/fleet_totals.html",
                bars=fleet.totals(cards),
                ready=sum(card.ready for card in cards),
                clusters=len(cards),
                phases=phases,
            )
        )
        return found

    def _card(self, cluster: Object, uses: Sequence[ClusterUse]) -> fleet.ClusterCard:
        world, name = self.world, cluster["metadata"]["name"]

        def taken(accelerator: str) -> Sequence[Holding]:
            return world.holdings.at((name, accelerator), self.scope)

        return fleet.card_of(cluster, uses, taken, world.colour)


def phase_counts(phases: Counter[str]) -> list[tuple[str, int]]:
    """Return all phases with their numbers, in the order of a HyperJob's lifecycle."""
    return [(str(phase), phases.get(phase, 0)) for phase in Phase]
