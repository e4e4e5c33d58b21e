"""The plugin jax: one coordinator, and processes numbered over all sub-jobs.

The coordinator is process 0, as JAX demands. JAX_PROCESS_ID is set only if it can be set in every
pod: a variable cannot be the sum of two. With several pods in a task whose offset is not 0, the
program adds HYPERJOB_RANK_OFFSET and HYPERJOB_TASK_INDEX itself.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_engine.plugins.env import INDEX_FIELD, ranks
from hyperjob_engine.plugins.world import PluginContext, TaskPods, World, from_field, variable

PORT: Final = 8476


class Jax:
    """The plugin jax, which gives every process the address of the coordinator."""

    def variables(
        self, place: PluginContext, task_pods: TaskPods, container: Object
    ) -> Sequence[Object]:
        """Return the variables for jax.distributed.initialize; raises UnknownHostError."""
        first = place.world.first()
        if first is None:
            return ()
        host = place.host(*first)
        return (
            variable("JAX_COORDINATOR_ADDRESS", f"{host}:{place.number('port', PORT)}"),
            variable("JAX_NUM_PROCESSES", place.world.size),
            *_process_id(place.world, task_pods),
            *ranks(place, task_pods),
        )


def _process_id(world: World, task_pods: TaskPods) -> Sequence[Object]:
    """Return JAX_PROCESS_ID where every pod of the world can have it, else nothing."""
    if not _every_pod_can_be_told(world):
        return ()
    if task_pods.offset == 0:
        return (from_field("JAX_PROCESS_ID", INDEX_FIELD),)
    return (variable("JAX_PROCESS_ID", task_pods.offset),)


@lru_cache(maxsize=16)
def _every_pod_can_be_told(world: World) -> bool:
    """Return whether each task has one pod, or is the first: its index is then the number."""
    return all(
        task_pods.pods <= 1 or task_pods.offset == 0
        for sub_job in world.sub_jobs
        for task_pods in sub_job.tasks
    )
