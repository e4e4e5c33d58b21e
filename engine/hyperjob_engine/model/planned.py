"""The plan: actions in their order, the status to write, Events, and the time of the next pass.

An action has all that its API requests need: `hyperjob_controller.apply` takes no decision.
"""

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from hyperjob_core.api.meta import Object
from hyperjob_engine.model.request import Items
from hyperjob_engine.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateChild:
    """Create the PropagationPolicy of a sub-job, then its vcjob; None: the object exists.

    `export` is the ServiceExport of its Service, which is created first. `overflow` is why the
    sub-job is on none of its preferred clusters.
    """

    name: str
    policy: Object | None
    job: Object | None
    cluster: str
    demand: Resources
    pods: Items = ()
    overflow: str = ""
    export: Object | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repin:
    """Move a sub-job to another cluster: patch the placement of its PropagationPolicy."""

    name: str
    uid: str
    cluster: str
    demand: Resources
    placement: Object
    pods: Items = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Adopt an object with the HyperJob's labels: set its ownerReference and missing labels."""

    kind: Literal["Job", "PropagationPolicy"]
    name: str
    uid: str
    patch: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Change the fields of a live vcjob that Volcano lets change; `operations` is a JSON patch."""

    name: str
    uid: str
    operations: tuple[Object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGate:
    """Lift the suspension of dispatching: of the PropagationPolicy, then of the ResourceBinding.

    The controller changes only objects with these UIDs. A `policy_uid` of None means that the
    policy suspends nothing, a `binding_uid` of None that Karmada lifts the suspension of the
    ResourceBinding when that of the policy is lifted: the webhook has not marked it.
    """

    name: str
    binding: str
    binding_uid: str | None
    policy_uid: str | None
    release_scheduling: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseQuota:
    """Remove the resource request from the ResourceBinding of a vcjob that has ended.

    Volcano Global frees the quota at its next dispatch. `replicas` stays as it is: with 0,
    Karmada would delete the Job and its pods in the member cluster.
    """

    name: str
    binding: str
    binding_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseScheduling:
    """Lift the suspension of scheduling of a ResourceBinding that Volcano Global has left out.

    Volcano Global counts the ResourceBinding in its quota once Karmada has scheduled it.
    """

    name: str
    binding: str
    binding_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepClaim:
    """Have Karmada keep the copies of a PersistentVolumeClaim in `clusters`, until it is deleted.

    `name` and `uid` are the claim's. A PropagationPolicy of the controller names these clusters;
    with `by_user` the policy of a user propagates the claim, and the ResourceBinding names them.
    """

    name: str
    uid: str
    clusters: tuple[str, ...]
    by_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgain:
    """Annotate a vcjob with a new `mark`: Karmada applies a changed vcjob again."""

    name: str
    uid: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteWork:
    """Delete the Works of a sub-job in `clusters`, if its ResourceBinding does not exist.

    Karmada then deletes the vcjob in these members.
    """

    name: str
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Read a vcjob that may lack the HyperJob's label, and then is in no cache.

    The next pass plans with it.
    """

    name: str


class DeletionCause(enum.StrEnum):
    """Why the controller deletes the objects of a sub-job, where the status does not say it."""

    WOULD_TAKE_JOB = "WouldTakeJob"
    NOTHING_REPORTED = "NothingReported"
    NO_PODS = "NoPods"
    NO_PROGRESS = "NoProgress"
    GANG_INCOMPLETE = "GangIncomplete"
    OTHER_CLUSTERS = "OtherClusters"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteChild:
    """Delete a sub-job's vcjob, then its PropagationPolicy; only objects with these UIDs.

    `export` is the ServiceExport, which is deleted between them if this HyperJob owns it.
    """

    name: str
    job_uid: str | None
    policy_uid: str | None
    why: DeletionCause | None = None
    export: Object | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteHyperJob:
    """Delete the HyperJob with this UID after ttlSecondsAfterFinished."""

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
    | KeepClaim
    | AskAgain
    | DeleteWork
    | DeleteChild
    | DeleteHyperJob
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An Event about a HyperJob or a TrainJob; `reason` and `action` are CamelCase words."""

    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitQuestion:
    """A question to an external splitter about one replicatedJob.

    `digest` identifies `body`. The controller does not use an answer to another `occasion`.
    """

    group: str
    occasion: str
    digest: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedJob:
    """A failed vcjob; the controller reads its pods to find the container that failed first."""

    name: str
    uid: str
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The decision of one pass; `status` None leaves the stored status as it is.

    `needs` are the sizes of the sub-jobs that found no place. If it is empty although the HyperJob
    waits for capacity, any freed capacity may help.
    """

    actions: tuple[Action, ...] = ()
    status: Object | None = None
    events: tuple[Event, ...] = ()
    requeue_after: timedelta | None = None
    waits_for_capacity: bool = False
    needs: tuple[Resources, ...] = ()
    questions: tuple[SplitQuestion, ...] = ()
    failed: tuple[FailedJob, ...] = ()
