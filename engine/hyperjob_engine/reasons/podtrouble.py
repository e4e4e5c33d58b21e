"""What keeps pods of a sub-job from running, or has ended them, in the words of a status."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hyperjob_core.text import shortened
from hyperjob_engine.reasons.reason import Reason


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
