"""The table of HyperJobs, and the page of one: its state, its timeline and its sub-jobs."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from hyperjob.client.summary import Group
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.status import JobStatus
from hyperjob_page.listing import COLUMNS, SIZES, SORTS, Query
from hyperjob_page.render import render
from hyperjob_page.rows import Row, failures
from hyperjob_page.timeline import spans_of, timeline
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
            "jobs-phases": render(
                "parts/jobs_phases.html",
                query=query,
                phases=[(str(phase), listing.phases[phase]) for phase in Phase],
            ),
            "jobs-table": render(
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


_SHOWN: Final = 200

TABS: Final[Mapping[str, str]] = {
    "": "Overview",
    "why": "Why",
    "events": "Events",
    "logs": "Logs",
    "metrics": "Metrics",
    "plan": "Plan",
    "yaml": "YAML",
}
"""The last word of the address, and the heading."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """The overview page of a HyperJob, as it is at a request."""

    world: LiveState = field(compare=False)
    name: str
    row: Row = field(compare=False)

    section = "hyperjobs"
    template = "job.html"
    tab = ""

    @property
    def title(self) -> str:
        """Return the name."""
        return self.name.partition("/")[2]

    @property
    def path(self) -> str:
        """Return the address of the page."""
        return f"/hyperjobs/{self.name}"

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        row = self.row
        place = self.world.lines.place(self.name), self.world.lines.length(row.waits_in)
        # The timeline of a running HyperJob grows with time.
        now = int(datetime.now(UTC).timestamp() // 15) if not row.summary.has_ended else 0
        return row.version, place, now, self.world.version("queues")

    async def parts(self) -> Mapping[str, str]:
        """Return the head, the timeline and the tree as HTML."""
        row = self.row
        now = datetime.now(UTC)
        drawn = timeline(row.summary, spans_of(row.summary, now, admitted=row.started), now)
        return {
            "job-head": render(
                "parts/job_head.html",
                row=row,
                summary=row.summary,
                place=self.world.lines.place(self.name),
                length=self.world.lines.length(row.waits_in),
                colour=self.world.colour,
                path=self.path,
            ),
            "job-timeline": render(
                "parts/timeline.html",
                line=drawn,
                name=row.summary.name,
                failures=failures(row.summary),
            ),
            "job-tree": render(
                "parts/job_tree.html", groups=tree(row), row=row, colour=self.world.colour
            ),
        }


GroupNode = tuple[str, Group | None, Sequence[JobStatus], int]
"""The name of a replicated job, itself, its sub-jobs, and how many of them are not shown."""


def tree(row: Row) -> list[GroupNode]:
    """Return the replicated jobs with their sub-jobs.

    Of all sub-jobs together at most _SHOWN are shown, failed ones before others.
    """
    summary = row.summary
    shown = {job.name for job in sorted(summary.jobs, key=lambda job: not job.has_failed)[:_SHOWN]}
    found: list[GroupNode] = []
    for name in summary.group_names:
        jobs = [job for job in summary.jobs if job.replicated_job == name]
        visible = [job for job in jobs if job.name in shown]
        found.append((name, summary.group(name), visible, len(jobs) - len(visible)))
    return found
