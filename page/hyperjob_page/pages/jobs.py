"""The table of HyperJobs."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from hyperjob_core.api.phases import Phase
from hyperjob_page.listing import COLUMNS, SIZES, SORTS, Query
from hyperjob_page.render import render
from hyperjob_page.visitor import Scope
from hyperjob_page.world import LiveState


@dataclass(frozen=True, slots=True)
class JobsPage:
    """One page of the table."""

    world: LiveState = field(compare=False)
    scope: Scope
    query: Query

    title = "HyperJobs"
    section = "hyperjobs"
    template = "jobs.html"

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return self.world.version("hyperjobs", "queues")

    async def parts(self) -> Mapping[str, str]:
        """Return the filter by phase and the rows as HTML."""
        world, query = self.world, self.query
        listing = world.listing(query, self.scope)
        keys = listing.page(query.page, query.size, descending=query.descending)
        rows = [world.rows[key] for key in keys]
        pages = listing.pages(query.size)
        page = min(query.page, pages)
        return {
            "jobs-phases": str(
                render(
                    "parts/jobs_phases.html",
                    query=query,
                    phases=[(str(phase), listing.phases[phase]) for phase in Phase],
                )
            ),
            "jobs-table": str(
                render(
                    "parts/jobs_table.html",
                    query=query,
                    columns=COLUMNS,
                    sorts=SORTS,
                    rows=rows,
                    lines=world.lines,
                    colour=world.colour,
                    total=len(listing),
                    first=(page - 1) * query.size + 1 if rows else 0,
                    page=page,
                    pages=pages,
                )
            ),
        }

    @property
    def form(self) -> Mapping[str, object]:
        """Return the options of the form of filters."""
        world, scope = self.world, self.scope
        return {
            "query": self.query,
            "columns": COLUMNS,
            "sizes": SIZES,
            "namespaces": [name for name in world.namespaces if scope.includes(name)],
            "queues": [raw["metadata"]["name"] for raw in world.queues] if scope.queues else [],
            "clusters": (
                [raw["metadata"]["name"] for raw in world.clusters] if scope.clusters else []
            ),
        }
