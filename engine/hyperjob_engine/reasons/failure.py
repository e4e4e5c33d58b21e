"""How a member cluster failed a sub-job: its first failed container, or a refused vcjob."""

import re
import signal
from dataclasses import replace
from typing import Final

from hyperjob_core.api.status import ContainerFailure
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
_DENIAL: Final = re.compile(r'admission webhook "([^"]+)" denied the request: (.*)')


def is_same(one: ContainerFailure, other: ContainerFailure | None) -> bool:
    """Return whether both are about one end of one container, whose log may be read since."""
    return other is not None and (one.pod, one.container, one.time) == (
        other.pod,
        other.container,
        other.time,
    )


def lost_a_peer(failure: ContainerFailure) -> bool:
    """Return whether the last line of the log says that a connection to another rank ended."""
    return PEER.search(failure.last_line) is not None


def follows(failure: ContainerFailure) -> bool:
    """Return whether another failure caused this one: it lost a peer, or got SIGTERM."""
    return lost_a_peer(failure) or failure.exit_code == _SIGNALLED + signal.SIGTERM


def in_short(failure: ContainerFailure) -> ContainerFailure:
    """Return the failure with the last line of its message alone."""
    return replace(failure, message=one_line(failure.last_line))


def bounded(failure: ContainerFailure) -> ContainerFailure:
    """Return the failure as the status has it: texts of bounded length, no control characters."""
    return replace(
        failure,
        reason=shortened(failure.reason, _REASON_LIMIT),
        message=_last_lines(failure.message),
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
