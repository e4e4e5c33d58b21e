"""Volcano's scheduler: lets PodGroups in, and binds their pods all together or not at all."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from uuid import uuid4

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import TASK_PRIORITY
from hyperjob_core.api.wire import condition, natural
from hyperjob_core.kube.errors import Conflict
from hyperjob_core.kube.resources import key_of
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.controller import Controller, change_of, together
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.member.caches import BY_GROUP, BY_NODE, ENDED, MemberCaches
from hyperjob_sandbox.member.gang import (
    FreeNode,
    GangPod,
    Minimum,
    domains,
    fit_error,
    free_node,
    place,
    request_of,
)
from hyperjob_sandbox.member.jobstate import task_of
from hyperjob_sandbox.objects import annotations_of, is_going, is_open, labels_of, phase_of

_CYCLE: Final = "cycle"
_NAME: Final = "volcano"
_GATHER_SECONDS: Final = 0.05
_OVERCOMMIT: Final = (12, 10)
"""Volcano lets groups in up to 1.2 times what the cluster has."""


class GangScheduler:
    """One worker that runs scheduling cycles when something has changed."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches
        self.controller = Controller("volcano-scheduler", self._cycle, workers=1)
        for informers, part in (
            ((caches.pods,), _room_or_gates),
            ((caches.nodes, caches.hypernodes, caches.groups, caches.queues), _face),
        ):
            self.controller.watch(
                *informers, when=change_of(part), keys=lambda _: (_CYCLE,), after=_GATHER_SECONDS
            )

    async def _cycle(self, _: str) -> None:
        nodes = [
            free_node(node, self._caches.pods.by_index(BY_NODE, key_of(node)))
            for node in self._caches.nodes.items()
        ]
        await self._enqueue(self._groups())
        for group in self._groups():
            if _is_let_in(group):
                await self._allocate(group, nodes)

    def _groups(self) -> list[Object]:
        """Return the PodGroups: those of higher priority first, then the older ones."""

        def rank(group: Object) -> tuple[int, str, str]:
            created = group["metadata"]["creationTimestamp"]
            return -self._caches.priority(group), created, key_of(group)

        return sorted(self._caches.groups.items(), key=rank)

    async def _enqueue(self, groups: list[Object]) -> None:
        """Let in the groups that there could be room for, in order."""
        total = resources.total(map(resources.allocatable, self._caches.nodes.items()))
        up, down = _OVERCOMMIT
        room = Counter({name: each * up // down for name, each in total.items()})
        for group in groups:
            if _is_let_in(group):
                room.subtract(self._holds(group))
        for group in groups:
            need, queue = _least(group), group["spec"].get("queue", "default")
            if (
                not _is_let_in(group)
                and is_open(self._caches.queues.get(queue))
                and all(
                    room[name] >= amount or resources.is_ignored(name, room)
                    for name, amount in need.items()
                )
            ):
                room.subtract(need)
                await self._caches.patch(group, {"status": {"phase": "Inqueue"}})

    def _holds(self, group: Object) -> resources.Amounts:
        """Return what a group that is let in takes: its minimum, or more if its pods need it."""
        live = resources.total(
            resources.pod_requests(pod["spec"])
            for pod in self._caches.pods.by_index(BY_GROUP, key_of(group))
            if phase_of(pod) not in ENDED
        )
        return live if phase_of(group) == "Running" else live | _least(group)

    async def _allocate(self, group: Object, nodes: list[FreeNode]) -> None:
        running: Counter[str] = Counter()
        waiting: dict[str, Object] = {}
        for pod in self._caches.pods.by_index(BY_GROUP, key_of(group)):
            if is_going(pod) or phase_of(pod) == "Failed":
                continue
            if pod["spec"]["schedulerName"] != _NAME:
                continue  # Volcano does not see pods of another scheduler
            if pod["spec"].get("nodeName"):
                running[task_of(pod)] += 1
            else:
                waiting[key_of(pod)] = pod
        spec: Object = group["spec"]
        minimum = Minimum(int(spec.get("minMember") or 0), spec.get("minTaskMember") or {})
        gang = [
            GangPod(key, task_of(pod), request_of(pod["spec"]), pod["spec"])
            for key, pod in waiting.items()
            if not pod["spec"].get("schedulingGates")
        ]
        ranks = {key: annotations_of(pod).get(TASK_PRIORITY) for key, pod in waiting.items()}
        gang.sort(key=lambda each: (each.task, len(each.key), each.key))
        gang.sort(key=lambda each: natural(ranks[each.key] or "") or 0, reverse=True)
        choices = domains(self._caches.hypernodes.items(), nodes, spec.get("networkTopology"))
        tried = (place(gang, within, minimum, running=running) for within in choices)
        placed = next(filter(None, tried), {})
        if not placed and not minimum.is_met(running):
            fit = fit_error(gang, nodes, running=running)
            if waiting:
                await self._tell_unschedulable(group, running.total(), len(waiting), fit)
            return
        await together(self._bind(waiting[key], node) for key, node in placed.items())
        if phase_of(group) != "Running" and running | Counter(placed.values()):
            ready = ("tasks in gang are ready to be scheduled", "")
            status: Object = {"phase": "Running", "running": len(placed)}
            said = _said(group, "Scheduled", *ready)
            await self._caches.patch(group, {"status": {**status, "conditions": said}})

    async def _bind(self, pod: Object, node: str) -> None:
        with suppress(Conflict):
            await self._caches.patch(pod, {"spec": {"nodeName": node}})

    async def _tell_unschedulable(
        self, group: Object, running: int, waiting: int, fit: tuple[int, str]
    ) -> None:
        """Write what keeps a gang from nodes; `fit` are the pods that find some, and the words."""
        fitting, why = fit
        least = int(group["spec"].get("minMember") or 0)
        counts = {"Pending": waiting, "Running": running, "minAvailable": least}
        pending = {"Schedulable": fitting, "Unschedulable": waiting - fitting}
        message = (
            f"{least - running - fitting}/{running + waiting} tasks in gang unschedulable:"
            f" pod group is not ready, {_histogram(counts)}; Pending: {_histogram(pending)}{why}"
        )
        phase = phase_of(group) if phase_of(group) == "Inqueue" else "Pending"
        phase = "Unknown" if running else phase
        before = condition(group.get("status") or {}, "Unschedulable").get("message")
        if before != message or phase_of(group) != phase:
            said = _said(group, "Unschedulable", "NotEnoughResources", message)
            await self._caches.patch(group, {"status": {"phase": phase, "conditions": said}})


def _said(group: Object, kind: str, reason: str, message: str) -> list[Object]:
    """Return the conditions of a group with another one: each stays beside later ones.

    The time is that of the last change of the words.
    """
    known = (group.get("status") or {}).get("conditions") or ()
    new = {
        "type": kind,
        "status": "True",
        "transitionID": str(uuid4()),
        "lastTransitionTime": wire_now(),
        "reason": reason,
        "message": message,
    }
    kept = [new if each.get("type") == kind else each for each in known]
    return kept if new in kept else [*kept, new]


def _histogram(numbers: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{number} {name}" for name, number in numbers.items() if number))


def _room_or_gates(pod: Object) -> object:
    return phase_of(pod) in ENDED, pod["spec"].get("schedulingGates")


def _face(obj: Object) -> object:
    """Return what of a node, group or queue a scheduling cycle looks at."""
    status: Object = obj.get("status") or {}
    told = [status.get(field) for field in ("phase", "state", "allocatable")]
    return obj.get("spec"), labels_of(obj), told


def _least(group: Object) -> resources.Amounts:
    return resources.parse(group["spec"].get("minResources"))


def _is_let_in(group: Object) -> bool:
    return phase_of(group) != "Pending"
