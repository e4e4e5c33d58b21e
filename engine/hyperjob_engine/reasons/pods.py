"""What a member says about the pods of a sub-job: failures, refusals, troubles, Volcano's words.

Each is a value with its sentence; a status has the sentence.
"""

import enum
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.launchers import lost_a_peer
from hyperjob_core.api.status import ContainerFailure
from hyperjob_core.text import printable, shortened
from hyperjob_engine.reasons.reason import Reason

_REASON_LIMIT = 64
_MESSAGE_LIMIT = 200
_LOG_LIMIT: Final = 2048
"""The greatest length of a container's last lines; the kubelet reports at most 80 lines of them."""
_SIGNALLED: Final = 128
"""A shell and a container runtime report the end by a signal as this number plus the signal."""
_DENIAL: Final = re.compile(r'admission webhook "([^"]+)" denied the request: (.*)')


def is_same(one: ContainerFailure, other: ContainerFailure | None) -> bool:
    """Return whether both are about one end of one container, whose log may be read since."""
    return other is not None and (one.pod, one.container, one.time) == (
        other.pod,
        other.container,
        other.time,
    )


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


_ORIGIN: Final = re.compile(r"Origin reason is:? (.*?)\.?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """Why Volcano calls a gang Unschedulable, and since when; no words: it does not let it in."""

    message: str
    since: datetime


def origin_of(message: str) -> str:
    """Return the cause in a message of a PodGroup, which begins with counts of the gang's pods."""
    found = _ORIGIN.search(message)
    return found[1] if found is not None else message


def unschedulable_text(cluster: str, message: str) -> str:
    """Return that a gang has no nodes on a cluster, in Volcano's words, or is not let in."""
    if not message:
        return (
            f"Volcano on {cluster} does not let its PodGroup in: the quota of its queue there, or"
            " the room that Volcano counts, is used up by others, or Volcano's scheduler is down"
        )
    return f"Volcano on {cluster} finds no nodes for all of its pods: {message}"


PATIENCE: Final = timedelta(seconds=10)
"""For so long a sub-job waits in the cluster that refuses its pods, which may soon allow them."""


_NO_CLAIM: Final = re.compile(r"pvc (\S{1,253}) is not found")
_STATUS_MESSAGE: Final = re.compile(r'Message:"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class PodsRefused:
    """The member's words about the pods that it refused, and when it first and last did.

    The words are empty where the controller does not read the Events of the member.
    """

    message: str
    first: datetime
    last: datetime


def words_of(message: str) -> str:
    """Return the API server's message in that of an Event by Volcano, which prints Go structs."""
    found = _STATUS_MESSAGE.search(message)
    return re.sub(r"\\(.)", r"\1", found[1]) if found is not None else message


def refused_text(cluster: str, message: str) -> str:
    """Return which cluster refuses the pods of a sub-job, and why."""
    if not message:
        return f"Volcano on {cluster} ended its vcjob before a pod ran; its Events there say why"
    if found := _NO_CLAIM.search(message):
        return f"PersistentVolumeClaim {found[1]} of its volumes does not exist on {cluster}"
    return f"cluster {cluster} refuses its pods: {message}"


def no_pod_text(cluster: str, hyperjob: str) -> str:
    """Return that a cluster has created no pod of a sub-job; the vcjob's status has no reason."""
    return (
        f"{cluster} has created none: Volcano there waits for room in its queue, or the cluster"
        f" refuses the pods; see kubectl hyperjob why {hyperjob}"
    )


class TroubleKind(enum.IntEnum):
    """What a trouble of a pod means for its sub-job, the worst first."""

    ENDED = 0  # the pod, or a container of it, ended with an error and is not started again
    CRASH_LOOP = 1
    BLOCKED = 2  # it starts when a person has acted
    WAITING = 3
    CREATING = 4  # its volumes are being mounted, its images pulled


_REASONS: Final[Mapping[TroubleKind, Reason]] = {
    TroubleKind.ENDED: Reason.TASKS_FAILED,
    TroubleKind.CRASH_LOOP: Reason.CRASH_LOOP,
    TroubleKind.BLOCKED: Reason.PODS_BLOCKED,
}
_DETAIL: Final = 200


@dataclass(frozen=True, slots=True)
class PodTrouble:
    """The trouble of a pod; equal ones of different pods are one value.

    `words` follow the name of the pod, or are the cause before that name if the pod has not
    started. `detail` is what another program says about it and may change by itself. `failed`: the
    phase of the pod is Failed, and `exit_code` is that of its first failed container.
    """

    kind: TroubleKind
    task: str = ""
    words: str = ""
    detail: str = ""
    failed: bool = False
    exit_code: int | None = None

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Return the sort key: the worst trouble of a sub-job first."""
        return self.kind, self.task, self.words, self.detail

    @property
    def reason(self) -> Reason:
        """Return the reason of a sub-job with such a pod."""
        return _REASONS.get(self.kind, Reason.PODS_PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsTrouble:
    """The worst trouble of a sub-job's pods: of which pod, and how many pods have it.

    `trouble` is None while the pods have none, and `changes` is when that may be another one
    without a change of a pod. `failed` are the pods whose phase is Failed, also since a moment ago.
    """

    trouble: PodTrouble | None = None
    pod: str = ""
    pods: int = 0
    failed: int = 0
    changes: datetime | None = None


def pods_trouble_text(found: PodsTrouble) -> str:
    """Return a trouble in words; the cause comes first if the pods have not started."""
    trouble = found.trouble
    if trouble is None:
        return ""
    pods = f"pod {found.pod}" + (f" and {found.pods - 1} more" if found.pods > 1 else "")
    detail = f": {shortened(trouble.detail, _DETAIL)}" if trouble.detail else ""
    if trouble.kind > TroubleKind.CRASH_LOOP:
        waits = "wait" if found.pods > 1 else "waits"
        return f"{trouble.words}{detail}: {pods} {waits}"
    task = f"task {trouble.task}: " if trouble.task else ""
    rest = ""
    if trouble.kind is TroubleKind.ENDED:
        rest = f"; {'the other pods' if trouble.failed else 'its other containers'} run on"
    return f"{task}{pods}{trouble.words}{detail}{rest}"
