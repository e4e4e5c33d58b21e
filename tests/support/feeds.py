"""Informers whose events come from a test."""

from typing import Any

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType


class Feed:
    """An informer that holds given objects; a test calls its handlers."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []
        self.held: list[Object] = []

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def items(self) -> list[Object]:
        return self.held

    def tell(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        for handler in self.handlers:
            handler(kind, old, new)
