"""The page of a deleted HyperJob, from the history."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hyperjob.ui.charts.timeline import Subject, timeline
from hyperjob.ui.history.gone import gone_of
from hyperjob.ui.history.recorder import History
from hyperjob.ui.history.store import Known
from hyperjob.ui.render import render
from hyperjob.ui.visitor import Scope
from hyperjob.ui.world import LiveState


@dataclass(frozen=True, slots=True)
class GonePage:
    """The page of a deleted HyperJob."""

    world: LiveState = field(compare=False)
    history: History = field(compare=False)
    known: Known

    section = "history"
    template = "gone.html"

    @property
    def title(self) -> str:
        """Return the name of the HyperJob."""
        return self.known.name

    @property
    def namespace(self) -> str:
        """Return the namespace of the HyperJob."""
        return self.known.namespace

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return self.known, self.world.version("gone")

    async def parts(self) -> Mapping[str, str]:
        """Return the head and the timeline as HTML."""
        spans = await self.history.spans(self.known.uid)
        gone = gone_of(self.known, spans)
        row = self.world.rows.get(gone.key)
        there = row is not None and row.summary.uid == self.known.uid
        subject = Subject(name=self.known.name, phase=gone.phase, ended=not there, jobs={})
        drawn = timeline(subject, spans, datetime.now(UTC))
        return {
            "gone-head": str(
                render("parts/gone_head.html", gone=gone, there=there, colour=self.world.colour)
            ),
            "gone-timeline": str(
                render(
                    "parts/timeline.html",
                    line=drawn,
                    name=self.known.name,
                    failures=(),
                    problem=self.history.problem,
                )
            ),
        }


async def gone_page(world: LiveState, history: History, scope: Scope, uid: str) -> GonePage | None:
    """Return the page of a deleted HyperJob that a visitor may see; None if there is none."""
    known = await history.known(uid)
    if known is None or not scope.includes(known.namespace):
        return None
    return GonePage(world, history, known)
