"""Volcano's queue controller: opens the queues of a member and counts what runs in them.

It must never close a queue by itself.
"""

from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, PatchType
from hyperjob.kube.errors import NotFound
from hyperjob.kube.resources import QUEUES, key_of
from hyperjob_sandbox.controller import Controller
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.member.jobpods import QUEUE_NAME
from hyperjob_sandbox.member.watching import MemberCaches, phase_of_pod

_GATHER_SECONDS: Final = 1.0
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


class QueueController:
    """One controller over the queues of a cluster."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches
        self.controller = Controller("queue-controller", self._sync, workers=1)
        caches.queues.add_handler(self._on_queue)
        caches.pods.add_handler(self._on_pod)

    def _on_queue(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.controller.add(key_of(new))

    def _on_pod(self, event: EventType, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None
        queue = (pod["metadata"].get("labels") or {}).get(QUEUE_NAME)
        if queue and _takes(old) != _takes(new):
            self.controller.add(queue, after=_GATHER_SECONDS)

    async def _sync(self, name: str) -> None:
        queue = self._caches.queues.get(name)
        if queue is None:
            return
        amounts = resources.normalise(
            resources.total(
                resources.pod_requests(pod["spec"])
                for pod in self._caches.pods.items()
                if (pod["metadata"].get("labels") or {}).get(QUEUE_NAME) == name and _takes(pod)
            )
        )
        allocated = {"cpu": "0", "memory": "0", **resources.wire(amounts)}
        old: Object = queue.get("status") or {}
        state = old.get("state") or "Open"
        if (old.get("allocated"), old.get("state")) == (allocated, state):
            return
        # null takes away what is allocated no more
        gone = {key: None for key in old.get("allocated") or {} if key not in allocated}
        status: Object = {"allocated": {**gone, **allocated}, "state": state}
        try:
            await self._caches.kube.patch(
                QUEUES,
                name,
                {"status": status},
                kind=PatchType.MERGE,
                subresource="status",
            )
        except NotFound:
            return


def _takes(pod: Object | None) -> bool:
    return (
        pod is not None and bool(pod["spec"].get("nodeName")) and phase_of_pod(pod) not in _FINISHED
    )
