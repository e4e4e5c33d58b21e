"""The names of the sub-jobs' pods whose logs may have progress lines. Pure.

Volcano names a pod by its vcjob, task and index: the controller needs no list of pods.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import at, count, mapping, objects, string, string_map, strings
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.observed import Observed, Ownership
from hyperjob_engine.model.training import JobTraining

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_READ = frozenset({JobPhase.RUNNING, JobPhase.COMPLETING, JobPhase.TERMINATING, JobPhase.ABORTING})


@dataclass(frozen=True, slots=True)
class LoggedTask:
    """The pods of one task of a vcjob, and the container whose log the controller reads."""

    name: str
    container: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One attempt of a sub-job.

    `since`: when it began to run. `leaving`: it is being stopped. `ended`: its log is complete.
    `recorded` is the progress in the status, if it is of the same vcjob: a suspended sub-job gets
    a new vcjob.
    """

    name: str
    uid: str
    attempt: int
    namespace: str
    cluster: str
    tasks: tuple[LoggedTask, ...]
    since: datetime | None = None
    leaving: bool = False
    ended: bool = False
    recorded: JobTraining | None = None

    @property
    def first(self) -> int:
        """Return the number of tasks with pods."""
        return sum(task.replicas > 0 for task in self.tasks)

    @property
    def size(self) -> int:
        """Return the number of all pods."""
        return sum(task.replicas for task in self.tasks)

    def pod(self, number: int) -> tuple[str, str]:
        """Return name and container of a pod: the first of each task, then the second, ..."""
        index = 0
        while True:
            alive = [task for task in self.tasks if task.replicas > index]
            if number < len(alive):
                task = alive[number]
                return f"{self.name}-{task.name}-{index}", task.container
            if not alive:
                raise IndexError(number)
            number -= len(alive)
            index += 1


def sources_of(observed: Observed) -> Iterator[Source]:
    """Yield the sub-jobs whose programs run, are being stopped, or have ended."""
    stopping = strings(at(observed.hyperjob.status, "stop", "jobs"))
    for name, record in observed.hyperjob.records.items():
        child = child_of(observed, name)
        job = child.job
        if job is None or job.ownership is not Ownership.OURS:
            continue
        bound = child.binding.cluster if child.binding is not None else ""
        cluster = bound or child.cluster or record.cluster
        leaving = job.deleting or name in stopping
        if not cluster or not (leaving or child.is_terminal or child.phase in _READ):
            continue
        recorded = record.training
        yield Source(
            name=name,
            uid=job.uid,
            attempt=job.attempt,
            namespace=observed.hyperjob.namespace,
            cluster=cluster,
            tasks=tuple(_tasks(job.spec)),
            since=child.report.since if child.report is not None else None,
            leaving=leaving,
            ended=child.is_terminal and not leaving,
            recorded=recorded if recorded is not None and recorded.uid == job.uid else None,
        )


def _tasks(spec: Object) -> Iterator[LoggedTask]:
    for task in objects(spec.get("tasks")):
        template = mapping(task.get("template"))
        names = [string(item.get("name")) for item in objects(at(template, "spec", "containers"))]
        default = string_map(at(template, "metadata", "annotations")).get(_DEFAULT_CONTAINER, "")
        if names and string(task.get("name")):
            container = default if default in names else names[0]
            yield LoggedTask(string(task.get("name")), container, count(task.get("replicas", 1)))
