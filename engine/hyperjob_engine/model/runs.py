"""The runs of a sub-job in `status.jobs[].history`, each from its first running pod to its end."""

from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import count, integer, objects, string
from hyperjob_core.text import shortened

_REASON_LIMIT = 64
_MESSAGE_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFailure:
    """The first container of a sub-job that failed, as the kubelet of its cluster reported it.

    `exit_code` is None if the pod failed as a whole, for example by an eviction.
    """

    pod: str
    task: str = ""
    container: str = ""
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    time: str = ""

    def to_object(self) -> Object:
        """Return the entry of the status."""
        entry: Object = {
            "pod": self.pod,
            "task": self.task,
            "container": self.container,
            "reason": shortened(self.reason, _REASON_LIMIT),
            "message": _one_line(self.message),
            "time": self.time,
        }
        given = {key: value for key, value in entry.items() if value}
        return given if self.exit_code is None else given | {"exitCode": self.exit_code}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One ended run; `phase` is its last one, `start` is empty if no pod was seen running.

    `reason` is why it ended, one CamelCase word.
    """

    attempt: int
    cluster: str
    start: str
    end: str
    phase: str
    reason: str
    message: str = ""
    failure: ContainerFailure | None = None

    def to_object(self) -> Object:
        """Return the entry of `status.jobs[].history`."""
        entry: Object = {
            "cluster": self.cluster,
            "startTime": self.start,
            "endTime": self.end,
            "phase": self.phase,
            "reason": self.reason,
            "message": _one_line(self.message),
            "failure": None if self.failure is None else self.failure.to_object(),
        }
        return {"attempt": self.attempt} | {key: value for key, value in entry.items() if value}


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), _MESSAGE_LIMIT)


def read_runs(raw: object) -> tuple[Run, ...]:
    """Read `status.jobs[].history`."""
    return tuple(
        Run(
            attempt=count(item.get("attempt")),
            cluster=string(item.get("cluster")),
            start=string(item.get("startTime")),
            end=string(item.get("endTime")),
            phase=string(item.get("phase")),
            reason=string(item.get("reason")),
            message=string(item.get("message")),
            failure=read_failure(item.get("failure")),
        )
        for item in objects(raw)
    )


def read_failure(raw: object) -> ContainerFailure | None:
    """Parse the failure of a container in the status; None if there is none."""
    if not isinstance(raw, dict) or not string(raw.get("pod")):
        return None
    return ContainerFailure(
        pod=string(raw.get("pod")),
        task=string(raw.get("task")),
        container=string(raw.get("container")),
        exit_code=integer(raw.get("exitCode")),
        reason=string(raw.get("reason")),
        message=string(raw.get("message")),
        time=string(raw.get("time")),
    )
