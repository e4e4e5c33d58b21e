"""The details of a reason of a sub-job or a HyperJob, as codes and numbers.

`hyperjob_engine.status.detail` turns them into messages.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from hyperjob_core.api.choices import DependencyStatus
from hyperjob_engine.model.shortage import Overflow, Shortage, SplitOverflow, SplitShortage
from hyperjob_engine.model.splitting import SplitTrouble
from hyperjob_engine.model.waiting import RoomDetail, Wait


class Plain(enum.StrEnum):
    """Details without a number."""

    SUSPENDED = "Suspended"
    OLD_SUB_JOBS_LEAVE = "OldSubJobsLeave"


@dataclass(frozen=True, slots=True)
class Quoted:
    """A message of another component, of a program, or of the stored status, quoted as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Delayed:
    """The controller recreates the sub-job later; `why` is the message of its status entry."""

    why: str
    until: datetime


@dataclass(frozen=True, slots=True)
class StopGoesOn:
    """The controller stops sub-jobs and creates none before all have ended, or before `until`."""

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
    """The replicatedJobs in `dependsOn` that do not satisfy it yet."""

    unmet: Sequence[Unmet]


@dataclass(frozen=True, slots=True)
class NotAdmitted:
    """The queue has not admitted the sub-job; `lacks` is the reason, as far as it is known."""

    queue: str
    lacks: "Detail | None" = None


@dataclass(frozen=True, slots=True)
class WaitsToGrow:
    """The sub-job runs, and its queue has no room yet for the `pods` that the spec asks for."""

    pods: int
    wait: Wait | None


@dataclass(frozen=True, slots=True)
class SplitterWait:
    """The controller asks the splitter, again at `until`; `trouble` is the fault of its answer."""

    trouble: SplitTrouble | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Leaving:
    """An object of an earlier attempt is still being deleted."""

    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ServerRefused:
    """The API server refused an object of the sub-job."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """An object of another owner has the name that an object of the sub-job needs.

    `of_hyperjob`: its owner is another HyperJob. `of_predecessor`: its owner is a deleted HyperJob
    of the same name.
    """

    kind: str
    name: str
    owner: str
    of_hyperjob: bool = False
    of_predecessor: bool = False


@dataclass(frozen=True, slots=True)
class BindingTaken:
    """The ResourceBinding of the sub-job's name belongs to another object, `stranger`."""

    binding: str
    stranger: str


@dataclass(frozen=True, slots=True)
class GaveBack:
    """The controller has deleted an incomplete gang `times` times; `left` are excluded clusters."""

    times: int
    until: datetime
    left: Sequence[str] = ()


class SilenceCode(enum.StrEnum):
    """Which report about a sub-job is missing from its cluster."""

    NOTHING = "Nothing"
    NO_PODS = "NoPods"
    NO_PROGRESS = "NoProgress"


class SilenceStep(enum.StrEnum):
    """What the controller does about a cluster that does not report."""

    WAIT = "Wait"
    ASK = "Ask"
    MAKE_AGAIN = "MakeAgain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """The cluster of a sub-job has reported nothing, or no progress, since the vcjob was applied.

    With step WAIT the clusters of many other sub-jobs do not report either. `helpless`: the
    controller has taken the step `times` times without success, and a person has to look.
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
