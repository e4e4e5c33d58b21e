"""Why the controller recreates sub-jobs, refuses requests and ends a HyperJob: codes and numbers.

`hyperjob_engine.status.outcomes` turns them into messages.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.model.runs import ContainerFailure
from hyperjob_engine.model.shortage import Shortage


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The cluster of a sub-job is not Ready, or was deleted; it counts as lost from `at` on.

    `since` is when the Cluster stopped being Ready; None: Karmada has no such Cluster any more.
    """

    cluster: str
    at: datetime
    is_lost: bool
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A sub-job failed; `detail` is its first failed container, else the message of Volcano."""

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
    """The controller recreates all sub-jobs because one failed."""

    failure: FailureCause


@dataclass(frozen=True, slots=True)
class GivenBackWith:
    """The controller deletes the sub-job with another of its gang, `name`, of which no pod ran."""

    name: str
    cluster: str


@dataclass(frozen=True, slots=True)
class NoPodRan:
    """No pod of the sub-job ran on the cluster in time."""

    cluster: str
    limit: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWay:
    """The HyperJob makes way for `other`: the lender's, or a HyperJob of higher priority."""

    other: str
    preempted: bool


@dataclass(frozen=True, slots=True)
class Requested:
    """A person requested it by an annotation; `token` is its value."""

    kind: str
    token: str


AgainCause: TypeAlias = FailureCause | WithAll | GivenBackWith | NoPodRan | MadeWay | Requested


@dataclass(frozen=True, slots=True)
class OneCompleted:
    """A sub-job completed, and the success policy has the operator Any."""

    name: str


@dataclass(frozen=True, slots=True)
class AllCompleted:
    """All sub-jobs that the success policy names completed."""

    number: int


@dataclass(frozen=True, slots=True)
class QuorumCompleted:
    """`completed` of the `total` sub-jobs that train completed, a quorum, and no other runs."""

    completed: int
    total: int


@dataclass(frozen=True, slots=True)
class NeverCompleted:
    """The sub-jobs `names` did not complete, and others depend on them."""

    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class FailedByRule:
    """A rule of the failure policy fails the HyperJob; `rule` is its field."""

    failure: FailureCause
    rule: str


@dataclass(frozen=True, slots=True)
class RestartsSpent:
    """A sub-job failed after the last restart that `maxRestarts` allows."""

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
    """A request that the controller refuses, for the whole HyperJob or for the sub-jobs `names`.

    `cluster` and `shortages` are set for NO_OTHER_CLUSTER.
    """

    kind: str
    token: str
    problem: RequestProblem
    names: Sequence[str] = ()
    cluster: str = ""
    shortages: Sequence[Shortage] = ()
