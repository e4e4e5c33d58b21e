"""The plugin torchft: each sub-job is a replica group, and a lighthouse brings them together.

Within a sub-job torchrun makes one world, as with the plugin pytorch. Across sub-jobs torchft's
managers find each other through the lighthouse: a task of the HyperJob, or an address outside. A
group that cannot reach the lighthouse asks again, for the lighthouse itself may be made again
elsewhere; so it has a name that does not change with its cluster.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from controller.plugins.plugin import PluginContext
from controller.plugins.pytorch import PyTorch
from controller.plugins.template import from_field, variable
from controller.plugins.world import TaskPods, World, WorldMember
from hyperjob.api.meta import Object

PORT: Final = 29510
RETRIES: Final = 100
"""How often a manager asks the lighthouse for a quorum before its group fails, if it is silent."""

_TORCHRUN: Final = PyTorch()


class TorchFT:
    """Makes a replica group of each sub-job, and gives it the address of the lighthouse."""

    def variables(
        self, place: PluginContext, task_pods: TaskPods, container: Object
    ) -> Sequence[Object]:
        """Return what torchft and torchrun read; raises UnknownHostError."""
        world, task = place.world, place.arguments.get("lighthouse", "")
        shared = [
            variable("HYPERJOB_QUORUM", world.quorum or 1),
            # torchft gives other groups the name of its host, which no other cluster knows.
            from_field("HYPERJOB_POD_IP", "status.podIP"),
        ]
        if task_pods.task == task:
            return shared
        groups = [member for member in world.members if _training(member, task)]
        address = place.arguments.get("address") or _lighthouse(place, task)
        return (
            *shared,
            variable("TORCHFT_LIGHTHOUSE", address),
            variable("TORCHFT_QUORUM_RETRIES", RETRIES),
            variable("REPLICA_GROUP_ID", _number(groups, place.member)),
            variable("NUM_REPLICA_GROUPS", len(groups)),
            *_TORCHRUN.variables(_alone(place, task), task_pods, container),
        )


def _training(member: WorldMember, lighthouse: str) -> tuple[TaskPods, ...]:
    return tuple(
        task_pods
        for task_pods in member.tasks
        if task_pods.task != lighthouse and task_pods.pods > 0
    )


def _number(groups: Sequence[WorldMember], member: WorldMember) -> int:
    """Return a number of a group that stays while others come and go, where one can be had."""
    if len({each.group for each in groups}) == 1:
        return member.number
    return [each.name for each in groups].index(member.name)


def _lighthouse(place: PluginContext, task: str) -> str:
    found = place.world.first(task)
    port = place.number("port", PORT)
    if found is None:
        return f"http://localhost:{port}"
    member, task_pods = found
    return f"http://{place.hosts.service(place.world, place.member, member, task_pods)}:{port}"


def _alone(place: PluginContext, lighthouse: str) -> PluginContext:
    """Return a sub-job as a world of its own, as its torchrun sees it."""
    member = replace(place.member, tasks=_training(place.member, lighthouse))
    world: World = replace(
        place.world, members=(member,), by_name={member.name: member}, minimum=1, size=member.pods
    )
    given = {
        name: text
        for name, text in place.arguments.items()
        if name in ("nproc-per-node", "timeout")
    }
    return replace(place, world=world, member=member, arguments=given)
