"""The input of a plan: one HyperJob, its objects, the Clusters, the queue's verdict and the time.

These values hold no client and no cache. A plan depends on nothing else.
"""

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hyperjob_core.api.choices import (
    DeadlineMode,
    DependencyStatus,
    FailurePolicyAction,
    OnNoProgress,
    SuccessOperator,
    TimeUse,
)
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import CONDITION_COMPLETED, CONDITION_FAILED
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import ContainerFailure, GangStatus, JobStatus
from hyperjob_core.api.stops import DEFAULT_GRACE_SECONDS, StopStatus
from hyperjob_core.api.training import SubJobTraining
from hyperjob_core.api.wire import integer, mapping, objects
from hyperjob_engine.model.claimcopies import Claim
from hyperjob_engine.model.line import Chosen, MessageFacts, Wait
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.request import ClosedQueue, Items
from hyperjob_engine.model.training import Hang, WaitShare
from hyperjob_engine.reasons.pods import PodsRefused, PodsTrouble, Unschedulable
from hyperjob_engine.reasons.reason import Trouble
from hyperjob_engine.resources import Resources, total


class QueueAdmission(enum.StrEnum):
    """The component that admits a HyperJob's sub-jobs to their queue."""

    VOLCANO_GLOBAL = "volcano-global"
    BUILTIN = "builtin"
    NONE = "none"


class Ownership(enum.StrEnum):
    """The owner of an object that has the name of a sub-job's object."""

    OURS = "Ours"
    ORPHAN = "Orphan"  # has the HyperJob's labels and no controller: it may be adopted
    FOREIGN = "Foreign"  # has another controller: it is never changed


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPolicy:
    """The split policy of a replicatedJob: `accelerators` is their total number."""

    mode: str
    accelerators: int | None
    accelerator_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A replicatedJob that must be Ready or Complete before another one starts."""

    name: str
    status: DependencyStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """One case of a failure policy; an empty `targets` means every replicatedJob."""

    action: FailurePolicyAction
    on_job_phases: frozenset[JobPhase] = frozenset()
    on_cluster_lost: bool = False
    targets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """The failure policy; `max_restarts` is the budget of the whole HyperJob."""

    max_restarts: int = 0
    rules: tuple[FailureRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessPolicy:
    """Which sub-jobs must complete; an empty `targets` means every replicatedJob."""

    operator: SuccessOperator = SuccessOperator.ALL
    targets: frozenset[str] = frozenset()


def grace_of(template: Object, *, default: int = DEFAULT_GRACE_SECONDS) -> int:
    """Return the longest grace period of a sub-job's pods, in seconds, or `default` without any."""
    templates = (mapping(task.get("template")) for task in objects(template.get("tasks")))
    pods = (mapping(each.get("spec")) for each in templates)
    own = (integer(pod.get("terminationGracePeriodSeconds")) for pod in pods)
    return max((default if each is None else each for each in own), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where the program saves its checkpoints; `directory` is a path or URL for the program.

    `claim` is the PersistentVolumeClaim that is mounted there; empty: none. A pod has
    `grace_seconds` from SIGTERM to its end. `interval_seconds` is the expected time between saves.
    """

    directory: str
    claim: str = ""
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    interval_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedJob:
    """A replicatedJob of the spec; `template` is the vcjob spec as the user wrote it.

    `options` are its alternatives in order of preference, and `alternative` names its own, `shape`
    without its size. With a quorum a sub-job may have an `own` shape, by index. A shape with an
    open size has an option for each, the largest first; `wish` is the size that it would like.
    """

    name: str
    replicas: int
    template: Object
    template_labels: Mapping[str, str] = field(default_factory=dict)
    template_annotations: Mapping[str, str] = field(default_factory=dict)
    cluster_names: tuple[str, ...] = ()
    required: bool = False
    split: SplitPolicy | None = None
    depends_on: tuple[Dependency, ...] = ()
    alternative: str = ""
    shape: str = ""
    options: tuple["ReplicatedJob", ...] = ()
    own: Mapping[int, str] | None = None
    wish: int | None = None

    @property
    def is_auto(self) -> bool:
        """Return whether the controller decides the number and the sizes of its sub-jobs."""
        return self.split is not None and self.split.mode == "auto"

    @property
    def size(self) -> int:
        """Return its number of sub-jobs, or of the accelerators of an automatic split."""
        if self.split is None or not self.is_auto:
            return self.replicas
        return self.split.accelerators or 0

    @property
    def counts(self) -> str:
        """Return what its size counts."""
        return "accelerators" if self.is_auto else "sub-jobs"


@dataclass(frozen=True, slots=True)
class Deadline:
    """The limit of activeDeadlineSeconds, and which time counts against it."""

    limit: timedelta
    mode: DeadlineMode


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperJob:
    """The HyperJob; `status` is the stored object, for comparison with the status to write."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    deleting: bool
    created: str
    replicated_jobs: tuple[ReplicatedJob, ...]
    min_available: int | None
    max_domains: int | None
    status: Object
    records: Mapping[str, JobStatus]
    annotations: Mapping[str, str] = field(default_factory=dict)
    suspend: bool = False
    failure_policy: FailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    ttl_seconds_after_finished: int | None = None
    deadline: Deadline | None = None
    plugins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quorum: int | None = None  # fewest sub-jobs that train on without the others; None: all
    on_no_progress: OnNoProgress = OnNoProgress.NOTIFY
    checkpoint: Checkpoint | None = None
    stop: StopStatus | None = None
    resume_step: int | None = None  # the step from which all sub-jobs start; None: not known
    gang: GangStatus | None = None

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def elastic(self) -> ReplicatedJob | None:
        """Return the replicatedJob whose size may change; None without one."""
        return next((each for each in self.replicated_jobs if each.wish is not None), None)

    @property
    def is_finished(self) -> bool:
        """Return whether the HyperJob's stored conditions say Completed or Failed."""
        return any(map(is_end, objects(self.status.get("conditions"))))


def is_end(condition: Object) -> bool:
    """Return whether a condition says that its HyperJob has ended."""
    ends = (CONDITION_COMPLETED, CONDITION_FAILED)
    return condition.get("status") == "True" and condition.get("type") in ends


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Pods of one sub-job by phase, as Volcano counts them."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """Count all pods that exist."""
        return (
            self.pending + self.running + self.succeeded
            + self.failed + self.terminating + self.unknown
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedStatus:
    """A vcjob's status as its cluster reported it; a status without a phase is no report.

    `unmoved`: Volcano has seen the vcjob and has reported no progress so far. `began` is when the
    vcjob first ran by its conditions; empty if they do not say it.
    """

    phase: JobPhase
    phase_text: str
    reason: str = ""
    message: str = ""
    last_transition: str = ""
    pods: PodCounts = PodCounts()
    since: datetime | None = None
    unmoved: bool = False
    began: str = ""

    @property
    def has_run(self) -> bool:
        """Return whether a pod of the vcjob has run."""
        ended = self.pods.succeeded or self.pods.failed
        return bool(self.began or self.phase is JobPhase.RUNNING or self.pods.running or ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The fields of a live vcjob's task that Volcano lets change."""

    name: str
    replicas: int
    min_available: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A vcjob that has the name of a sub-job."""

    name: str
    uid: str
    deleting: bool
    ownership: Ownership
    owner: str
    labelled: bool
    attempt: int
    tasks: tuple[Task, ...]
    min_available: int | None
    priority_class: str
    queue: str
    report: ReportedStatus | None
    created: datetime | None = None
    world: str = ""
    claimed: bool = False
    uncounted: tuple[str, ...] = ()  # what Volcano Global's queues do not count, by its annotation
    spec: Object = field(default_factory=dict, compare=False, repr=False)  # the cache's: read only


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A sub-job's PropagationPolicy; `gate` is its annotation: the gate opens once for all."""

    name: str
    uid: str
    deleting: bool
    ownership: Ownership
    owner: str
    labelled: bool
    attempt: int
    clusters: tuple[str, ...]
    suspended: bool
    gate: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A sub-job's ResourceBinding: the cluster that Karmada chose, and the status from there.

    `job_uid` is the UID of its vcjob; empty if its ownerReference and its spec name different ones.
    `pins` are the policy's clusters as Karmada read it. `applied_since`: it has applied all of it;
    `workless_since`: it noticed that there is no Work; `undelivered_since`: scheduled, without any.
    `stranger`: its object, if no vcjob. `requests`: it has what Volcano Global counts of its spec.
    """

    name: str
    uid: str
    job_uid: str
    stranger: str
    cluster: str
    pins: tuple[str, ...]
    scheduling_suspended: bool
    dispatching_suspended: bool
    gate: str
    unscheduled_reason: str
    unscheduled_message: str
    applied: bool
    applied_since: datetime | None
    apply_error: str
    report: ReportedStatus | None
    requests: bool = False
    workless_since: datetime | None = None
    undelivered_since: datetime | None = None

    @property
    def suspended(self) -> bool:
        """Return whether Karmada applies nothing, since scheduling or dispatching is suspended."""
        return self.scheduling_suspended or self.dispatching_suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Cluster as a candidate: its free resources after all reservations, or its `trouble`.

    `not_ready_since` is when a Cluster that was Ready stopped being so.
    `settling` is the part of the reservations that `free` may count twice, and `ending` what pods
    that are about to end hold, by vcjob as namespace/name; under "" those of any other. Without a
    view, `ending` is under "" what the summary may count of sub-jobs that have just ended.
    `unscheduled` is the sum of the requests of its pods without a node; None: not reported.
    `view` has its nodes and pods; None: the controller does not read them, or knows them no more.
    """

    name: str
    usable: bool
    trouble: Trouble | None
    free: Resources
    allocatable: Resources
    settling: Resources = field(default_factory=dict)
    ending: Mapping[str, Resources] = field(default_factory=dict)
    provider: str = ""
    region: str = ""
    zone: str = ""
    not_ready_since: datetime | None = None
    reserved_pods: Items = ()  # pods that `view` may not count yet
    unscheduled: Resources | None = None
    view: MemberView | None = None

    @property
    def doubtful(self) -> Resources:
        """Return what the sums of a cluster without a view may count too much."""
        return total((self.settling, *self.ending.values())) if self.view is None else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The API server refused an object of a sub-job; the controller retries at `retry_at`.

    With `gives_back_at` the API server could not judge the object. From that time to `retry_at`
    other HyperJobs have the room of the HyperJob's missing sub-jobs.
    """

    reason: str
    message: str
    retry_at: datetime
    gives_back_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAnswer:
    """The last answer of an external splitter about one automatic split.

    `digest` and `occasion` are the question's; `shares` are (cluster, accelerators); `trouble` is
    why there are no shares. After an unusable answer the controller asks again at `retry_at`.
    """

    digest: str
    occasion: str
    shares: Sequence[tuple[str, int]] = ()
    trouble: str = ""
    retry_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueVerdict:
    """The queue engine's verdict on a HyperJob: the admitted sub-jobs, and why the others wait.

    `undecided`: it has no sub-job, and the first round of the engine is due. `reclaimed_for`: whose
    queue takes back what it lent, `leaving` if not all. New `message_facts`: a new message.
    """

    undecided: bool = False
    unplaced: Mapping[str, str] = field(default_factory=dict)
    """Why each sub-job that waits for room has no place: which cluster lacks which resources."""
    admitted: frozenset[str] = frozenset()
    reason: str = ""
    wait: Wait | None = None
    reclaimed_for: str = ""
    preempted: str = ""
    """Why the HyperJob makes way for another one of its queue, which; empty if it does not."""
    message_facts: MessageFacts | None = None
    chosen: Chosen | None = None
    """Why the HyperJob has its alternatives; None if no round has chosen them."""
    shrinks_to: tuple[tuple[str, str], ...] = ()
    """The size with which it goes on when it makes way; empty if it stops as a whole."""
    leaving: frozenset[str] = frozenset()
    grows_to: tuple[tuple[str, str], ...] = ()  # in room that no other could start with

    @property
    def message(self) -> str:
        """Return why the sub-jobs wait that are not admitted; empty without any."""
        return "" if self.wait is None else self.wait.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The timeouts for a lost cluster, an incomplete gang, a missing report and a first pod."""

    cluster_lost: timedelta = timedelta(minutes=5)
    gang: timedelta = timedelta(minutes=5)
    silence: timedelta = timedelta(seconds=30)
    unschedulable: timedelta = timedelta(seconds=30)  # 0: Volcano's words move nothing
    start: timedelta = timedelta(minutes=15)  # 0: a sub-job may wait for its pods forever


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One HyperJob and everything that its plan depends on, read at one instant."""

    hyperjob: HyperJob
    jobs: Mapping[str, Job]
    policies: Mapping[str, Policy]
    bindings: Mapping[str, Binding]  # by their own names, `binding_name`
    clusters: tuple[Cluster, ...]
    refusals: Mapping[str, Refusal]
    admission: QueueAdmission
    now: datetime
    queues: Mapping[str, str] | None = None  # state by name; None: queues are not known
    capacity_changes_in: timedelta | None = None
    verdict: QueueVerdict | None = None  # None: not by the queue engine
    limits: Limits = Limits()
    decides_alone: bool = False  # Volcano Global, which suspends ResourceBindings, is not installed
    contended: bool = False  # another HyperJob waits for capacity or a share
    priority: int = 0
    preempts: bool = True  # its PriorityClass lets it stop HyperJobs of lower priority
    # PriorityClasses of its templates that do not exist, where Volcano Global passes over those.
    missing_classes: frozenset[str] = frozenset()
    passed_over: frozenset[str] = frozenset()  # sub-jobs that Volcano Global has no quota for
    unanswered: frozenset[str] = frozenset()  # sub-jobs whose release by Volcano Global is overdue
    forgotten: frozenset[str] = frozenset()  # of these, while Volcano Global releases others
    split_answers: Mapping[str, SplitAnswer] | None = None  # by replicatedJob; None: no splitter
    trainings: Mapping[str, SubJobTraining] = field(default_factory=dict)  # by sub-job, from logs
    waits: tuple[WaitShare, ...] = ()  # how long processes wait for others, from logs
    hang: Hang | None = None  # the programs that make no steps against their own pace
    stopped_by: TimeUse | None = None  # the use to which goodput counts the time of a restart
    # Why vcjobs failed, by UID: a value None means unknown; None means that pods are not read.
    causes: Mapping[str, ContainerFailure | None] | None = None
    asked: Mapping[str, datetime] = field(default_factory=dict)  # when, for causes by vcjob UID
    # Pods of a sub-job, of any attempt, that its members still have; None: they are not known, and
    # absent: the controller reads no members.
    pods_left: Mapping[str, int | None] = field(default_factory=dict)
    # The clusters with pods that are not being deleted, of sub-jobs without a vcjob, by name.
    pods_staying: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Until when pods of sub-jobs without a vcjob may run, by name, while the HyperJob is suspended.
    ending: Mapping[str, datetime] = field(default_factory=dict)
    # Why a member refuses the pods of a sub-job, by name; absent: it does not, or is not read.
    pods_refused: Mapping[str, PodsRefused] = field(default_factory=dict)
    unschedulable: Mapping[str, Unschedulable] = field(default_factory=dict)
    # What troubles the pods of a sub-job, by name; absent: nothing, or its member is not known.
    pod_troubles: Mapping[str, PodsTrouble] = field(default_factory=dict)
    followers: Collection[str] = ()  # vcjobs created soon after the deletion of a namesake
    closed_queues: Mapping[str, ClosedQueue] = field(default_factory=dict)  # in some clusters
    claims: tuple[Claim, ...] = ()  # the PersistentVolumeClaims that its sub-jobs use or have used
