"""The first failed container of a sub-job, from its pods in the member cluster."""

from collections.abc import Iterable, Iterator
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
    name, task = string(metadata.get("name"))[:_WORD], task_of(metadata)
    containers = [
        *objects(status.get("initContainerStatuses")),
        *objects(status.get("containerStatuses")),
    ]
    limits, rank = dict(_memory_limits(pod)), rank_of(pod)
    ended = False
    for container in containers:
        state = mapping(at(container, "state", "terminated"))
        before = mapping(at(container, "lastState", "terminated"))
        if integer(state.get("exitCode")) == _SIGTERM and integer(before.get("exitCode")):
            state = before  # it was stopped after it had failed and was started again
        code = integer(state.get("exitCode"))
        if code:
            ended = True
            message = string(state.get("message"))[-_MESSAGE:]
            limit = limits.get(string(container.get("name")), "") if code == _SIGKILL else ""
            failure = ContainerFailure(
                pod=name,
                task=task,
                rank=rank,
                container=string(container.get("name"))[:_WORD],
                exit_code=code,
                reason=string(state.get("reason"))[:_WORD],
                message=message or limit,
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


def _memory_limits(pod: Object) -> Iterator[tuple[str, str]]:
    """Yield the name of each container, and its memory limit in words."""
    spec = mapping(pod.get("spec"))
    for container in (*objects(spec.get("initContainers")), *objects(spec.get("containers"))):
        limit = string(at(container, "resources", "limits", "memory"))
        yield string(container.get("name")), f"memory limit {limit[:_WORD]}" if limit else ""


def task_of(metadata: Object) -> str:
    """Return the task of a pod, by its metadata; empty without one."""
    marks = string_map(metadata.get("annotations")) | string_map(metadata.get("labels"))
    return marks.get(_TASK, "")[:_WORD]
