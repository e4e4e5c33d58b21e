"""Choose the containers whose logs to read. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hyperjob.client.errors import ClientError, NotYetError
from hyperjob.client.members import task_of
from hyperjob.client.summary import Summary, choose, meant
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, count, mapping, objects, string, string_map
from hyperjob_core.text import did_you_mean
from hyperjob_engine.members.podfailures import rank_of

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The pods and containers that the user has selected, and the lines of their logs.

    `attempt` counts from 1. `tail` is the number of last lines of each container, -1 for all: by
    default all of a single one, else 10. `since` is in seconds before now. `previous`: those from
    before the last restart of the container. `hides` leaves out the lines for the controller.
    """

    jobs: Sequence[str] = ()
    cluster: str | None = None
    task: str | None = None
    container: str | None = None
    all_containers: bool = False
    ranks: frozenset[int] | None = None
    attempt: int | None = None
    tail: int | None = None
    since: float | None = None
    previous: bool = False
    hides: bool = False

    @property
    def query(self) -> dict[str, str]:
        """Return the parameters of a request for a log, without that of the last lines."""
        return {
            **({"previous": "true"} if self.previous else {}),
            **({"sinceSeconds": str(max(1, round(self.since)))} if self.since is not None else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLog:
    """The log of a container, through restarts of the container and of its pod.

    `uid` is that of the pod, `rank` its rank, None without the plugins env and jax. `running`: the
    container runs now. `final`: the pod has ended.
    """

    cluster: str
    pod: str
    container: str
    uid: str = field(default="", compare=False)
    restarts: int = field(default=0, compare=False)
    job: str = field(default="", compare=False)
    several: bool = field(default=False, compare=False)
    running: bool = field(default=False, compare=False)
    final: bool = field(default=False, compare=False)
    rank: int | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        """Return cluster and pod, and the container where the pod has several."""
        return f"{self.cluster}/{self.pod}" + (f"/{self.container}" if self.several else "")

    def is_run_of(self, other: "ContainerLog") -> bool:
        """Return whether neither the container nor its pod has restarted in between."""
        return (self.uid, self.restarts) == (other.uid, other.restarts)


def placed_jobs(summary: Summary, wanted: Wanted) -> list[JobStatus]:
    """Return the selected sub-jobs that are on a cluster."""
    jobs = meant(summary, wanted.jobs) if wanted.jobs else list(summary.jobs)
    return [job for job in jobs if job.cluster and wanted.cluster in (None, job.cluster)]


def require_placed(summary: Summary, wanted: Wanted) -> list[JobStatus]:
    """Return the selected sub-jobs on a cluster; NotYetError if there is none.

    ClientError when a selected name is not a sub-job.
    """
    choose(summary, wanted.jobs)
    if placed := placed_jobs(summary, wanted):
        return placed
    near = did_you_mean(wanted.cluster or "", (job.cluster for job in summary.jobs))
    where = f"on cluster {wanted.cluster}" if wanted.cluster else "on a cluster yet"
    if near:
        raise ClientError(f"no sub-job of {summary.name} is {where}{near}")
    hint = f"kubectl hyperjob why {summary.name} -n {summary.namespace}"
    raise NotYetError(f"no sub-job of {summary.name} is {where}: {hint}")


def require_task(summary: Summary, wanted: Wanted) -> None:
    """Raise ClientError when no selected replicated job has the selected task."""
    groups = {job.replicated_job for job in meant(summary, wanted.jobs)} if wanted.jobs else None
    known = dict.fromkeys(
        task for each in summary.groups if not groups or each.name in groups for task in each.tasks
    )
    if wanted.task and known and wanted.task not in known:
        raise ClientError(
            f"no pod of {summary.name} has a task {wanted.task!r}; the tasks are {', '.join(known)}"
        )


def no_log(summary: Summary, *, failed: bool) -> ClientError:
    """Return the error that no container has started, or that no pods could be read."""
    if failed:
        return ClientError(f"no pods of {summary.name} could be read")
    why = f"kubectl hyperjob why {summary.name} -n {summary.namespace}"
    return NotYetError(f"no pod of {summary.name} has a log yet: {why}")


def require_container(pods: Mapping[str, Sequence[Object]], wanted: Wanted) -> None:
    """Raise ClientError when no pod has the selected container."""
    known = {name for each in pods.values() for pod in each for name in _every(pod)}
    if wanted.container and known and wanted.container not in known:
        raise ClientError(
            f"no pod has a container {wanted.container!r}; there are {', '.join(sorted(known))}"
        )


def require_ranks(pods: Mapping[str, Sequence[Object]], wanted: Wanted) -> None:
    """Raise ClientError when pods have no ranks, or none has a selected rank."""
    ranks = [rank_of(pod) for each in pods.values() for pod in each]
    known = {rank for rank in ranks if rank is not None}
    if not wanted.ranks or not ranks or wanted.ranks & known:
        return
    if not known:
        raise ClientError(
            "pods have ranks with the plugins env and jax alone: choose a sub-job or a task"
        )
    missing = ", ".join(map(str, sorted(wanted.ranks)))
    raise ClientError(f"no pod has rank {missing}; there are ranks {min(known)} to {max(known)}")


def sources(
    jobs: Sequence[JobStatus], pods: Mapping[str, Sequence[Object]], wanted: Wanted
) -> tuple[list[ContainerLog], dict[ContainerLog, str]]:
    """Return the logs to read, in order, and the reason for each log that cannot be read."""
    found: list[ContainerLog] = []
    left_out: dict[ContainerLog, str] = {}
    for job in jobs:
        for pod in pods.get(job.name, ()):
            if wanted.task and task_of(pod) != wanted.task:
                continue
            rank = rank_of(pod)
            if wanted.ranks is not None and rank not in wanted.ranks:
                continue
            waiting = _waiting(pod)
            states = _container_states(pod)
            chosen = _chosen_containers(pod, wanted)
            for container in chosen:
                state = states.get(container, {})
                source = ContainerLog(
                    cluster=job.cluster,
                    pod=string(at(pod, "metadata", "name")),
                    container=container,
                    uid=string(at(pod, "metadata", "uid")),
                    restarts=count(state.get("restartCount")),
                    job=job.name,
                    several=len(chosen) > 1,
                    running="running" in mapping(state.get("state")),
                    final=string(at(pod, "status", "phase")) in ("Succeeded", "Failed"),
                    rank=rank,
                )
                if container in waiting:
                    left_out[source] = f"{source.label}: has not started: {waiting[container]}"
                else:
                    found.append(source)
    return found, left_out


def _containers(pod: Object) -> list[str]:
    return [string(item.get("name")) for item in objects(at(pod, "spec", "containers"))]


def _every(pod: Object) -> list[str]:
    """Return all containers, in the order in which they start."""
    init = [string(item.get("name")) for item in objects(at(pod, "spec", "initContainers"))]
    return [*init, *_containers(pod)]


def _chosen_containers(pod: Object, wanted: Wanted) -> list[str]:
    """Return the selected containers: without a selection the default one.

    An init container that runs or has failed, for which the default container waits, comes first.
    """
    if wanted.all_containers:
        return _every(pod)
    if wanted.container:
        return [name for name in _every(pod) if name == wanted.container]
    names = _containers(pod)
    default = string_map(at(pod, "metadata", "annotations")).get(_DEFAULT_CONTAINER, "")
    chosen = [default] if default in names else list(names[:1])
    states = _container_states(pod)
    init = objects(at(pod, "spec", "initContainers"))
    once = [string(item.get("name")) for item in init if item.get("restartPolicy") != "Always"]
    return [name for name in once if _delays(states.get(name, {}))] + chosen


def _delays(state: Object) -> bool:
    """Return whether an init container runs, or failed when it ran last."""
    now, last = mapping(state.get("state")), mapping(state.get("lastState"))
    ended = mapping(now.get("terminated")) or mapping(last.get("terminated"))
    return "running" in now or bool(count(ended.get("exitCode")))


def _container_states(pod: Object) -> dict[str, Object]:
    status = mapping(pod.get("status"))
    found = (
        *objects(status.get("initContainerStatuses")),
        *objects(status.get("containerStatuses")),
    )
    return {string(item.get("name")): item for item in found}


def _waiting(pod: Object) -> dict[str, str]:
    """Return the containers that never started, with the reason."""
    states = _container_states(pod)
    if not states:
        phase = string(at(pod, "status", "phase")) or "Pending"
        return dict.fromkeys(_every(pod), phase) if phase == "Pending" else {}
    return {
        name: string(at(item, "state", "waiting", "reason")) or "waiting"
        for name, item in states.items()
        if "waiting" in mapping(item.get("state")) and not mapping(item.get("lastState"))
    }
