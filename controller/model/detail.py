"""What goes with a reason of a sub-job or a HyperJob: codes and numbers.

The words for people are made of them in `controller.status.detail`, once.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from controller.model.shortage import Overflow, Shortage, SplitOverflow, SplitShortage
from controller.model.splitting import SplitTrouble
from controller.model.waiting import RoomDetail, Wait
from hyperjob.api.choices import DependencyStatus


class Plain(enum.StrEnum):
    """What needs no number."""

    SUSPENDED = "Suspended"
    OLD_SUB_JOBS_LEAVE = "OldSubJobsLeave"


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words of another component, of a program, or of the status as it is stored."""

    text: str


@dataclass(frozen=True, slots=True)
class Delayed:
    """A sub-job that is made again later; `why` is what the status says of it."""

    why: str
    until: datetime


@dataclass(frozen=True, slots=True)
class StopGoesOn:
    """Sub-jobs are stopped; nothing is made again before they have ended, or before `until`."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Unmet:
    """A dependency on a replicatedJob, which `met` of its `total` sub-jobs satisfy."""

    replicated_job: str
    status: DependencyStatus
    met: int
    total: int


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Other replicatedJobs that do not satisfy the dependencies yet."""

    unmet: Sequence[Unmet]


@dataclass(frozen=True, slots=True)
class NotAdmitted:
    """A queue has not admitted the sub-job; `lacks` is what is known of the reason."""

    queue: str
    lacks: "Detail | None" = None


@dataclass(frozen=True, slots=True)
class WaitsToGrow:
    """A sub-job runs, and its queue has no room yet for so many pods."""

    pods: int
    wait: Wait | None


@dataclass(frozen=True, slots=True)
class SplitterWait:
    """The splitter is asked, again at `until`; `trouble` says what was wrong with its answer."""

    trouble: SplitTrouble | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Leaving:
    """An object of an earlier attempt is not gone yet."""

    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ServerRefused:
    """The API server refused an object of the sub-job."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """An object of another owner has the name of a sub-job's own.

    `of_hyperjob`: its owner is another HyperJob; `of_predecessor`: a deleted one of this name.
    """

    kind: str
    name: str
    owner: str
    of_hyperjob: bool = False
    of_predecessor: bool = False


@dataclass(frozen=True, slots=True)
class BindingTaken:
    """Karmada's binding of the sub-job's name is that of another object."""

    binding: str
    stranger: str


@dataclass(frozen=True, slots=True)
class GaveBack:
    """The gang gave back what it held, `times` times; `left` are excluded clusters."""

    times: int
    until: datetime
    left: Sequence[str] = ()


class SilenceCode(enum.StrEnum):
    """What the cluster of a sub-job does not report."""

    NOTHING = "Nothing"
    NO_PODS = "NoPods"
    NO_PROGRESS = "NoProgress"


class SilenceStep(enum.StrEnum):
    """What is done about a silence."""

    WAIT = "Wait"
    ASK = "Ask"
    MAKE_AGAIN = "MakeAgain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """The cluster of a sub-job reports nothing, or no progress, since it was applied there.

    With step WAIT the clusters of many other sub-jobs are silent too. `helpless`: the step was
    taken so often, `times`, that a person has to look.
    """

    code: SilenceCode
    hyperjob: str
    name: str
    cluster: str
    since: datetime
    step: SilenceStep
    times: int = 0
    helpless: bool = False


Detail: TypeAlias = (
    Plain
    | Quoted
    | Delayed
    | StopGoesOn
    | Dependencies
    | NotAdmitted
    | WaitsToGrow
    | SplitterWait
    | Leaving
    | ServerRefused
    | NameTaken
    | BindingTaken
    | GaveBack
    | Silent
    | Shortage
    | SplitShortage
    | Overflow
    | SplitOverflow
    | Wait
    | RoomDetail
)
