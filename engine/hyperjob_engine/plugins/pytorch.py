"""The plugin pytorch: one torchrun rendezvous over the pods of all sub-jobs.

With the backend c10d the first pod has the store, and torchrun assigns the ranks: the common
template of a task needs none. torchrun reads each option from the variable PET_<NAME>; an option on
its command line has precedence.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_engine.plugins.world import (
    PluginContext,
    TaskPods,
    World,
    WorldSubJob,
    from_field,
    variable,
)
from hyperjob_engine.resources import devices_in, pod_request

PORT: Final = 29400
TIMEOUT_SECONDS: Final = 900
"""How long pods wait for the first pod and for each other; images take minutes to be pulled."""


class PyTorch:
    """The plugin pytorch, which gives all torchrun agents the address of one store."""

    def variables(
        self, place: PluginContext, task_pods: TaskPods, container: Object
    ) -> Sequence[Object]:
        """Return torchrun's options as variables; raises UnknownHostError."""
        world = place.world
        named = (place.arguments.get("master", ""), place.arguments.get("worker", ""))
        chosen = frozenset(name for name in named if name)
        holder = world.first(named[0] or named[1])
        if holder is None or (chosen and task_pods.task not in chosen):
            return ()
        host, port = place.host(*holder), place.number("port", PORT)
        return (
            variable("PET_NNODES", _agents(world, chosen, holder[0])),
            *_process_variables(place, container),
            variable("PET_RDZV_BACKEND", "c10d"),
            variable("PET_RDZV_ENDPOINT", f"{host}:{port}"),
            variable("PET_RDZV_ID", f"{world.hyperjob}-{world.uid}-{world.generation}"),
            variable("PET_RDZV_CONF", _configuration(place, task_pods, holder)),
            variable("PET_MASTER_ADDR", host),
            variable("PET_MASTER_PORT", port),
            # Other clusters cannot resolve a pod's host name: the agents connect to its IP address.
            from_field("PET_LOCAL_ADDR", "status.podIP"),
        )


@lru_cache(maxsize=16)
def _agents(world: World, chosen: frozenset[str], holder: WorldSubJob) -> str:
    """Return the number of agents; a range if fewer than all sub-jobs may start."""
    counts = {
        sub_job.name: sum(each.pods for each in sub_job.tasks if not chosen or each.task in chosen)
        for sub_job in world.sub_jobs
    }
    total = sum(counts.values())
    others = sorted(count for name, count in counts.items() if name != holder.name)
    fewest = counts[holder.name] + sum(others[: max(0, world.minimum - 1)])
    return str(total) if fewest >= total else f"{fewest}:{total}"


def _process_variables(place: PluginContext, container: Object) -> Sequence[Object]:
    """Return the option of one process per accelerator of the container, if it has any."""
    given = place.number("nproc-per-node", 0)
    number = given or devices_in(pod_request({"containers": [container]}))
    return (variable("PET_NPROC_PER_NODE", number),) if number > 0 else ()


def _configuration(
    place: PluginContext, task_pods: TaskPods, holder: tuple[WorldSubJob, TaskPods]
) -> str:
    """Return torchrun's rendezvous configuration: which pod has the store, and the time limits.

    Among several pods of one task torchrun recognises the pod with the store by its address.
    """
    seconds = place.number("timeout", TIMEOUT_SECONDS)
    waits = f"join_timeout={seconds},read_timeout={seconds}"
    if (place.sub_job, task_pods) != holder:
        return f"is_host=0,{waits}"
    return f"is_host=1,{waits}" if task_pods.pods == 1 else waits
