"""Which containers' logs are meant. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.model.wire import at, mapping, objects, string, string_map
from hyperjob.api.meta import Object
from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.verbs.selection import choose
from hyperjob.cli.views.summary import SubJob, Summary
from hyperjob.cli.views.tree import task_of

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for on the command line."""

    jobs: Sequence[str] = ()
    cluster: str | None = None
    task: str | None = None
    container: str | None = None
    all_containers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One container's log."""

    cluster: str
    pod: str
    container: str
    several: bool = False

    @property
    def label(self) -> str:
        """Name it, with the container only where a pod has several."""
        return f"{self.cluster}/{self.pod}" + (f"/{self.container}" if self.several else "")


def placed_jobs(summary: Summary, wanted: Wanted) -> list[SubJob]:
    """Choose the sub-jobs to look for pods of; FailureError when none stands on a cluster."""
    jobs = choose(summary, wanted.jobs) if wanted.jobs else list(summary.jobs)
    placed = [job for job in jobs if job.cluster and wanted.cluster in (None, job.cluster)]
    if placed:
        return placed
    where = f"on cluster {wanted.cluster}" if wanted.cluster else "on a cluster yet"
    hint = f"kubectl hyperjob why {summary.name} -n {summary.namespace}"
    raise FailureError(f"no sub-job of {summary.name} stands {where}: {hint}", code=Code.NOT_YET)


def sources(
    jobs: Sequence[SubJob], pods: Mapping[str, Sequence[Object]], wanted: Wanted
) -> tuple[list[Source], list[str]]:
    """Give the logs to read, in order, and what is left out with the reason.

    FailureError when a container was named that no pod has.
    """
    found: list[Source] = []
    left_out: list[str] = []
    known: set[str] = set()
    for job in jobs:
        for pod in pods.get(job.name, ()):
            name = string(at(pod, "metadata", "name"))
            if wanted.task and task_of(pod) != wanted.task:
                continue
            names = [string(item.get("name")) for item in objects(at(pod, "spec", "containers"))]
            known |= set(names)
            chosen = _chosen(pod, names, wanted)
            waiting = _waiting(pod)
            for container in chosen:
                source = Source(
                    cluster=job.cluster,
                    pod=name,
                    container=container,
                    several=wanted.all_containers and len(names) > 1,
                )
                if container in waiting:
                    left_out.append(f"{source.label}: has not started: {waiting[container]}")
                else:
                    found.append(source)
    if wanted.container and known and wanted.container not in known:
        raise FailureError(
            f"no pod has a container {wanted.container!r}; there are {', '.join(sorted(known))}"
        )
    return found, left_out


def _chosen(pod: Object, names: Sequence[str], wanted: Wanted) -> list[str]:
    if wanted.all_containers:
        return list(names)
    if wanted.container:
        return [name for name in names if name == wanted.container]
    default = string_map(at(pod, "metadata", "annotations")).get(_DEFAULT_CONTAINER, "")
    return [default] if default in names else list(names[:1])


def _waiting(pod: Object) -> dict[str, str]:
    """Name the containers that never started, with the reason."""
    status = mapping(pod.get("status"))
    told = objects(status.get("containerStatuses"))
    if not told:
        phase = string(status.get("phase")) or "Pending"
        names = [string(item.get("name")) for item in objects(at(pod, "spec", "containers"))]
        return dict.fromkeys(names, phase) if phase == "Pending" else {}
    return {
        string(item.get("name")): string(at(item, "state", "waiting", "reason")) or "waiting"
        for item in told
        if "waiting" in mapping(item.get("state")) and not mapping(item.get("lastState"))
    }
