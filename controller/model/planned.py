"""What is to be done: actions in their order, the status to write, events, when to look again.

An action carries all it needs; carrying it out takes no decision.
"""

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from controller.model.nodes import PodGroup
from controller.model.resources import Resources
from controller.model.shortage import Overflow, SplitOverflow
from hyperjob.api.meta import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateChild:
    """Create a sub-job: its policy first, then its vcjob; either may be there already (None).

    `export` is the export of its Service, which goes before it; `overflow` says why it does not
    stand where it would rather be.
    """

    name: str
    policy: Object | None
    job: Object | None
    cluster: str
    demand: Resources
    pods: tuple[PodGroup, ...] = ()
    overflow: Overflow | SplitOverflow | None = None
    export: Object | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repin:
    """Move a sub-job to another cluster by its policy's placement."""

    name: str
    uid: str
    cluster: str
    demand: Resources
    placement: Object
    pods: tuple[PodGroup, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Take over an object that bears our labels: set owner reference and missing labels."""

    kind: Literal["Job", "PropagationPolicy"]
    name: str
    uid: str
    patch: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Change what Volcano lets change on a live vcjob; `operations` is a JSON patch."""

    name: str
    operations: tuple[Object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGate:
    """Let a held sub-job be dispatched: lift the policy's suspension, then the binding's.

    Only of the objects with these UIDs; without `policy_uid` there is no suspension to lift.
    """

    name: str
    binding: str
    binding_uid: str
    policy_uid: str | None
    release_scheduling: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseQuota:
    """Take the resource request out of the binding of a vcjob that has ended.

    Volcano Global gives the quota back at its next dispatch. `replicas` stays: with 0, Karmada
    deletes the job and its pods in the member.
    """

    name: str
    binding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseScheduling:
    """Let Karmada schedule a binding that Volcano Global has forgotten; it then counts there."""

    name: str
    binding: str
    binding_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgain:
    """Have Karmada apply a vcjob again, which any new annotation does; `mark` is a new one."""

    name: str
    uid: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Read a vcjob that may lack our label, and so be in no cache; the next pass plans with it."""

    name: str


class DeletionCause(enum.StrEnum):
    """Why a sub-job's objects are deleted, where its status does not say it."""

    WOULD_TAKE_JOB = "WouldTakeJob"
    NOTHING_REPORTED = "NothingReported"
    NO_PODS = "NoPods"
    NO_PROGRESS = "NoProgress"
    GANG_INCOMPLETE = "GangIncomplete"
    OTHER_CLUSTERS = "OtherClusters"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteChild:
    """Delete a sub-job's vcjob, then its policy; only objects with these UIDs.

    `export` names the export of its Service, which goes too if it is the same HyperJob's.
    """

    name: str
    job_uid: str | None
    policy_uid: str | None
    why: DeletionCause | None = None
    export: Object | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteHyperJob:
    """Delete the HyperJob itself after ttlSecondsAfterFinished; only the one with this UID."""

    name: str
    uid: str


Action: TypeAlias = (
    Look
    | CreateChild
    | Repin
    | Adopt
    | Resize
    | OpenGate
    | ReleaseQuota
    | ReleaseScheduling
    | AskAgain
    | DeleteChild
    | DeleteHyperJob
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line for `kubectl describe`; `action` is what the controller did or saw."""

    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an external splitter is to be asked about a replicatedJob.

    `digest` differs where `body` does; answers of another `occasion` are not used.
    """

    group: str
    occasion: str
    digest: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedJob:
    """A failed vcjob whose pods are to be asked which container failed first."""

    name: str
    uid: str
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The whole decision; `status` None means leave the status alone.

    `needs` are the sizes of what could not be placed; of a HyperJob that waits for capacity without
    any, nothing is known of what would help it.
    """

    actions: tuple[Action, ...] = ()
    status: Object | None = None
    events: tuple[Event, ...] = ()
    requeue_after: timedelta | None = None
    waits_for_capacity: bool = False
    needs: tuple[Resources, ...] = ()
    questions: tuple[Question, ...] = ()
    failed: tuple[FailedJob, ...] = ()
