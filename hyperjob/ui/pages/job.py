"""One HyperJob: its state, its timeline and its sub-jobs."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hyperjob.ui.history.recorder import History
from hyperjob.ui.render import render
from hyperjob.ui.rows import Row
from hyperjob.ui.views import job as views
from hyperjob.ui.views.timeline import timeline
from hyperjob.ui.world import World

TABS: Final[Mapping[str, str]] = {
    "": "Overview",
    "why": "Why",
    "events": "Events",
    "logs": "Logs",
    "plan": "Plan",
    "yaml": "YAML",
}
"""The last word of the address, and the heading."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """The overview of one HyperJob that is there."""

    world: World
    history: History
    name: str

    section = "hyperjobs"
    template = "job.html"
    tab = ""

    @property
    def row(self) -> Row | None:
        """Give the HyperJob; None once it is gone."""
        return self.world.rows.get(self.name)

    @property
    def title(self) -> str:
        """Give the name."""
        return self.name.partition("/")[2]

    @property
    def path(self) -> str:
        """Give the address of the page."""
        return f"/hyperjobs/{self.name}"

    @property
    def key(self) -> Hashable:
        """Tell pages apart."""
        return "hyperjob", self.name

    def version(self) -> Hashable:
        """Give a value that differs when a part may have changed."""
        row = self.row
        if row is None:
            return None
        place = self.world.lines.place(self.name), self.world.lines.length(row.waits_in)
        # A running timeline grows.
        now = int(datetime.now(UTC).timestamp() // 15) if not row.summary.has_ended else 0
        return row.version, place, now, self.world.version("queues")

    async def parts(self) -> Mapping[str, str]:
        """Make the head, the timeline and the tree."""
        row = self.row
        if row is None:
            gone = render("parts/job_gone.html", name=self.name)
            return {"job-head": str(gone), "job-timeline": "", "job-tree": ""}
        spans = await self.history.spans(row.summary.uid)
        drawn = timeline(row.summary, spans, datetime.now(UTC))
        return {
            "job-head": str(
                render(
                    "parts/job_head.html",
                    row=row,
                    summary=row.summary,
                    place=self.world.lines.place(self.name),
                    length=self.world.lines.length(row.waits_in),
                    colour=self.world.colour,
                    path=self.path,
                )
            ),
            "job-timeline": str(
                render("parts/timeline.html", line=drawn, row=row, problem=self.history.problem)
            ),
            "job-tree": str(
                render(
                    "parts/job_tree.html", groups=views.tree(row), row=row, colour=self.world.colour
                )
            ),
        }
