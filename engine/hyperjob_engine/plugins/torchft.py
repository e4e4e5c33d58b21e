"""The plugin torchft: each sub-job is a replica group, and a lighthouse connects the groups.

Within a sub-job torchrun forms one world, as with the plugin pytorch. Across sub-jobs torchft's
managers find each other through the lighthouse: a task of the HyperJob, or an external address. A
group that cannot reach the lighthouse retries. The lighthouse's sub-job may be recreated on another
cluster, therefore its name does not depend on the cluster.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_engine.plugins.pytorch import PyTorch
from hyperjob_engine.plugins.world import (
    PluginContext,
    TaskPods,
    World,
    WorldSubJob,
    from_field,
    variable,
)

PORT: Final = 29510
RETRIES: Final = 100
"""How often a manager asks an unreachable lighthouse for a quorum before its group fails."""

_TORCHRUN: Final = PyTorch()


class TorchFT:
    """The plugin torchft, which gives each replica group the address of the lighthouse."""

    def variables(
        self, place: PluginContext, task_pods: TaskPods, container: Object
    ) -> Sequence[Object]:
        """Return the variables of torchft and torchrun; raises UnknownHostError."""
        world, task = place.world, place.arguments.get("lighthouse", "")
        shared = [
            variable("HYPERJOB_QUORUM", world.quorum or 1),
            # torchft sends its host name to other groups, which other clusters cannot resolve.
            from_field("HYPERJOB_POD_IP", "status.podIP"),
        ]
        if task_pods.task == task:
            return shared
        groups = [sub_job for sub_job in world.sub_jobs if _training_tasks(sub_job, task)]
        if place.sub_job not in groups:
            return shared  # a sub-job whose tasks have no pods
        address = place.arguments.get("address") or _lighthouse(place, task)
        return (
            *shared,
            variable("TORCHFT_LIGHTHOUSE", address),
            variable("TORCHFT_QUORUM_RETRIES", RETRIES),
            variable("REPLICA_GROUP_ID", _group_number(groups, place.sub_job)),
            variable("NUM_REPLICA_GROUPS", len(groups)),
            *_TORCHRUN.variables(_own_world(place, task), task_pods, container),
        )


def _training_tasks(sub_job: WorldSubJob, lighthouse: str) -> tuple[TaskPods, ...]:
    """Return the tasks of a sub-job that have pods and are not the lighthouse."""
    return tuple(
        task_pods
        for task_pods in sub_job.tasks
        if task_pods.task != lighthouse and task_pods.pods > 0
    )


def _group_number(groups: Sequence[WorldSubJob], sub_job: WorldSubJob) -> int:
    """Return the number of a replica group, stable in scaling with one replicatedJob."""
    if len({each.group for each in groups}) == 1:
        return sub_job.number
    return [each.name for each in groups].index(sub_job.name)


def _lighthouse(place: PluginContext, task: str) -> str:
    """Return the address of the lighthouse; that of the own pod if the HyperJob has none."""
    found = place.world.first(task)
    port = place.number("port", PORT)
    if found is None:
        return f"http://localhost:{port}"
    sub_job, task_pods = found
    return f"http://{place.hosts.service(place.world, place.sub_job, sub_job, task_pods)}:{port}"


def _own_world(place: PluginContext, lighthouse: str) -> PluginContext:
    """Return the context of a sub-job as a world of its own, for its torchrun."""
    sub_job = replace(place.sub_job, tasks=_training_tasks(place.sub_job, lighthouse))
    world: World = replace(
        place.world,
        sub_jobs=(sub_job,),
        by_name={sub_job.name: sub_job},
        minimum=1,
        size=sub_job.pods,
    )
    given = {
        name: text
        for name, text in place.arguments.items()
        if name in ("nproc-per-node", "timeout")
    }
    return replace(place, world=world, sub_job=sub_job, arguments=given)
