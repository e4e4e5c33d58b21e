"""What every handler of the page needs."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hyperjob.ui.history.recorder import History
from hyperjob.ui.pages.page import PageCache
from hyperjob.ui.visitor import Access
from hyperjob.ui.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts of the server; `command` makes a command reach the API server that is shown."""

    world: World
    access: Access
    history: History
    read_only: bool = False
    command: Callable[[str], str] = str
    cache: PageCache = field(default_factory=PageCache)
