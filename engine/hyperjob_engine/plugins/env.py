"""The plugin env: variables with the place of a pod in the HyperJob, for any framework.

The rank of a pod is HYPERJOB_RANK_OFFSET + HYPERJOB_TASK_INDEX: all pods of a task have one
template, and only the index, which Volcano writes on each pod, differs.
"""

from collections.abc import Sequence
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_engine.plugins.world import PluginContext, TaskPods, World, from_field, variable

INDEX_FIELD: Final = "metadata.labels['volcano.sh/task-index']"


class Env:
    """The plugin env."""

    def variables(
        self, place: PluginContext, task_pods: TaskPods, container: Object
    ) -> Sequence[Object]:
        """Return variables with HyperJob, sub-job, attempt, cluster and rank offset."""
        world, sub_job = place.world, place.sub_job
        return (
            variable("HYPERJOB_NAME", world.hyperjob),
            variable("HYPERJOB_JOB_NAME", sub_job.name),
            variable("HYPERJOB_REPLICATED_JOB", sub_job.group),
            variable("HYPERJOB_JOB_INDEX", sub_job.index),
            variable("HYPERJOB_JOB_COUNT", len(world.sub_jobs)),
            variable("HYPERJOB_ATTEMPT", sub_job.attempt),
            variable("HYPERJOB_CLUSTER", sub_job.cluster),
            *ranks(place, task_pods),
            *_checkpoint_variables(world),
        )


def _checkpoint_variables(world: World) -> Sequence[Object]:
    """Return variables with the checkpoint directory and the last step that all sub-jobs saved."""
    found = []
    if world.checkpoint_dir:
        found.append(variable("HYPERJOB_CHECKPOINT_DIR", world.checkpoint_dir))
    if world.resume_step is not None:
        found.append(variable("HYPERJOB_RESUME_STEP", world.resume_step))
    return found


def ranks(place: PluginContext, task_pods: TaskPods) -> Sequence[Object]:
    """Return the variables from which a pod computes its rank and the world size."""
    return (
        variable("HYPERJOB_WORLD_SIZE", place.world.size),
        variable("HYPERJOB_RANK_OFFSET", task_pods.offset),
        from_field("HYPERJOB_TASK_INDEX", INDEX_FIELD),
    )
