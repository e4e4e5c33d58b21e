"""All screens in one HTML file, which needs no server and no script."""

import base64
import hashlib
import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

from hyperjob_core.api.phases import Phase
from hyperjob_page.listing import Query
from hyperjob_page.pages.attention import AttentionPage
from hyperjob_page.pages.fleet import FleetPage
from hyperjob_page.pages.job import JobPage
from hyperjob_page.pages.jobs import JobsPage
from hyperjob_page.pages.queues import QueuesPage
from hyperjob_page.render import render, static
from hyperjob_page.running import Running
from hyperjob_page.visitor import EVERYTHING

ROWS: Final = 1000
DETAILS: Final = 200
_LINK: Final = re.compile(r'\shref="(/[^"]*)"')
_FORMS: Final = re.compile(r"<button\b.*?</button>", re.DOTALL)


async def snapshot(known: Running) -> str:
    """Return the page: a table of the newest HyperJobs, and details of those that still run."""
    world = known.world
    table = JobsPage(world, EVERYTHING, Query(size=ROWS))
    listed = world.listing(table.query, EVERYTHING).page(1, ROWS, descending=False)
    chosen = sorted(listed, key=lambda key: _rank_of_phase(world.rows[key].summary.phase))[:DETAILS]
    details = []
    for key in chosen:
        parts = await JobPage(world, key).parts()
        details.append((key, _with_own_ids(key, "".join(parts.values()))))
    style = static("ui.css").decode()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    text = str(
        render(
            "snapshot.html",
            style=style,
            digest=digest,
            host=world.host,
            now=datetime.now(UTC),
            fleet=await FleetPage(world, EVERYTHING).parts(),
            queues=await QueuesPage(world, EVERYTHING).parts(),
            attention=await AttentionPage(world, known.attention, EVERYTHING).parts(),
            table=(await table.parts())["jobs-table"],
            details=details,
            total=len(world.rows),
            rows=len(listed),
        )
    )
    return _linked(text, set(chosen))


def _rank_of_phase(phase: str) -> int:
    """Return the sort key of a phase: unfinished HyperJobs first, then failed HyperJobs."""
    return {Phase.COMPLETED: 2, Phase.FAILED: 1}.get(Phase(phase), 0)


def _with_own_ids(key: str, html: str) -> str:
    """Return a part without buttons, with the HyperJob's key in its ids, which are unique."""
    for name in ("h-timeline", "h-tree", "runs"):
        html = html.replace(f'"{name}"', f'"{name}-{key}"')
    return _FORMS.sub("", html)


def _linked(html: str, chosen: Collection[str]) -> str:
    """Return HTML whose links point into the file; other links become text."""

    def link(found: re.Match[str]) -> str:
        path = found[1]
        key = path.removeprefix("/hyperjobs/")
        if key in chosen:
            return f' href="#{key}"'
        anchor = path.removeprefix("/queues")
        return f' href="{anchor}"' if anchor.startswith("#") else ""

    return _LINK.sub(link, html)
