"""The kubelets of a member whose pods are processes: a controller of the pods of a cluster.

The controller must not run a pod without a node, and must not remove a pod with a running process.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from aiohttp import web

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.events import EventKind, EventRecorder
from hyperjob_core.kube.resources import (
    CONFIG_MAPS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    key_of,
)
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Session, Stream
from hyperjob_sandbox.apiserver.verbs.podlogs import container_of
from hyperjob_sandbox.controller import Controller, Informers
from hyperjob_sandbox.processes import logs
from hyperjob_sandbox.processes.accelerators import Slots
from hyperjob_sandbox.processes.container import Container
from hyperjob_sandbox.processes.environment import Sources
from hyperjob_sandbox.processes.exec import converse
from hyperjob_sandbox.processes.node import Machine, PodPlace
from hyperjob_sandbox.processes.pod import Pod
from hyperjob_sandbox.processes.volumes import SHARED_FOLDER, Folders

_ENDED: Final = ("Succeeded", "Failed")


class ProcessKubelet:
    """Runs the pods of a cluster, and serves their logs."""

    def __init__(self, cluster: str, machine: Machine, caches: Informers) -> None:
        self._cluster = cluster
        self._machine = machine
        self._caches = caches
        self._pods = caches[PODS]
        self._nodes = caches[NODES]
        self._running: dict[str, Pod] = {}
        self._slots = Slots()
        self._recorder = EventRecorder(caches.kube, "kubelet")
        self._controller = Controller(f"kubelet/{cluster}", self._sync, workers=16)
        self._pods.add_handler(self._on_pod)
        self._nodes.add_handler(self._on_node)

    async def run(self) -> None:
        """Run the controller and write Events until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            group.create_task(self._controller.run())

    async def stop(self) -> None:
        """Kill all running pods."""
        for pod in [*self._running.values()]:
            await pod.abandon()
        self._running.clear()

    async def lose(self) -> None:
        """Kill the processes of all pods, whose failure shows when the API server is back."""
        await asyncio.gather(*(pod.kill() for pod in self._running.values()))

    async def answer(self, call: Call) -> Reply | Stream:
        """Answer a subresource of a pod: its log, or a command in it."""
        return {"log": self._log, "exec": self._exec}.get(call.info.subresource, _refuse)(call)

    def _exec(self, call: Call) -> Reply:
        """Answer `GET pods/NAME/exec` by WebSocket."""
        container = self._container(call, call.info.query.get("container", ""))
        if container.process is None or container.exit_code is not None:
            raise errors.bad_request(f"container {container.name} of {call.info.name} does not run")

        async def talk(socket: web.WebSocketResponse) -> None:
            command = [value for key, value in call.info.pairs if key == "command"]
            stdin, tty = call.info.flag("stdin"), call.info.flag("tty")
            await converse(socket, container.exec, command, stdin=stdin, tty=tty)

        return Session(400, b"a WebSocket is needed\n", "text/plain", talk=talk)

    def _container(self, call: Call, name: str) -> Container:
        """Return a container of a pod, the first one without a name; raises ApiError."""
        found = self._pods.get(f"{call.info.namespace}/{call.info.name}")
        if found is None:
            raise call.not_found()
        pod = self._running.get(found["metadata"]["uid"])
        name = name or container_of(found, "")
        container = pod.container(name) if pod is not None else None
        if container is None:
            container_of(found, name)
            of_pod = f'container "{name}" in pod "{call.info.name}"'
            raise errors.bad_request(f"{of_pod} is waiting to start: PodInitializing")
        return container

    def _log(self, call: Call) -> Reply | Stream:
        """Answer `GET pods/NAME/log` as a kubelet does."""
        options = logs.LogOptions.parse(call.info.query)
        container = self._container(call, options.container)
        of_pod = f'container "{container.name}" in pod "{call.info.name}"'
        path = container.previous_log if options.previous else container.log
        if path is None:
            raise errors.bad_request(f"previous terminated {of_pod} not found")
        if not options.previous and not container.has_run:
            reason = (container.state.get("waiting") or {}).get("reason", "ContainerCreating")
            raise errors.bad_request(f"{of_pod} is waiting to start: {reason}")
        if options.follow and not options.previous:
            instance = container.restarts

            def is_over() -> bool:
                return container.restarts != instance or container.exit_code is not None

            return Stream(logs.follow(path, options, is_over=is_over), "text/plain")
        return Reply(200, logs.read(path, options), "text/plain")

    def _on_pod(self, event: EventType, old: Object | None, new: Object | None) -> None:
        seen = new or old
        if seen is not None and (seen["spec"].get("nodeName") or new is None):
            self._controller.add(key_of(seen))

    async def _sync(self, key: str) -> None:
        found = self._pods.get(key)
        uid = found["metadata"]["uid"] if found is not None else ""
        for other, pod in [*self._running.items()]:
            if other != uid and key_of(pod.place.pod) == key:
                del self._running[other]
                await pod.abandon()
        if found is None:
            return
        if found["metadata"].get("deletionTimestamp"):
            if (leaving := self._running.get(uid)) is not None:
                leaving.place.pod = found
                await leaving.end()
                self._running.pop(uid, None)
            await self._caches.remove(found)
        elif uid not in self._running and self._is_due(found):
            self._running[uid] = self._start(found)

    def _is_due(self, pod: Object) -> bool:
        """Tell whether a pod runs when it is seen first: it has not ended, and its node exists."""
        ended = (pod.get("status") or {}).get("phase") in _ENDED
        return not ended and self._nodes.get(pod["spec"]["nodeName"]) is not None

    def _on_node(self, _: EventType, old: Object | None, new: Object | None) -> None:
        if new is not None and old is None:
            for pod in self._pods.items():
                if pod["spec"].get("nodeName") == new["metadata"]["name"]:
                    self._controller.add(key_of(pod))

    def _start(self, found: Object) -> Pod:
        meta, caches = found["metadata"], self._caches
        base = self._machine.folder / self._cluster
        place = PodPlace(
            pod=found,
            cluster=self._cluster,
            machine=self._machine,
            slots=self._slots,
            folders=Folders(
                pod=base / "pods" / meta["uid"],
                temporary=Path(tempfile.gettempdir()) / f"hyperjob-pod-{meta['uid'][:8]}",
                cluster=base,
                shared=self._machine.folder / SHARED_FOLDER,
            ),
            sources=lambda: sources_of(caches, meta["namespace"]),
            event=lambda kind, reason, note: self._record(found, kind, reason, note),
        )
        pod = Pod(
            place,
            claims=lambda: caches.named(PERSISTENT_VOLUME_CLAIMS, meta["namespace"]),
            publish=lambda status: caches.patch(found, {"status": status}, subresource="status"),
        )
        pod.start()
        return pod

    def _record(self, pod: Object, kind: EventKind, reason: str, note: str) -> None:
        regarding = {**PODS.head, **pod}
        self._recorder.event(regarding, kind, reason, "Sync", note)


def sources_of(caches: Informers, namespace: str) -> Sources:
    """Return what the pods of a namespace may read."""
    return Sources(
        config_maps=caches.named(CONFIG_MAPS, namespace), secrets=caches.named(SECRETS, namespace)
    )


def _refuse(call: Call) -> Reply:
    """Refuse what a process of this machine does not need."""
    raise errors.bad_request(
        f"pod {call.info.name} is a process of this machine: connect to its port on this machine"
    )
