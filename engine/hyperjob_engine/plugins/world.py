"""The world of a HyperJob (as in WORLD_SIZE): all pods of all sub-jobs, numbered in one row.

The numbers follow the order of the sub-jobs in the spec, of the tasks in the template, and of the
pods by their index in the task.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.wire import count, objects
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.model.subjobs import SubJob


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPods:
    """The pods of one task of one sub-job; `offset` is the rank of the first."""

    task: str
    pods: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldMember:
    """One sub-job in the world; `cluster` is empty if it has none yet.

    `number` is its index in its replicatedJob, which scaling does not change.
    """

    name: str
    group: str
    index: int
    attempt: int
    cluster: str
    tasks: tuple[TaskPods, ...]
    number: int = 0

    @property
    def pods(self) -> int:
        """Return the number of pods."""
        return sum(task_pods.pods for task_pods in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """All sub-jobs of a HyperJob, in order and by name; `size` counts their pods.

    `generation` grows with each restart of all sub-jobs; a sub-job that is restarted alone joins
    the world of the others. `minimum` is how many sub-jobs are enough to start. `resume_step` is
    the step from which all sub-jobs start; None if it is unknown.
    """

    hyperjob: str
    uid: str
    namespace: str
    generation: int
    minimum: int
    size: int
    members: tuple[WorldMember, ...]
    by_name: Mapping[str, WorldMember]
    quorum: int | None = None
    checkpoint_dir: str = ""
    resume_step: int | None = None

    def first(self, task: str = "") -> tuple[WorldMember, TaskPods] | None:
        """Return the first task with pods, or the first with pods and this name."""
        wanted = (
            (member, task_pods)
            for member in self.members
            for task_pods in member.tasks
            if task_pods.pods > 0 and task in ("", task_pods.task)
        )
        return next(wanted, None)


def world_of(
    hyperjob: HyperJob,
    sub_jobs: Sequence[SubJob],
    *,
    attempts: Mapping[str, int],
    clusters: Mapping[str, str],
    generation: int,
    minimum: int,
) -> World:
    """Return the world of all sub-jobs, which are in the order of the spec."""
    members: list[WorldMember] = []
    offset = 0
    for index, sub_job in enumerate(sub_jobs):
        tasks = tuple(_tasks_from(sub_job.size.template, offset))
        member = WorldMember(
            name=sub_job.name,
            group=sub_job.group.name,
            index=index,
            attempt=attempts.get(sub_job.name, 0),
            cluster=clusters.get(sub_job.name, ""),
            tasks=tasks,
            number=sub_job.index,
        )
        members.append(member)
        offset += member.pods
    return World(
        hyperjob=hyperjob.name,
        uid=hyperjob.uid,
        namespace=hyperjob.namespace,
        generation=generation,
        minimum=minimum,
        size=offset,
        members=tuple(members),
        by_name={member.name: member for member in members},
        quorum=hyperjob.quorum,
        checkpoint_dir="" if hyperjob.checkpoint is None else hyperjob.checkpoint.directory,
        resume_step=hyperjob.resume_step,
    )


def _tasks_from(template: Object, offset: int) -> Iterator[TaskPods]:
    """Yield the tasks of a vcjob template; `offset` is the rank of their first pod."""
    for index, task in enumerate(objects(template.get("tasks"))):
        pods = count(task.get("replicas"))
        yield TaskPods(task=task_name(task, index), pods=pods, offset=offset)
        offset += pods
