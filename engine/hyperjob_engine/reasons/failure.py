"""How a member cluster failed a sub-job: its first failed container, or a refused vcjob."""

import re
import signal
from dataclasses import dataclass, field, replace
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import integer, string
from hyperjob_core.text import printable, shortened
from hyperjob_engine.reasons.reason import Reason

_REASON_LIMIT = 64
_MESSAGE_LIMIT = 200
_LOG_LIMIT: Final = 2048
"""The greatest length of a container's last lines; the kubelet reports at most 80 lines of them."""
_SIGNALLED: Final = 128
"""A shell and a container runtime report the end by a signal as this number plus the signal."""
PEER: Final = re.compile(
    r"ConnectionError|Connection(?:Reset|Aborted|Refused)Error|BrokenPipeError|DistBackendError"
    r"|Connection (?:closed|reset) by peer|NCCL (?:communicator|operation)|Broken pipe"
)
"""How Python, gloo and NCCL say that another process is gone."""
_OURS: Final = '{"hyperjob":'
_DENIAL: Final = re.compile(r'admission webhook "([^"]+)" denied the request: (.*)')


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFailure:
    """The first container of a sub-job that failed, as the kubelet of its cluster reported it.

    `exit_code` is None if the pod failed as a whole, for example by an eviction. `message` has the
    last lines of the log if the kubelet reports them. `in_log`: these are a launcher's own, and the
    log may have the cause.
    """

    pod: str
    task: str = ""
    container: str = ""
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    time: str = ""
    rank: int | None = None
    in_log: bool = field(default=False, compare=False)

    def is_same(self, other: "ContainerFailure | None") -> bool:
        """Return whether both are about one end of one container, whose log may be read since."""
        return other is not None and (self.pod, self.container, self.time) == (
            other.pod,
            other.container,
            other.time,
        )

    @property
    def lost_a_peer(self) -> bool:
        """Return whether the last line of the log says that a connection to another rank ended."""
        return PEER.search(self.last_line) is not None

    @property
    def follows(self) -> bool:
        """Return whether another failure caused this one: it lost a peer, or got SIGTERM."""
        return self.lost_a_peer or self.exit_code == _SIGNALLED + signal.SIGTERM

    @property
    def last_line(self) -> str:
        """Return the last line of the message: in a traceback it has the exception.

        Lines for the controller, such as the last progress of the program, are left out.
        """
        lines = reversed(self.message.splitlines())
        return next((line for line in lines if line.strip() and _OURS not in line), "")

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines of the log, such as a traceback; empty for a message of one."""
        lines = self.message.splitlines()
        return tuple(lines) if len(lines) > 1 else ()

    def in_short(self) -> "ContainerFailure":
        """Return the failure with the last line of its message alone."""
        return replace(self, message=one_line(self.last_line))

    def to_object(self) -> Object:
        """Return the entry of the status."""
        entry: Object = {
            "pod": self.pod,
            "task": self.task,
            "container": self.container,
            "reason": shortened(self.reason, _REASON_LIMIT),
            "message": _last_lines(self.message),
            "time": self.time,
        }
        given = {key: value for key, value in entry.items() if value}
        numbers = {"exitCode": self.exit_code, "rank": self.rank}
        return given | {key: value for key, value in numbers.items() if value is not None}


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
        rank=integer(raw.get("rank")),
    )


def container_text(failure: ContainerFailure) -> str:
    """Return the pod, the container and the way in which it failed."""
    container = f", container {failure.container}" if failure.container else ""
    how = [failure.reason] if failure.reason else []
    if failure.exit_code is not None:
        how.insert(0, f"exit code {failure.exit_code}{_killed(failure)}")
    rank = "" if failure.rank is None else f" (rank {failure.rank})"
    text = f"pod {failure.pod}{rank}{container}: {', '.join(how) or 'failed'}"
    return f"{text}: {one_line(failure.last_line)}" if failure.last_line else text


def _killed(failure: ContainerFailure) -> str:
    """Return the signal of an exit code, and what SIGKILL most often means."""
    number = (failure.exit_code or 0) - _SIGNALLED
    if number not in set(signal.Signals):
        return ""
    if failure.reason == "OOMKilled":
        return " (killed by the kernel for its memory)"
    if number == signal.SIGKILL and not failure.last_lines:
        return " (SIGKILL, probably by the kernel for lack of memory)"
    return f" ({signal.Signals(number).name})"


def _last_lines(text: str) -> str:
    """Return the last lines of a text, bounded and without control characters."""
    whole = printable(text.strip("\n"))
    return whole if len(whole) <= _LOG_LIMIT else f"…{whole[1 - _LOG_LIMIT :]}"


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
