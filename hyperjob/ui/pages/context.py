"""The parts of the server that every handler uses."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from hyperjob.ui.attention import Attention
from hyperjob.ui.history.recorder import History
from hyperjob.ui.pages.fleet import CardCache
from hyperjob.ui.pages.page import PageCache
from hyperjob.ui.visitor import VisitorAccess
from hyperjob.ui.world import LiveState


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts of the server; `command` adds the flags for the shown API server to a command."""

    world: LiveState
    access: VisitorAccess
    history: History
    attention: Attention
    command: Callable[[str], str] = str
    planning: asyncio.Lock = field(default_factory=asyncio.Lock)
    cards: CardCache = field(default_factory=CardCache)
    cache: PageCache = field(default_factory=PageCache)
