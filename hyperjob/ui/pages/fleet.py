"""The first screen: every cluster with what runs on it."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from hyperjob.api.phases import Phase
from hyperjob.ui.query import Query
from hyperjob.ui.render import render
from hyperjob.ui.views import fleet
from hyperjob.ui.visitor import Scope
from hyperjob.ui.world import World


@dataclass(frozen=True, slots=True)
class FleetPage:
    """All clusters, or one of them."""

    world: World
    scope: Scope

    title = "Fleet"
    section = "fleet"
    template = "fleet.html"

    @property
    def key(self) -> Hashable:
        """Tell pages apart."""
        return "fleet", self.scope

    def version(self) -> Hashable:
        """Give a value that differs when a part may have changed."""
        return self.world.version("hyperjobs", "clusters", "queues")

    async def parts(self) -> Mapping[str, str]:
        """Make the totals, and a card for each cluster."""
        world, scope = self.world, self.scope
        cards = fleet.cards(
            world.clusters if scope.clusters else [],
            world.cluster_uses(scope),
            world.holdings.of(scope),
            world.colour,
        )
        phases = world.listing(Query(), scope).phases
        totals = render(
            "parts/fleet_totals.html",
            bars=fleet.totals(cards),
            ready=sum(card.ready for card in cards),
            clusters=len(cards),
            phases=phase_counts(phases),
        )
        found = {"fleet-totals": str(totals)}
        for card in cards:
            found[f"cluster-{card.name}"] = str(render("parts/cluster.html", card=card))
        return found


def phase_counts(phases: Counter[str]) -> list[tuple[str, int]]:
    """Give all phases with their numbers, in order of a HyperJob's life."""
    return [(str(phase), phases.get(phase, 0)) for phase in Phase]
