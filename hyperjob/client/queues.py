"""Close and open a Volcano Queue in every member.

Volcano's controller in a member sets the state of a Queue when a Command asks for it. A change of
the status in the Karmada API server has no effect: Karmada aggregates it from the members.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from hyperjob.client.reading import is_ready
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import CLUSTERS, COMMANDS, QUEUES, key_of
from hyperjob_core.tasks import at_once

OPEN: Final = frozenset({"", "Open"})
CLOSED: Final = frozenset({"Closed", "Closing"})
_AT_ONCE: Final = 16
_CALL_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.2
_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberQueue:
    """The state of a Queue in a member; with `error` the command did not reach that state."""

    cluster: str
    state: str = ""
    error: str = ""


async def change(kube: Kube, name: str, *, opens: bool, seconds: float) -> list[MemberQueue]:
    """Close or open a Queue in all members, and wait for the new state up to `seconds`.

    Raises NotFound where the Karmada API server has no such Queue, and KubeError.
    """
    await kube.get(QUEUES, name)
    clusters = (await kube.list(CLUSTERS)).items
    change_one = partial(_change_in_member, kube, name, opens=opens, seconds=seconds)
    return await at_once(change_one, sorted(clusters, key=key_of), most=_AT_ONCE)


async def _change_in_member(
    kube: Kube, name: str, cluster: Object, *, opens: bool, seconds: float
) -> MemberQueue:
    """Have a member's Volcano set the state of a Queue; every failure is in the result."""
    where, wanted = key_of(cluster), OPEN if opens else CLOSED
    if not is_ready(cluster):
        return MemberQueue(
            cluster=where, error="the cluster is not Ready: repeat the command when it is"
        )
    member = kube.member(where, time_limit=_CALL_SECONDS)
    try:
        queue = await member.get(QUEUES, name)
        if _state_of(queue) not in wanted:
            await member.create(COMMANDS, _command(queue, opens=opens))
            queue = await _until_state(member, name, wanted, seconds)
    except KubeError as error:
        return MemberQueue(cluster=where, error=str(error))
    state = _state_of(queue)
    late = f"Volcano's controller did not answer the Command within {seconds:g}s"
    return MemberQueue(cluster=where, state=state or "Open", error="" if state in wanted else late)


async def _until_state(member: Kube, name: str, wanted: frozenset[str], seconds: float) -> Object:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        queue = await member.get(QUEUES, name)
        if _state_of(queue) in wanted or loop.time() >= end:
            return queue
        await asyncio.sleep(_LOOK_SECONDS)


def _state_of(queue: Object) -> str:
    return string(at(queue, "status", "state"))


def _command(queue: Object, *, opens: bool) -> Object:
    """Return the Command that Volcano's controller carries out and deletes."""
    action = "OpenQueue" if opens else "CloseQueue"
    target = {
        **QUEUES.head,
        "name": queue["metadata"]["name"],
        "uid": queue["metadata"]["uid"],
        "controller": True,
    }
    return {
        "metadata": {
            "generateName": f"{queue['metadata']['name']}-{action.lower()}-",
            "namespace": _NAMESPACE,
            "ownerReferences": [target],
        },
        "target": target,
        "action": action,
    }
