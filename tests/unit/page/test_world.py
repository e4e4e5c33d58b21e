"""What the page knows of an API server whose objects it may read in part only."""

from typing import Any

from hyperjob_core.api.field import make_status
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import from_status
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import QUEUES
from hyperjob_core.kube.transport import Response
from hyperjob_core.virtualtime import now, run
from hyperjob_page.visitor import EVERYTHING
from hyperjob_page.world import LiveState


class WithoutQueues(MemoryServer):
    """An API server whose Queues the user may not list."""

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if path == QUEUES.path():
            raise from_status(make_status(403, "no", reason="Forbidden"), f"{method} {path}")
        return await super().request(method, path, **more)


def test_a_user_without_queues_has_the_other_pages() -> None:
    async def act() -> tuple[bool, list[str], list[object]]:
        async with LiveState(Kube(WithoutQueues(now=now))).running() as world:
            await world.synced()
            return world.queues_readable, world.troubles, list(world.queue_uses(EVERYTHING))

    readable, troubles, uses = run(act())
    assert (readable, uses) == (False, [])
    assert troubles == ["queues.scheduling.volcano.sh: no"]
