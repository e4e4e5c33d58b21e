"""Why sub-jobs are made again, requests are refused and a HyperJob ends: codes and numbers.

The words for people are made of them in `controller.status.outcomes`, once.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from controller.model.runs import ContainerFailure
from controller.model.shortage import Shortage
from hyperjob.api.phases import JobPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The trouble with the cluster of a sub-job; it counts as lost from `at` on.

    `since` is when the Cluster became not Ready; without it Karmada has no such Cluster any more.
    """

    cluster: str
    at: datetime
    is_lost: bool
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A sub-job failed; `detail` is its first container that failed, else the words of Volcano."""

    name: str
    phase: JobPhase
    cluster: str = ""
    detail: ContainerFailure | str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The cluster of a sub-job is lost."""

    name: str
    loss: Loss


FailureCause: TypeAlias = Failed | Lost


@dataclass(frozen=True, slots=True)
class WithAll:
    """All sub-jobs are made again for the failure of one."""

    failure: FailureCause


@dataclass(frozen=True, slots=True)
class GivenBackWith:
    """The sub-job goes with another, of which no pod ran."""

    name: str
    cluster: str


@dataclass(frozen=True, slots=True)
class NoPodRan:
    """No pod of the sub-job ran on the cluster in time."""

    cluster: str
    limit: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWay:
    """The HyperJob makes way for `other`: for its lender, or for a more urgent one."""

    other: str
    preempted: bool


@dataclass(frozen=True, slots=True)
class Requested:
    """A person asked for it by annotation."""

    kind: str
    token: str


AgainCause: TypeAlias = FailureCause | WithAll | GivenBackWith | NoPodRan | MadeWay | Requested


@dataclass(frozen=True, slots=True)
class OneCompleted:
    """A sub-job completed, and the success policy asks for any one."""

    name: str


@dataclass(frozen=True, slots=True)
class AllCompleted:
    """All sub-jobs that the success policy names completed."""

    number: int


@dataclass(frozen=True, slots=True)
class QuorumCompleted:
    """So many of the sub-jobs that train completed, and no other runs."""

    completed: int
    total: int


@dataclass(frozen=True, slots=True)
class NeverCompleted:
    """Sub-jobs did not complete, and others depend on them."""

    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class FailedByRule:
    """A rule of the failure policy fails the HyperJob; `rule` is its field."""

    failure: FailureCause
    rule: str


@dataclass(frozen=True, slots=True)
class RestartsSpent:
    """A sub-job failed when all restarts were spent."""

    failure: FailureCause
    max_restarts: int


EndCause: TypeAlias = (
    OneCompleted | AllCompleted | QuorumCompleted | NeverCompleted | FailedByRule | RestartsSpent
)


class RequestProblem(enum.StrEnum):
    """Why a request is refused."""

    HAS_ENDED = "HasEnded"
    UNKNOWN_SUB_JOB = "UnknownSubJob"
    NO_SUB_JOB = "NoSubJob"
    COMPLETED = "Completed"
    NO_OTHER_CLUSTER = "NoOtherCluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """A request that is not carried out, or not for the sub-jobs named.

    `cluster` and `shortages` are set for NO_OTHER_CLUSTER.
    """

    kind: str
    token: str
    problem: RequestProblem
    names: Sequence[str] = ()
    cluster: str = ""
    shortages: Sequence[Shortage] = ()
