"""The runs of a sub-job in `status.jobs[].history`, each from its first running pod to its end."""

from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import count, objects, string
from hyperjob_engine.reasons.failure import ContainerFailure, one_line, read_failure


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
            "message": one_line(self.message),
            "failure": None if self.failure is None else self.failure.to_object(),
        }
        return {"attempt": self.attempt} | {key: value for key, value in entry.items() if value}


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
