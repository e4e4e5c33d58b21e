"""Find the page of an address."""

from collections.abc import Sequence

from hyperjob.ui.pages.attention import AttentionPage
from hyperjob.ui.pages.context import Context
from hyperjob.ui.pages.fleet import FleetPage
from hyperjob.ui.pages.gone import gone_page
from hyperjob.ui.pages.history import HistoryPage, asked
from hyperjob.ui.pages.job import JobPage
from hyperjob.ui.pages.jobs import JobsPage
from hyperjob.ui.pages.page import Page
from hyperjob.ui.pages.queues import QueuesPage
from hyperjob.ui.query import parse
from hyperjob.ui.visitor import Scope


async def resolve(
    path: str, query: Sequence[tuple[str, str]], *, context: Context, scope: Scope
) -> Page | None:
    """Return the page of an address; None when there is none."""
    match path.strip("/").split("/"):
        case [""]:
            return FleetPage(context.world, scope, context.cards)
        case ["hyperjobs"]:
            return JobsPage(context.world, scope, parse(query))
        case ["queues"]:
            return QueuesPage(context.world, scope)
        case ["attention"]:
            return AttentionPage(context.world, context.attention, scope)
        case ["history"]:
            return HistoryPage(context.world, context.history, scope, asked(query))
        case ["history", uid]:
            return await gone_page(context.world, context.history, scope, uid)
        case ["hyperjobs", namespace, name]:
            return job_page(context, scope, f"{namespace}/{name}")
        case _:
            return None


def job_page(context: Context, scope: Scope, key: str) -> JobPage | None:
    """Return the page of a HyperJob that a visitor may see; None where there is none."""
    row = context.world.rows.get(key)
    if row is None or not scope.includes(row.summary.namespace):
        return None
    return JobPage(context.world, context.history, key)
