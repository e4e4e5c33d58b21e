"""What a kubelet does, whatever it runs pods with, and the simulation of it."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream
from hyperjob_sandbox.clusters import SandboxConfig
from hyperjob_sandbox.controller import Controller
from hyperjob_sandbox.member.caches import ENDED, MemberCaches
from hyperjob_sandbox.member.jobpods import JOB_NAME, JOB_RETRY_COUNT, TASK_INDEX, TASK_SPEC
from hyperjob_sandbox.objects import annotations_of, is_going, phase_of
from hyperjob_sandbox.processes.environment import MissingSourceError, environment
from hyperjob_sandbox.processes.kubelet import sources_of
from hyperjob_sandbox.processes.volumes import contents

_RESTART_BACKOFF: Final = 10.0
"""Seconds before a container that has ended is started again, before the speed factor."""
_RETRY_SECONDS: Final = 1.0
_BACK_OFF: Final[Object] = {
    "waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}
}


class Kubelet(Protocol):
    """Every kubelet of one member cluster.

    A pod that is bound to a node is started once, its status is written as it changes, and its
    containers are started again as its restartPolicy says. A pod that is being deleted is ended,
    and removed from the API server when nothing of it runs any more.
    """

    async def run(self) -> None:
        """Do all this until cancelled; the member cluster runs it."""

    async def answer(self, call: Call) -> Reply | Stream:
        """Answer a subresource of a pod: log, exec, attach, portforward; raises ApiError."""
        raise errors.method_not_allowed()

    async def lose(self) -> None:
        """Kill the processes of all pods: the cluster is lost."""

    async def stop(self) -> None:
        """End what runs, without a grace period: the member cluster ends."""


KubeletFactory = Callable[[MemberCaches], Kubelet]
"""Makes the kubelets of a member cluster, before its informers have run."""


@dataclass(slots=True)
class _Run:
    """A pod that runs: when it ends and how; restarts of its containers, and their last state."""

    uid: str
    ends: float
    exit_code: int
    restarts: int
    started_at: str
    waiting: bool = False
    last: Object | None = None


class SimulatedKubelet(Kubelet):
    """One controller over the pods of a cluster; nothing of a pod really runs."""

    def __init__(self, cluster: str, config: SandboxConfig, caches: MemberCaches) -> None:
        self._cluster = cluster
        self._config = config
        self._caches = caches
        self._runs: dict[str, _Run] = {}
        self._recorder = EventRecorder(caches.kube, "kubelet")
        self.controller = Controller(f"kubelet/{cluster}", self._sync, workers=8)
        self.controller.watch(caches.pods, when=_concerns_kubelet)
        self.controller.watch(caches.nodes, keys=caches.pods_on)

    async def run(self) -> None:
        """Run the controller and write Events until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            group.create_task(self.controller.run())

    async def lose(self) -> None:
        """Let the pods go on: none of them has a process."""

    async def stop(self) -> None:
        """Forget what runs."""
        self._runs.clear()

    async def _sync(self, key: str) -> None:
        pod = self._caches.pods.get(key)
        if pod is None or is_going(pod):
            self._runs.pop(key, None)
            if pod is not None:
                await self._caches.remove(pod)
            return
        if phase_of(pod) in ENDED:
            return
        run = self._runs.get(key)
        if run is not None and run.uid != pod["metadata"]["uid"]:
            run = None
        if run is None and self._caches.nodes.get(pod["spec"]["nodeName"]) is None:
            return
        if run is None and (waiting := self._waits_for(pod)) is not None:
            await self._write(pod, self._plan(pod, restarts=0), "Pending", waiting)
            self.controller.add(key, after=_RETRY_SECONDS)
            return
        now = time.monotonic()
        if run is None or (run.waiting and now >= run.ends):
            before, run = run, self._plan(pod, restarts=run.restarts if run else 0)
            self._runs[key], run.last = run, before.last if before else None
            await self._write(pod, run, "Running", {"running": {"startedAt": run.started_at}})
        elif now < run.ends:
            pass
        elif _is_started_again(pod, run.exit_code):
            run.restarts += 1
            run.waiting, run.last = True, _terminated(run)
            run.ends = now + _RESTART_BACKOFF / self._config.speed
            await self._write(pod, run, "Running", _BACK_OFF)
        else:
            phase = "Failed" if run.exit_code else "Succeeded"
            await self._write(pod, run, phase, _terminated(run))
            return
        self.controller.add(key, after=max(0.0, run.ends - time.monotonic()))

    def _waits_for(self, pod: Object) -> Object | None:
        """Return the state of containers for which an object is missing."""
        spec, namespace = pod["spec"], pod["metadata"]["namespace"]
        containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
        if not spec.get("volumes") and not any(
            each.get("envFrom") or each.get("env") for each in containers
        ):
            return None
        sources = sources_of(self._caches, namespace)
        claims = self._caches.named(PERSISTENT_VOLUME_CLAIMS, namespace)
        for volume in spec.get("volumes") or ():
            try:
                contents(pod, volume, sources, claims)
            except MissingSourceError as error:
                note = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
                regarding = {**PODS.head, **pod}
                self._recorder.event(regarding, "Warning", "FailedMount", "Sync", note)
                return {"waiting": {"reason": "ContainerCreating"}}
        try:
            for container in containers:
                environment(pod, container, sources)
        except MissingSourceError as error:
            return {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)}}
        return None

    async def _write(self, pod: Object, run: _Run, phase: str, state: Object) -> None:
        status = _status(pod, run, phase, state)
        await self._caches.patch(pod, {"status": status}, subresource="status")

    def _plan(self, pod: Object, *, restarts: int) -> _Run:
        annotations = annotations_of(pod)
        names = {
            "job": annotations.get(JOB_NAME) or str(pod["metadata"]["name"]),
            "task": annotations.get(TASK_SPEC, ""),
            "cluster": self._cluster,
        }
        seconds = self._config.run_times.seconds(**names)
        with suppress(KeyError, ValueError):  # no time of its own, or a malformed one
            seconds = float(annotations[self._config.run_times.annotation])
        code, after = self._config.exit_code(
            pod=int(annotations.get(TASK_INDEX) or 0),
            attempt=int(annotations.get(JOB_RETRY_COUNT) or 0) + restarts,
            **names,
        )
        if code and after is not None:
            seconds = after
        ends = time.monotonic() + max(0.0, seconds) / self._config.speed
        return _Run(pod["metadata"]["uid"], ends, code, restarts, wire_now())


def _concerns_kubelet(_old: Object | None, new: Object | None) -> bool:
    if new is None:
        return True
    return bool(new["spec"].get("nodeName")) and (phase_of(new) == "Pending" or is_going(new))


def _is_started_again(pod: Object, exit_code: int) -> bool:
    policy = pod["spec"].get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _terminated(run: _Run) -> Object:
    return {
        "terminated": {
            "exitCode": run.exit_code,
            "reason": "Error" if run.exit_code else "Completed",
            "startedAt": run.started_at,
            "finishedAt": wire_now(),
        }
    }


def _status(pod: Object, run: _Run, phase: str, state: Object) -> Object:
    ready = "running" in state
    entry = {
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": run.restarts,
        "state": state,
        **({"lastState": run.last} if run.last else {}),
    }
    return {
        "phase": phase,
        "hostIP": "10.9.0.1",
        "podIP": "10.9.0.1",
        "startTime": (pod.get("status") or {}).get("startTime") or run.started_at,
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True" if ready else "False"},
        ],
        "containerStatuses": [
            {"name": container["name"], "image": container.get("image", ""), **entry}
            for container in pod["spec"].get("containers") or ()
        ],
    }
