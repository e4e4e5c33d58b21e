"""Which page an address means."""

from collections.abc import Sequence

from hyperjob.ui.pages.fleet import FleetPage
from hyperjob.ui.pages.jobs import JobsPage
from hyperjob.ui.pages.page import Page
from hyperjob.ui.query import parse
from hyperjob.ui.visitor import Scope
from hyperjob.ui.world import World


def resolve(
    path: str, query: Sequence[tuple[str, str]], *, world: World, scope: Scope
) -> Page | None:
    """Give the page of an address; None when there is none."""
    match path.strip("/").split("/"):
        case [""]:
            return FleetPage(world, scope)
        case ["hyperjobs"]:
            return JobsPage(world, scope, parse(query))
        case _:
            return None
