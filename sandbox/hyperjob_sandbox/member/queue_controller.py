"""Volcano's queue controller: opens and closes a member's queues, and counts what runs in them."""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.controller import Controller
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.member.caches import MemberCaches, holds_node
from hyperjob_sandbox.member.jobpods import QUEUE_NAME
from hyperjob_sandbox.objects import labels_of

_GATHER_SECONDS: Final = 1.0


class QueueController:
    """One controller over the queues of a cluster."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches
        self.controller = Controller("queue-controller", self._sync, workers=1)
        self.controller.watch(caches.queues)
        self.controller.watch(caches.commands, keys=_queues_of)
        self.controller.watch(
            caches.pods,
            when=lambda old, new: holds_node(old) != holds_node(new),
            keys=lambda pod: filter(None, [labels_of(pod).get(QUEUE_NAME)]),
            after=_GATHER_SECONDS,
        )

    async def _sync(self, name: str) -> None:
        queue = self._caches.queues.get(name)
        if queue is None:
            return
        running = [
            resources.pod_requests(pod["spec"])
            for pod in self._caches.pods.items()
            if labels_of(pod).get(QUEUE_NAME) == name and holds_node(pod)
        ]
        amounts = resources.wire(resources.total(running))
        old: Object = queue.get("status") or {}
        allocated = {"cpu": "0", "memory": "0", **amounts}
        state = old.get("state") or "Open"
        for command in self._caches.commands.items():
            if name in _queues_of(command):
                await self._caches.delete(command)
                state = "Open" if command["action"] == "OpenQueue" else "Closing"
        if state == "Closing" and not running:
            state = "Closed"
        status = {**old, "allocated": allocated, "state": state}
        await self._caches.set_status(queue, status)


def _queues_of(command: Object) -> list[str]:
    """Return the queue that a Command opens or closes, nothing for a Command of another kind."""
    target = command.get("target") or {}
    known = command.get("action") in ("OpenQueue", "CloseQueue") and target.get("kind") == "Queue"
    return [target["name"]] if known else []
