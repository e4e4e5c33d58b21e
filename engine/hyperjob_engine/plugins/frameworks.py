"""The variables of each plugin: place and ranks of a pod, and the addresses that a framework asks.

A plugin is a function from the place of a sub-job, a task and a container to the variables of that
container. All pods of a task have one template: only the index, which Volcano writes on each pod,
differs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

from hyperjob_core.api.meta import Object
from hyperjob_core.api.plugins import MPI_MASTER, MPI_WORKER
from hyperjob_engine.plugins.world import (
    PluginContext,
    TaskPods,
    World,
    WorldSubJob,
    from_field,
    variable,
)
from hyperjob_engine.resources import devices_in, pod_request

Plugin: TypeAlias = Callable[[PluginContext, TaskPods, Object], Sequence[Object]]
"""Returns the variables of one container of a task; raises UnknownHostError."""

INDEX_FIELD: Final = "metadata.labels['volcano.sh/task-index']"
JAX_PORT: Final = 8476
TORCH_PORT: Final = 29400
TORCH_SECONDS: Final = 900
"""How long pods wait for the first pod and for each other; images take minutes to be pulled."""
LIGHTHOUSE_PORT: Final = 29510
RETRIES: Final = 100
"""How often a manager asks an unreachable lighthouse for a quorum before its group fails."""


def env(place: PluginContext, task_pods: TaskPods, _container: Object) -> Sequence[Object]:
    """Return variables with HyperJob, sub-job, attempt, cluster and rank offset.

    The rank of a pod is HYPERJOB_RANK_OFFSET + HYPERJOB_TASK_INDEX. Beside them are the checkpoint
    directory and the last step that all sub-jobs saved, as far as they are known.
    """
    world, sub_job = place.world, place.sub_job
    checkpoint = world.hyperjob.checkpoint
    known = {
        "HYPERJOB_CHECKPOINT_DIR": (checkpoint and checkpoint.directory) or None,
        "HYPERJOB_RESUME_STEP": world.hyperjob.resume_step,
    }
    return (
        variable("HYPERJOB_NAME", world.hyperjob.name),
        variable("HYPERJOB_JOB_NAME", sub_job.name),
        variable("HYPERJOB_REPLICATED_JOB", sub_job.group),
        variable("HYPERJOB_JOB_INDEX", sub_job.index),
        variable("HYPERJOB_JOB_COUNT", len(world.sub_jobs)),
        variable("HYPERJOB_ATTEMPT", sub_job.attempt),
        variable("HYPERJOB_CLUSTER", sub_job.cluster),
        *_ranks(world, task_pods),
        *(variable(name, value) for name, value in known.items() if value is not None),
    )


def _ranks(world: World, task_pods: TaskPods) -> Sequence[Object]:
    """Return the variables from which a pod computes its rank and the world size."""
    return (
        variable("HYPERJOB_WORLD_SIZE", world.size),
        variable("HYPERJOB_RANK_OFFSET", task_pods.offset),
        from_field("HYPERJOB_TASK_INDEX", INDEX_FIELD),
    )


def jax(place: PluginContext, task_pods: TaskPods, _container: Object) -> Sequence[Object]:
    """Return the variables for jax.distributed.initialize.

    The coordinator is process 0, as JAX demands. JAX_PROCESS_ID is set only if it can be set in
    every pod: a variable cannot be the sum of two. With several pods in a task whose offset is not
    0, the program adds HYPERJOB_RANK_OFFSET and HYPERJOB_TASK_INDEX itself.
    """
    world, first = place.world, place.world.first()
    if first is None:
        return ()
    number = variable("JAX_PROCESS_ID", task_pods.offset)
    if task_pods.offset == 0:
        number = from_field("JAX_PROCESS_ID", INDEX_FIELD)
    return (
        variable(
            "JAX_COORDINATOR_ADDRESS", f"{place.host(*first)}:{place.number('port', JAX_PORT)}"
        ),
        variable("JAX_NUM_PROCESSES", world.size),
        *([number] if _every_pod_can_be_told(world) else ()),
        *_ranks(world, task_pods),
    )


@lru_cache(maxsize=16)
def _every_pod_can_be_told(world: World) -> bool:
    """Return whether each task has one pod, or is the first: its index is then the number."""
    return all(
        task_pods.pods <= 1 or task_pods.offset == 0
        for sub_job in world.sub_jobs
        for task_pods in sub_job.tasks
    )


def mpi(place: PluginContext, task_pods: TaskPods, _container: Object) -> Sequence[Object]:
    """Return MPI_HOST for the launcher task, with the hosts of all sub-jobs.

    Volcano's plugin of that name gives the launcher only the hosts of its own vcjob. The user
    provides the SSH keys, because Volcano's plugin ssh generates others for each vcjob.
    """
    launcher = place.world.first(place.arguments.get("master") or MPI_MASTER)
    if launcher != (place.sub_job, task_pods):
        return ()
    worker = place.arguments.get("worker") or MPI_WORKER
    hosts = [
        place.host(sub_job, other, index)
        for sub_job in place.world.sub_jobs
        for other in sub_job.tasks
        if other.task == worker
        for index in range(other.pods)
    ]
    found = [variable("MPI_HOST", ",".join(hosts))]
    if "port" in place.arguments:
        found.append(variable("OMPI_MCA_plm_rsh_args", f"-p {place.number('port', 22)}"))
    return found


def pytorch(place: PluginContext, task_pods: TaskPods, container: Object) -> Sequence[Object]:
    """Return torchrun's options as variables: one rendezvous over the pods of all sub-jobs.

    With the backend c10d the first pod has the store, and torchrun assigns the ranks: the common
    template of a task needs none. torchrun reads each option from the variable PET_<NAME>; an
    option on its command line has precedence.
    """
    world = place.world
    named = (place.arguments.get("master", ""), place.arguments.get("worker", ""))
    chosen = frozenset(name for name in named if name)
    holder = world.first(named[0] or named[1])
    if holder is None or (chosen and task_pods.task not in chosen):
        return ()
    host, port = place.host(*holder), place.number("port", TORCH_PORT)
    # One process for each accelerator of the container, if it has any.
    processes = place.number("nproc-per-node", 0)
    processes = processes or devices_in(pod_request({"containers": [container]}))
    return (
        variable("PET_NNODES", _agents(world, chosen, holder[0])),
        *([variable("PET_NPROC_PER_NODE", processes)] if processes > 0 else ()),
        variable("PET_RDZV_BACKEND", "c10d"),
        variable("PET_RDZV_ENDPOINT", f"{host}:{port}"),
        variable("PET_RDZV_ID", f"{world.hyperjob.name}-{world.hyperjob.uid}-{world.generation}"),
        variable("PET_RDZV_CONF", _rendezvous(place, task_pods, holder)),
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


def _rendezvous(
    place: PluginContext, task_pods: TaskPods, holder: tuple[WorldSubJob, TaskPods]
) -> str:
    """Return torchrun's rendezvous configuration: which pod has the store, and the time limits.

    Among several pods of one task torchrun recognises the pod with the store by its address.
    """
    seconds = place.number("timeout", TORCH_SECONDS)
    waits = f"join_timeout={seconds},read_timeout={seconds}"
    if (place.sub_job, task_pods) != holder:
        return f"is_host=0,{waits}"
    return f"is_host=1,{waits}" if task_pods.pods == 1 else waits


def torchft(place: PluginContext, task_pods: TaskPods, container: Object) -> Sequence[Object]:
    """Return the variables of torchft and torchrun: each sub-job is a replica group.

    Within a sub-job torchrun forms one world, as with the plugin pytorch. Across sub-jobs torchft's
    managers find each other through the lighthouse: a task of the HyperJob, or an external address.
    A group that cannot reach the lighthouse retries. The lighthouse's sub-job may be recreated on
    another cluster, therefore its name does not depend on the cluster.
    """
    world, task = place.world, place.arguments.get("lighthouse", "")
    shared = [
        variable("HYPERJOB_QUORUM", world.hyperjob.quorum or 1),
        # torchft sends its host name to other groups, which other clusters cannot resolve.
        from_field("HYPERJOB_POD_IP", "status.podIP"),
    ]
    if task_pods.task == task:
        return shared
    groups = [sub_job for sub_job in world.sub_jobs if _training_tasks(sub_job, task)]
    if place.sub_job not in groups:
        return shared  # a sub-job whose tasks have no pods
    number = groups.index(place.sub_job)
    if len({each.group for each in groups}) == 1:
        number = place.sub_job.number  # which scaling does not change
    return (
        *shared,
        variable("TORCHFT_LIGHTHOUSE", place.arguments.get("address") or _lighthouse(place, task)),
        variable("TORCHFT_QUORUM_RETRIES", RETRIES),
        variable("REPLICA_GROUP_ID", number),
        variable("NUM_REPLICA_GROUPS", len(groups)),
        *pytorch(_own_world(place, task), task_pods, container),
    )


def _training_tasks(sub_job: WorldSubJob, lighthouse: str) -> tuple[TaskPods, ...]:
    """Return the tasks of a sub-job that have pods and are not the lighthouse."""
    return tuple(each for each in sub_job.tasks if each.task != lighthouse and each.pods > 0)


def _lighthouse(place: PluginContext, task: str) -> str:
    """Return the address of the lighthouse; that of the own pod if the HyperJob has none."""
    found = place.world.first(task)
    port = place.number("port", LIGHTHOUSE_PORT)
    if found is None:
        return f"http://localhost:{port}"
    return f"http://{place.service(*found)}:{port}"


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
    options = {"nproc-per-node", "timeout"} & place.arguments.keys()
    given = {name: place.arguments[name] for name in options}
    return replace(place, world=world, sub_job=sub_job, arguments=given)


ACTING: Final[Mapping[str, Plugin]] = {
    "env": env,
    "jax": jax,
    "mpi": mpi,
    "pytorch": pytorch,
    "torchft": torchft,
}
"""The plugins that set variables; svc changes only host names and Services."""
