"""Run a pod: volumes, init containers, containers, status, end."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.errors import KubeError
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.processes import volumes
from hyperjob_sandbox.processes.container import Container
from hyperjob_sandbox.processes.environment import MissingSourceError
from hyperjob_sandbox.processes.node import PodPlace

_RETRY_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.02
Publish = Callable[[Object], Awaitable[object]]


class Pod:
    """A pod bound to a node; `publish` writes its status."""

    def __init__(
        self, place: PodPlace, claims: Callable[[], Mapping[str, Object]], publish: Publish
    ) -> None:
        self.place = place
        spec: Object = place.pod["spec"]
        policy = str(spec.get("restartPolicy") or "Always")
        self._claims = claims
        self._publish = publish
        self._changed = asyncio.Event()
        self._started_at = wire_now()
        self._phase = "Pending"
        self._problem: Object = {}
        self._initialized = False
        self._init = [
            Container(
                each,
                place,
                self._changed.set,
                "Always" if each.get("restartPolicy") == "Always" else _init_policy(policy),
            )
            for each in spec.get("initContainers") or ()
        ]
        self._containers = [
            Container(each, place, self._changed.set, policy) for each in spec["containers"]
        ]
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the pod in a background task."""
        self._task = asyncio.create_task(self._run(), name=f"pod/{self.place.hostname}")

    @property
    def is_over(self) -> bool:
        """Return whether the pod has ended."""
        return self._phase in ("Succeeded", "Failed") or (
            self._task is not None and self._task.done()
        )

    def container(self, name: str) -> Container | None:
        """Return a container by name, the only or first one for an empty name."""
        every = [*self._containers, *self._init]
        if not name:
            return every[0]
        return next((each for each in every if each.name == name), None)

    async def end(self) -> None:
        """End all containers within the grace period, then abandon the pod."""
        running = [*self._containers, *self._init]
        grace = self.place.grace_seconds
        await asyncio.gather(*(each.stop(grace=grace) for each in running))
        await self.abandon()

    async def kill(self) -> None:
        """Kill all containers, as the loss of a node does: none of them starts again."""
        await asyncio.gather(*(each.stop(grace=0) for each in self._all()))

    async def abandon(self) -> None:
        """Stop at once and kill all running containers."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self.place.network.leave(self.place.identity)
        self.place.slots.give_back(self.place.pod)
        await asyncio.to_thread(volumes.remove, self.place.folders)

    async def _run(self) -> None:
        publishing = asyncio.create_task(self._keep_published())
        try:
            await self._live()
        finally:
            publishing.cancel()
            with suppress(asyncio.CancelledError):
                await publishing
        while not await self._published():  # noqa: ASYNC110, the API server does not say when
            await asyncio.sleep(_RETRY_SECONDS)

    async def _live(self) -> None:
        place = self.place
        place.address = place.network.join(place.identity)
        place.pod = {
            **place.pod,
            "status": {**(place.pod.get("status") or {}), **self._addresses()},
        }
        self._changed.set()
        await self._prepare()
        deadline = place.pod["spec"].get("activeDeadlineSeconds")
        try:
            async with asyncio.timeout(None if deadline is None else float(deadline)):
                await self._run_containers()
        except TimeoutError:
            await asyncio.gather(*(each.stop(grace=place.grace_seconds) for each in self._all()))
            self._phase = "Failed"
            self._problem = {
                "reason": "DeadlineExceeded",
                "message": "Pod was active on the node longer than the specified deadline",
            }
        place.network.leave(place.identity)
        place.slots.give_back(place.pod)

    async def _run_containers(self) -> None:
        sidecars: list[asyncio.Task[int]] = []
        try:
            for each in self._init:
                if each.spec.get("restartPolicy") == "Always":
                    sidecars.append(asyncio.create_task(each.run()))
                    await self._until_started(each)
                elif await each.run():
                    self._phase = "Failed"
                    return
            self._initialized = True
            codes = await asyncio.gather(*(each.run() for each in self._containers))
            self._phase = "Failed" if any(codes) else "Succeeded"
        finally:
            stops = [each.stop(grace=self.place.grace_seconds) for each in self._init]
            await asyncio.gather(*stops)
            for task in sidecars:
                task.cancel()
            await asyncio.gather(*sidecars, return_exceptions=True)

    async def _until_started(self, sidecar: Container) -> None:
        while not sidecar.started:  # noqa: ASYNC110, its changes wake what publishes
            await asyncio.sleep(_LOOK_SECONDS)

    async def _prepare(self) -> None:
        """Create the volumes as soon as all objects that they refer to exist."""
        place = self.place
        for folder in ("scratch", "work"):
            (place.folders.pod / folder).mkdir(parents=True, exist_ok=True)
        place.folders.temporary.mkdir(mode=0o700, exist_ok=True)
        said = ""
        while True:
            try:
                place.volumes = volumes.prepare(
                    place.pod, place.sources(), self._claims(), place.folders
                )
            except (MissingSourceError, volumes.UnsupportedVolumeError) as error:
                if str(error) != said:
                    said = str(error)
                    place.event("Warning", "FailedMount", f"MountVolume.SetUp failed for {said}")
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    def _all(self) -> list[Container]:
        return [*self._init, *self._containers]

    async def _keep_published(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            runs = self._initialized and any(each.has_run for each in self._containers)
            if self._phase == "Pending" and runs:
                self._phase = "Running"
            if not await self._published():
                await asyncio.sleep(_RETRY_SECONDS)
                self._changed.set()

    async def _published(self) -> bool:
        """Write the status; return whether the API server has accepted it."""
        try:
            await self._publish(self._status())
        except KubeError:
            return False
        return True

    def _addresses(self) -> Object:
        return {"hostIP": "127.0.0.1", "podIP": self.place.address}

    def _status(self) -> Object:
        ready = self._phase == "Running" and all(each.ready for each in self._containers)
        truth = {True: "True", False: "False"}
        status: Object = {
            "phase": self._phase,
            "startTime": self._started_at,
            **self._addresses(),
            "podIPs": [{"ip": self.place.address}],
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Initialized", "status": truth[self._initialized]},
                {"type": "ContainersReady", "status": truth[ready]},
                {"type": "Ready", "status": truth[ready]},
            ],
            "containerStatuses": [each.status() for each in self._containers],
            **self._problem,
        }
        if self._init:
            status["initContainerStatuses"] = [each.status() for each in self._init]
        return status


def _init_policy(policy: str) -> str:
    """Return the restart policy of init containers: the pod's, but OnFailure in place of Always."""
    return "Never" if policy == "Never" else "OnFailure"
