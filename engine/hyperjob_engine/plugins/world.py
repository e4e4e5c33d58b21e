"""The world of a HyperJob (as in WORLD_SIZE): all pods of all sub-jobs, numbered in one row.

Beside it what every plugin uses: host names, and the changes of a template.

The numbers follow the order of the sub-jobs in the spec, of the tasks in the template, and of the
pods by their index in the task.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.plugins import (
    PLUGINS,
    Flags,
    Kind,
    fill,
    number_of,
    placeholders_of,
    values_of,
)
from hyperjob_core.api.wire import count, mapping, objects, string, strings
from hyperjob_engine.expansion.templates import with_containers, with_pods
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.model.subjobs import SubJob


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPods:
    """The pods of one task of one sub-job; `offset` is the rank of the first."""

    task: str
    pods: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSubJob:
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
    the world of the others. `minimum` is how many sub-jobs are enough to start.
    """

    hyperjob: HyperJob
    generation: int
    minimum: int
    size: int
    sub_jobs: tuple[WorldSubJob, ...]
    by_name: Mapping[str, WorldSubJob]

    def first(self, task: str = "") -> tuple[WorldSubJob, TaskPods] | None:
        """Return the first task with pods, or the first with pods and this name."""
        wanted = (
            (sub_job, task_pods)
            for sub_job in self.sub_jobs
            for task_pods in sub_job.tasks
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
    made: list[WorldSubJob] = []
    offset = 0
    for index, sub_job in enumerate(sub_jobs):
        made.append(
            WorldSubJob(
                name=sub_job.name,
                group=sub_job.group.name,
                index=index,
                attempt=attempts.get(sub_job.name, 0),
                cluster=clusters.get(sub_job.name, ""),
                tasks=tuple(_tasks_from(sub_job.size.template, offset)),
                number=sub_job.index,
            )
        )
        offset += made[-1].pods
    return World(
        hyperjob=hyperjob,
        generation=generation,
        minimum=minimum,
        size=offset,
        sub_jobs=tuple(made),
        by_name={each.name: each for each in made},
    )


def _tasks_from(template: Object, offset: int) -> Iterator[TaskPods]:
    """Yield the tasks of a vcjob template; `offset` is the rank of their first pod."""
    for index, task in enumerate(objects(template.get("tasks"))):
        pods = count(task.get("replicas"))
        yield TaskPods(task=task_name(task, index), pods=pods, offset=offset)
        offset += pods


_SVC_FLAGS: Flags = {
    "publish-not-ready-addresses": Kind.SWITCH,
    "disable-network-policy": Kind.SWITCH,
    "inject-hosts-env": Kind.SWITCH,
}


def variable(name: str, value: object) -> Object:
    """Return a variable with a fixed value."""
    return {"name": name, "value": str(value)}


def from_field(name: str, path: str) -> Object:
    """Return a variable with the value of a field of the pod (`fieldRef`)."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def with_variables(template: Object, of: Callable[[str, Object], Sequence[Object]]) -> Object:
    """Return the template with variables before the user's in each container.

    `of` returns them for the name of a task and one of its containers. The user's variables can
    refer to them as $(NAME), because they come first.
    """

    def equipped(task: str, spec: Object) -> Object:
        return with_containers(spec, lambda each: _container(each, of(task, each)))

    return with_pods(template, equipped)


def with_service(template: Object) -> Object:
    """Return the template with Volcano's plugin svc, open to the pods of other sub-jobs.

    By default that plugin creates a NetworkPolicy which admits only pods of the same vcjob, and
    publishes no host name of a pod that is not ready.
    """
    plugins = mapping(template.get("plugins"))
    arguments = strings(plugins.get("svc"))
    given = values_of(arguments, _SVC_FLAGS)
    added = [
        f"--{name}=true"
        for name in ("publish-not-ready-addresses", "disable-network-policy")
        if name not in given
    ]
    return {**template, "plugins": {**plugins, "svc": [*arguments, *added]}}


def _container(container: Object, variables: Sequence[Object]) -> Object:
    """Return a container with variables before its own; a name that the user has set stays."""
    own = objects(container.get("env"))
    taken = {string(each.get("name")) for each in own}
    added = [each for each in variables if each["name"] not in taken]
    return {**container, "env": [*added, *own]} if added else container


class UnknownHostError(ValueError):
    """The host name of a pod is unknown: its sub-job has no cluster yet."""


def svc_arguments(plugins: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    """Return the arguments of the plugin svc."""
    return values_of(plugins.get("svc", ()), PLUGINS["svc"].flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """The sub-job for which a plugin is called, its world and the plugin's arguments.

    `pattern` is that of the host names of pods in other sub-jobs.
    """

    world: World
    sub_job: WorldSubJob
    pattern: str
    arguments: Mapping[str, str]

    def host(self, sub_job: WorldSubJob, task_pods: TaskPods, index: int = 0) -> str:
        """Return the name by which this sub-job's pods look up a pod; raises UnknownHostError.

        Within a sub-job it is a name of Volcano's headless Service, which needs no DNS across
        clusters.
        """
        pod = f"{sub_job.name}-{task_pods.task}-{index}"
        if sub_job.name == self.sub_job.name:
            return f"{pod}.{sub_job.name}"
        if not sub_job.cluster and "cluster" in placeholders_of(self.pattern):
            raise UnknownHostError(
                f"waits for the cluster of {sub_job.name}, whose pods it looks up"
            )
        return fill(
            self.pattern,
            {
                "pod": pod,
                "service": sub_job.name,
                "namespace": self.world.hyperjob.namespace,
                "cluster": sub_job.cluster,
            },
        )

    def service(self, sub_job: WorldSubJob, task_pods: TaskPods) -> str:
        """Return a name for the only pod of a sub-job that does not depend on its cluster.

        It is the name of its Service, without pod and cluster; the name of the pod if the pattern
        has no Service.
        """
        labels = self.pattern.split(".")
        rest = [label for label in labels if label not in ("{pod}", "{cluster}")]
        glued = any("{pod}" in label or "{cluster}" in label for label in rest)
        alone = len(sub_job.tasks) <= 1 and task_pods.pods <= 1
        own = sub_job.name == self.sub_job.name
        if own or not alone or glued or "{service}" not in rest:
            return self.host(sub_job, task_pods)
        namespace = self.world.hyperjob.namespace
        return fill(".".join(rest), {"service": sub_job.name, "namespace": namespace})

    def number(self, name: str, default: int) -> int:
        """Return the number of an argument `--name=number`, else the default."""
        number = number_of(self.arguments.get(name, ""))
        return default if number is None else number
