"""How a member cluster failed a sub-job: its first failed container, or a refused vcjob."""

import re
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import integer, string
from hyperjob_core.text import shortened
from hyperjob_engine.reasons.reason import Reason

_REASON_LIMIT = 64
_MESSAGE_LIMIT = 200
_DENIAL: Final = re.compile(r'admission webhook "([^"]+)" denied the request: (.*)')


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
            "message": one_line(self.message),
            "time": self.time,
        }
        given = {key: value for key, value in entry.items() if value}
        return given if self.exit_code is None else given | {"exitCode": self.exit_code}


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


def container_text(failure: ContainerFailure) -> str:
    """Return the pod, the container and the way in which it failed."""
    container = f", container {failure.container}" if failure.container else ""
    how = [failure.reason] if failure.reason else []
    if failure.exit_code is not None:
        how.insert(0, f"exit code {failure.exit_code}")
    text = f"pod {failure.pod}{container}: {', '.join(how) or 'failed'}"
    return f"{text}: {failure.message}" if failure.message else text


def apply_failure(cluster: str, error: str) -> tuple[Reason, str]:
    """Return the reason and the message: the cluster refused the vcjob, or was not reached."""
    denial = _DENIAL.search(" ".join(error.split()))
    if denial is None:
        return Reason.APPLY_FAILED, error
    text = f"cluster {cluster} refuses it: admission webhook {denial[1]} says: {denial[2]}"
    return Reason.REFUSED_BY_CLUSTER, text


def one_line(text: str) -> str:
    """Return a text on one line, shortened for the status."""
    return shortened(" ".join(text.split()), _MESSAGE_LIMIT)
