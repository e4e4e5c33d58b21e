"""The first failed container of a sub-job, from its pods in the member cluster."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.launchers import diagnosed, lost_a_peer
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import ContainerFailure
from hyperjob_core.api.wire import (
    at,
    integer,
    mapping,
    natural,
    objects,
    string,
    string_map,
)
from hyperjob_engine.reasons.pods import follows

_TASK: Final = "volcano.sh/task-spec"
_INDEX: Final = "volcano.sh/task-index"
_OFFSET: Final = "HYPERJOB_RANK_OFFSET"
_SIGKILL: Final = 137
_SIGTERM: Final = 143
_LAST: Final = "~"  # sorts after every time
_WORD: Final = 253
_MESSAGE: Final = 4096
"""The longest message of a container in bytes, by the kubelet."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod: its status, and whether the kubelet starts it again."""

    name: str
    image: str
    limit: str  # of its memory
    policy: str
    waiting: Object
    running: Object
    ended: Object
    last: Object
    restarts: int
    is_init: bool

    @property
    def words(self) -> str:
        """The container in a sentence."""
        kind = "init container" if self.is_init and self.policy != "Always" else "container"
        return f"{kind} {self.name}"

    def restarts_after(self, code: int) -> bool:
        """Return whether the kubelet starts it again after an exit code."""
        return self.policy == "Always" or (self.policy == "OnFailure" and code != 0)


def first_failure(pods: Iterable[Object]) -> ContainerFailure | None:
    """Return the first failure; None if no pod has failed."""
    return min((failure for pod in pods for failure in _failures(pod)), key=order, default=None)


def order(failure: ContainerFailure) -> tuple[int, str, str]:
    """Return the sort key of the failures of a sub-job: the first one is the cause of the others.

    The kubelet writes whole seconds, and a failure ends other processes at once: those that lost a
    peer come after it, and those that got SIGTERM last.
    """
    later = int(follows(failure))
    later += int(bool(later) and not lost_a_peer(failure))
    return later, failure.time or _LAST, failure.pod


def rank_of(pod: Object) -> int | None:
    """Return the rank of a pod in its HyperJob; None without a plugin that gives ranks."""
    labels = string_map(at(pod, "metadata", "labels"))
    index = natural(labels.get(_INDEX, ""))
    for container in objects(at(pod, "spec", "containers")):
        for variable in objects(container.get("env")):
            if variable.get("name") == _OFFSET and index is not None:
                offset = natural(string(variable.get("value")))
                return None if offset is None else offset + index
    return None


def _failures(pod: Object) -> Iterator[ContainerFailure]:
    """Yield each container of a pod that ended with an exit code other than 0.

    A failed pod without such a container yields one failure of its own, as after an eviction. A
    container that got SIGKILL without a message names its memory limit, the usual reason.
    """
    metadata, status = mapping(pod.get("metadata")), mapping(pod.get("status"))
    name, task, rank = string(metadata.get("name"))[:_WORD], task_of(metadata), rank_of(pod)
    ended = False
    for container in containers_of(pod):
        state = container.ended
        if integer(state.get("exitCode")) == _SIGTERM and integer(container.last.get("exitCode")):
            state = container.last  # it was stopped after it had failed and was started again
        code = integer(state.get("exitCode"))
        if code:
            ended = True
            message = string(state.get("message"))[-_MESSAGE:]
            limit = f"memory limit {container.limit}" if container.limit else ""
            failure = ContainerFailure(
                pod=name,
                task=task,
                rank=rank,
                container=container.name,
                exit_code=code,
                reason=string(state.get("reason"))[:_WORD],
                message=message or (limit if code == _SIGKILL else ""),
                time=string(state.get("finishedAt"))[:_WORD],
            )
            yield diagnosed(failure, message)
    if not ended and status.get("phase") == "Failed":
        yield ContainerFailure(
            pod=name,
            task=task,
            rank=rank,
            reason=string(status.get("reason"))[:_WORD],
            message=string(status.get("message"))[-_MESSAGE:],
        )


def task_of(metadata: Object) -> str:
    """Return the task of a pod, by its metadata; empty without one."""
    marks = string_map(metadata.get("annotations")) | string_map(metadata.get("labels"))
    return marks.get(_TASK, "")[:_WORD]


def containers_of(pod: Object) -> Iterator[Container]:
    """Yield the containers of a pod that have a status, init containers first."""
    spec, status = mapping(pod.get("spec")), mapping(pod.get("status"))
    policy = string(spec.get("restartPolicy")) or "Always"
    for is_init, field, shown in (
        (True, "initContainers", "initContainerStatuses"),
        (False, "containers", "containerStatuses"),
    ):
        if not status.get(shown):
            continue
        specs = {string(each.get("name")): each for each in objects(spec.get(field))}
        usual = "OnFailure" if is_init and policy == "Always" else policy
        for each in objects(status.get(shown)):
            name, state = string(each.get("name")), mapping(each.get("state"))
            own = mapping(specs.get(name))
            yield Container(
                name=name[:_WORD],
                image=string(own.get("image") or each.get("image"))[:_WORD],
                limit=string(at(own, "resources", "limits", "memory"))[:_WORD],
                policy=string(own.get("restartPolicy")) or usual,
                waiting=mapping(state.get("waiting")),
                running=mapping(state.get("running")),
                ended=mapping(state.get("terminated")),
                last=mapping(at(each, "lastState", "terminated")),
                restarts=integer(each.get("restartCount")) or 0,
                is_init=is_init,
            )
