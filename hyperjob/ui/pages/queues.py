"""The page of queues: their tree, the use of each share, and the waiting HyperJobs."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from hyperjob.client import usage
from hyperjob.client.tally import Tally
from hyperjob.ui.render import render
from hyperjob.ui.views import queues
from hyperjob.ui.visitor import Scope
from hyperjob.ui.world import LiveState


@dataclass(frozen=True, slots=True)
class QueuesPage:
    """All queues."""

    world: LiveState
    scope: Scope

    title = "Queues"
    section = "queues"
    template = "parts.html"

    @property
    def key(self) -> Hashable:
        """Return a value that no other page has."""
        return "queues", self.scope

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return self.world.version("hyperjobs", "clusters", "queues")

    async def parts(self) -> Mapping[str, str]:
        """Return a section for each queue as HTML."""
        world, scope = self.world, self.scope
        found: list[queues.QueueNode] = []
        if scope.queues:
            totals = usage.all_ready(usage.clusters_of(world.clusters, Tally()))
            tree = usage.tree_of(world.queues, totals)
            uses = world.queue_uses(scope)
            phases = world.phases_by_queue(scope)
            found = queues.nodes(tree, uses, world.rows, world.lines, phases, scope, world.colour)
        leader = world.leader
        return {
            "queues": str(
                render(
                    "parts/queues.html",
                    nodes=found,
                    admission=leader.admission if leader is not None else "",
                    readable=scope.queues and world.queues_readable,
                )
            )
        }
