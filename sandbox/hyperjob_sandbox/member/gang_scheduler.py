"""Volcano's scheduler: lets PodGroups in, and binds their pods all together or not at all.

One cycle at a time over a snapshot of the member; `gang.place` decides. It must never bind a pod of
a group that is not let in.
"""

import asyncio
from collections import Counter
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, PatchType
from hyperjob.kube.errors import Conflict, NotFound
from hyperjob.kube.resources import PODGROUPS, PODS, key_of
from hyperjob_sandbox.controller import Controller
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.member.fiterror import fit_error
from hyperjob_sandbox.member.gang import (
    FreeNode,
    GangPod,
    Minimum,
    free_node,
    place,
    request_of,
)
from hyperjob_sandbox.member.jobpods import TASK_SPEC
from hyperjob_sandbox.member.watching import BY_GROUP, BY_NODE, MemberCaches, phase_of_pod
from hyperjob_sandbox.objects import wire_now

_CYCLE: Final = "cycle"
_GATHER_SECONDS: Final = 0.05
_OVERCOMMIT: Final = (12, 10)
"""Volcano lets groups in up to 1.2 times what the cluster has."""
_AT_ONCE: Final = 16


class GangScheduler:
    """One worker that runs scheduling cycles when something has changed."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches
        self._kube = caches.kube
        self._bound: dict[str, str] = {}
        self._let_in: set[str] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.controller = Controller("volcano-scheduler", self._cycle, workers=1)
        for informer in (caches.pods, caches.nodes, caches.groups, caches.queues):
            informer.add_handler(self._on_change)

    def _on_change(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._bound.pop(old["metadata"]["uid"], None)
            self._let_in.discard(old["metadata"]["uid"])
        elif new is not None and new["kind"] == PODS.kind:
            if new["spec"].get("nodeName"):
                self._bound.pop(new["metadata"]["uid"], None)
            if old is not None and not _frees(old, new):
                return
        elif old is not None and new is not None and _face(old) == _face(new):
            return
        self.controller.add(_CYCLE, after=_GATHER_SECONDS)

    async def _cycle(self, _: str) -> None:
        nodes = self._free_nodes()
        groups = sorted(self._caches.groups.items(), key=self._rank)
        await self._enqueue(groups)
        for group in groups:
            if self._is_let_in(group):
                await self._allocate(group, nodes)

    def _rank(self, group: Object) -> tuple[int, str, str]:
        """Order groups: higher priority first, then the older one."""
        name = group["spec"].get("priorityClassName")
        priority_class = self._caches.priority_classes.get(name) if name else None
        priority = int((priority_class or {}).get("value") or 0)
        return -priority, group["metadata"]["creationTimestamp"], key_of(group)

    def _free_nodes(self) -> list[FreeNode]:
        """Return what is free, with the bindings that no informer has confirmed yet."""
        nodes = {
            node["metadata"]["name"]: free_node(
                node, self._caches.pods.by_index(BY_NODE, node["metadata"]["name"])
            )
            for node in self._caches.nodes.items()
        }
        if self._bound:
            for pod in self._caches.pods.items():
                name = self._bound.get(pod["metadata"]["uid"])
                if name in nodes and not pod["spec"].get("nodeName"):
                    nodes[name].take(request_of(pod["spec"]))
        return list(nodes.values())

    def _is_let_in(self, group: Object) -> bool:
        return _phase(group) not in ("", "Pending") or group["metadata"]["uid"] in self._let_in

    async def _enqueue(self, groups: list[Object]) -> None:
        """Let in the groups that there could be room for, in order."""
        total: resources.Resources = resources.total(
            resources.parse((node.get("status") or {}).get("allocatable"))
            for node in self._caches.nodes.items()
        )
        up, down = _OVERCOMMIT
        room = {name: amount.nano * up // down for name, amount in total.items()}
        waiting: list[Object] = []
        for group in groups:
            if self._is_let_in(group):
                for name, amount in self._holds(group).items():
                    room[name] = room.get(name, 0) - amount
            else:
                waiting.append(group)
        for group in waiting:
            need = _nano(group["spec"].get("minResources"))
            if self._is_open(group) and all(room.get(name, 0) >= need[name] for name in need):
                for name, amount in need.items():
                    room[name] -= amount
                await self._patch_group(group, {"phase": "Inqueue"})
                self._let_in.add(group["metadata"]["uid"])

    def _is_open(self, group: Object) -> bool:
        queue = self._caches.queues.get(group["spec"].get("queue", "default"))
        return queue is not None and (queue.get("status") or {}).get("state") == "Open"

    def _holds(self, group: Object) -> dict[str, int]:
        """Return what a group that is let in takes: its minimum, or more if its pods need it."""
        pods = resources.total(
            resources.pod_requests(pod["spec"])
            for pod in self._caches.pods.by_index(BY_GROUP, key_of(group))
            if phase_of_pod(pod) not in {"Succeeded", "Failed"}
        )
        live = {name: amount.nano for name, amount in pods.items()}
        if _phase(group) == "Running":
            return live
        least = _nano(group["spec"].get("minResources"))
        return {name: max(live.get(name, 0), least.get(name, 0)) for name in {*live, *least}}

    async def _allocate(self, group: Object, nodes: list[FreeNode]) -> None:
        running: Counter[str] = Counter()
        waiting: list[Object] = []
        for pod in self._caches.pods.by_index(BY_GROUP, key_of(group)):
            if pod["metadata"].get("deletionTimestamp") or phase_of_pod(pod) == "Failed":
                continue
            if pod["spec"].get("nodeName") or pod["metadata"]["uid"] in self._bound:
                running[_task(pod)] += 1
            else:
                waiting.append(pod)
        if not waiting:
            return
        minimum = Minimum(
            int(group["spec"].get("minMember") or 0),
            {
                task: int(least)
                for task, least in (group["spec"].get("minTaskMember") or {}).items()
            },
        )
        waiting.sort(key=lambda pod: (_task(pod), len(_pod_name(pod)), _pod_name(pod)))
        gang = [
            GangPod(key_of(pod), _task(pod), request_of(pod["spec"]), pod["spec"])
            for pod in waiting
        ]
        placed = place(gang, nodes, minimum, running=running)
        if not placed:
            why = fit_error(gang, nodes, running=running)
            await self._tell_unschedulable(group, len(waiting), minimum, why)
            return
        bindings = [(pod, placed[key_of(pod)]) for pod in waiting if key_of(pod) in placed]
        for pod, node in bindings:
            self._bound[pod["metadata"]["uid"]] = node
        await asyncio.gather(*(self._bind(pod, node) for pod, node in bindings))
        if _phase(group) != "Running":
            ready = _condition("Scheduled", "tasks in gang are ready to be scheduled", "")
            status: Object = {"phase": "Running", "running": len(bindings), "conditions": [ready]}
            await self._patch_group(group, status)

    async def _bind(self, pod: Object, node: str) -> None:
        meta: Object = pod["metadata"]
        try:
            async with self._slots:
                await self._kube.patch(
                    PODS,
                    meta["name"],
                    {"metadata": {"uid": meta["uid"]}, "spec": {"nodeName": node}},
                    kind=PatchType.MERGE,
                    namespace=meta["namespace"],
                )
        except (NotFound, Conflict):
            self._bound.pop(meta["uid"], None)

    async def _tell_unschedulable(
        self, group: Object, waiting: int, minimum: Minimum, why: str
    ) -> None:
        message = (
            f"{waiting}/{waiting} tasks in gang unschedulable: pod group is not ready, "
            f"{waiting} Pending, {minimum.members} minAvailable; Pending: {waiting} Unschedulable"
            f"{why}"
        )
        conditions = (group.get("status") or {}).get("conditions") or ()
        if any(each.get("message") == message for each in conditions):
            return
        condition = _condition("Unschedulable", "NotEnoughResources", message)
        await self._patch_group(group, {"conditions": [condition]})

    async def _patch_group(self, group: Object, status: Object) -> None:
        """Write the status of a group, which is no subresource of it."""
        meta: Object = group["metadata"]
        try:
            await self._kube.patch(
                PODGROUPS,
                meta["name"],
                {"status": status},
                kind=PatchType.MERGE,
                namespace=meta["namespace"],
            )
        except NotFound:
            return


def _condition(kind: str, reason: str, message: str) -> Object:
    condition: Object = {
        "type": kind,
        "status": "True",
        "reason": reason,
        "lastTransitionTime": wire_now(),
    }
    if message:
        condition["message"] = message
    return condition


def _frees(old: Object, new: Object) -> bool:
    """Tell whether a change of a pod gives room, or a pod to place."""
    ended = {"Succeeded", "Failed"}
    return (phase_of_pod(new) in ended) != (phase_of_pod(old) in ended)


def _face(obj: Object) -> tuple[object, ...]:
    """Return what of a node, group or queue a scheduling cycle looks at."""
    status: Object = obj.get("status") or {}
    return (
        obj.get("spec"),
        obj["metadata"].get("labels"),
        status.get("phase"),
        status.get("state"),
        status.get("allocatable"),
    )


def _nano(amounts: Object | None) -> dict[str, int]:
    return {name: amount.nano for name, amount in resources.parse(amounts).items()}


def _phase(obj: Object) -> str:
    return str((obj.get("status") or {}).get("phase") or "")


def _task(pod: Object) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(TASK_SPEC, ""))


def _pod_name(pod: Object) -> str:
    return str(pod["metadata"]["name"])
