"""The parts of a HyperJob's status, as the controller writes them and all others read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.stops import CheckpointStatus, LostWork, StopStatus
from hyperjob_core.api.table import (
    ATOMIC,
    COUNT,
    INT32,
    INT64,
    NATURAL,
    TIME,
    Table,
    described,
    keyed,
)
from hyperjob_core.api.training import GoodputStatus, StallStatus, SubJobTraining, TrainingStatus
from hyperjob_core.api.wire import timestamp

_OURS: Final = '{"hyperjob":'


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState(Table):
    """The phase of a vcjob and its reason."""

    phase: str = described("Phase that Volcano reports.", default="")
    reason: str = described("Reason of the phase, one CamelCase word.", default="")
    message: str = described("Message about the reason, for people.", default="")
    last_transition_time: str = described("When the phase last changed.", TIME, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedJobStatus(Table):
    """The status of the sub-jobs of one replicated job."""

    name: str = described("Name of the replicated job.")
    job_states: Mapping[str, JobState] = described("State of each vcjob by its name.", default={})
    pending: int = described("Pods not yet started.", COUNT, default=0)
    running: int = described("Pods running.", COUNT, default=0)
    succeeded: int = described("Pods that succeeded.", COUNT, default=0)
    failed: int = described("Pods that failed.", COUNT, default=0)
    terminating: int = described("Pods being deleted.", COUNT, default=0)
    unknown: int = described("Pods whose phase is not known.", COUNT, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperJobState(Table):
    """The phase of a HyperJob and its reason."""

    phase: Phase | None = described("Phase of the HyperJob.", default=None)
    reason: str = described("Reason of the phase, one CamelCase word.", default="")
    message: str = described(
        "Message about the reason, for people: why the HyperJob waits, or why it ended.", default=""
    )
    last_transition_time: str = described("When the phase last changed.", TIME, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection(Table):
    """A cluster on which Karmada could not schedule a sub-job."""

    cluster: str = described("Name of the cluster.")
    times: int = described("How often the controller has left out the cluster.", COUNT, default=0)
    since: datetime | None = described(
        "When Karmada first refused the cluster; unset after the controller has acted upon it.",
        default=None,
    )
    retry_time: datetime | None = described(
        "When the controller may place the sub-job there again.", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence(Table):
    """A sub-job that Karmada has applied and about which its cluster does not report."""

    times: int = described(
        "How often the controller has acted upon it.", COUNT, default=0, always=True
    )
    retry_time: datetime | None = described(
        "When the controller acts next, or a person has to look.", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GangStatus(Table):
    """The gang: sub-jobs that are suspended until enough of them are admitted to start together."""

    incomplete_since: datetime | None = described(
        "When the queue last released a held sub-job.", default=None
    )
    admitted: int = described(
        "Held sub-jobs that the queue had released.", COUNT, default=0, always=True
    )
    attempts: int = described(
        "How often the controller has deleted the held sub-jobs because the gang stayed"
        " incomplete.",
        COUNT,
        default=0,
        always=True,
    )
    retry_time: datetime | None = described("When the gang queues again.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFailure(Table):
    """The first container of a sub-job that failed, as the kubelet of its cluster reported it.

    `in_log`: the last lines are a launcher's own, and the log may have the cause.
    """

    pod: str = described("Name of the pod.")
    task: str = described("Task of the pod in its vcjob.", default="")
    container: str = described(
        "Name of the container; empty if the pod failed as a whole.", default=""
    )
    rank: int | None = described(
        "Rank of the pod, where a plugin gives ranks to pods.", COUNT, default=None
    )
    exit_code: int | None = described("Exit code of the container.", INT32, default=None)
    reason: str = described(
        "Reason from the kubelet, such as Error, OOMKilled or Evicted.", default=""
    )
    message: str = described(
        "Message from the kubelet: the last lines of the log where the container has"
        " `terminationMessagePolicy: FallbackToLogsOnError`.",
        default="",
    )
    time: str = described("When the container ended.", TIME, default="")
    in_log: bool = field(default=False, compare=False)

    @property
    def last_line(self) -> str:
        """Return the last line of the message: in a traceback it has the exception.

        Lines for the controller, such as the last progress of the program, are left out.
        """
        lines = reversed(self.message.splitlines())
        return next((line for line in lines if line.strip() and _OURS not in line), "")

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines of the log, such as a traceback; empty for a message of one."""
        lines = self.message.splitlines()
        return tuple(lines) if len(lines) > 1 else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Table):
    """One ended run of a sub-job: from its first running pod to its end."""

    attempt: int = described("Attempt of the run.", COUNT, default=0, always=True)
    cluster: str = described("Cluster of the run.", default="")
    start: str = described(
        "When the run began; absent if no pod was seen running.",
        TIME,
        default="",
        alias="startTime",
    )
    end: str = described("When the run ended.", TIME, default="", alias="endTime")
    phase: str = described("Last phase of the vcjob.", default="")
    reason: str = described(
        "Why the run ended, one CamelCase word: JobFailed, ClusterLost,"
        " RestartedWithAll, RestartRequested, MigrateRequested, Reclaimed, Preempted, Resized,"
        " Suspended, or the reason for which its vcjob was deleted.",
        default="",
    )
    message: str = described("Message about the reason, for people.", default="")
    failure: ContainerFailure | None = described(
        "The first failed container, if it is known.", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus(Table):
    """One sub-job: its cluster, its phase, and why it does not run yet."""

    name: str = described("Name of the vcjob.")
    replicated_job: str = described("Replicated job of the sub-job.", default="", always=True)
    index: int = described(
        "Index of the sub-job in the replicated job.", COUNT, default=0, always=True
    )
    cluster: str = described("Cluster of the sub-job.", default="")
    accelerators: int | None = described("Accelerators of all its pods.", NATURAL, default=None)
    phase: str = described(
        "Phase of the vcjob; without one, and before the vcjob is recreated: Unplaced,"
        " Queued or Placed.",
        default="",
        always=True,
    )
    reason: str = described("Reason of the phase, one CamelCase word.", default="")
    message: str = described("Message about the reason, for people.", default="")
    alternative: str = described(
        "Its alternative, with a quorum: others of its replicated job may have others.", default=""
    )
    attempt: int = described(
        "How often the controller has recreated the sub-job, after a suspension too.",
        COUNT,
        default=0,
    )
    admitted: bool = described(
        "Whether the built-in queue admission has admitted the sub-job to its queue.", default=False
    )
    running: int = described("Pods running.", COUNT, default=0)
    pods: int = described("Pods in all.", COUNT, default=0)
    excluded_clusters: tuple[str, ...] = described(
        "Clusters from which the sub-job was moved away.", ATOMIC, default=()
    )
    excluded_until: datetime | None = described(
        "When the controller tries the excluded clusters again, if no pod of the"
        " sub-job started there.",
        default=None,
    )
    excluded_message: str = described("Why it left the last of them, for people.", default="")
    excluded_for_good: tuple[str, ...] = described(
        "Excluded clusters to which the sub-job does not return at excludedUntil.",
        ATOMIC,
        default=(),
    )
    retry_time: datetime | None = described(
        "The earliest time at which the controller creates the present attempt.", default=None
    )
    rejections: tuple[Rejection, ...] = described(
        "Clusters on which Karmada could not schedule the sub-job.", keyed("cluster"), default=()
    )
    silence: Silence | None = described(
        "The controller's actions because the cluster does not report about the sub-job.",
        default=None,
    )
    training: SubJobTraining | None = described(
        "The last progress that the program reported.", default=None
    )
    start_time: str = described(
        "When the present run began; absent before any pod of it ran.", TIME, default=""
    )
    failure: ContainerFailure | None = described(
        "The first failed container of the present attempt, if it is known.", default=None
    )
    history: tuple[Run, ...] = described(
        "Ended runs, the oldest first: the last 10 of each sub-job, and the last 500"
        " of all sub-jobs.",
        ATOMIC,
        default=(),
    )
    last_transition_time: str = described("When the phase last changed.", TIME, default="")

    def excluded(self, now: datetime) -> tuple[str, ...]:
        """Return the clusters that are excluded at a time."""
        if not (self.excluded_clusters or self.excluded_for_good):
            return ()
        return self.for_good if self.exclusion_end(now) is None else self.excluded_clusters

    def exclusion_end(self, now: datetime) -> datetime | None:
        """Return the later time at which clusters are no longer excluded; None if there is none."""
        until = self.excluded_until
        return until if until is not None and until > now else None

    @property
    def for_good(self) -> tuple[str, ...]:
        """Return the clusters that are excluded without an end."""
        return self.excluded_clusters if self.excluded_until is None else self.excluded_for_good

    @property
    def number(self) -> int:
        """Return the attempt for people: 1 for the first."""
        return self.attempt + 1

    @property
    def has_ended(self) -> bool:
        """Return whether the sub-job has ended."""
        return JobPhase(self.phase).is_terminal

    @property
    def has_failed(self) -> bool:
        """Return whether the sub-job has failed."""
        return JobPhase(self.phase).is_failed

    @property
    def failed_run(self) -> Run | None:
        """Return the present attempt as a run, if one of its containers has failed."""
        if self.failure is None:
            return None
        return Run(
            attempt=self.attempt,
            cluster=self.cluster,
            start=self.start_time,
            end=self.last_transition_time,
            phase=self.phase,
            reason=self.reason,
            message=self.message,
            failure=self.failure,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledRequests(Table):
    """The tokens of the last handled requests by annotation."""

    restart: str = described("Token of the last requested restart.", default="")
    migrate: str = described("Token of the last requested move.", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus(Table):
    """The part of a HyperJob on one cluster."""

    name: str = described("Name of the cluster.")
    jobs: int = described("Sub-jobs on the cluster.", COUNT, default=0)
    ready: int = described("Sub-jobs on the cluster that run or completed.", COUNT, default=0)
    running: int = described("Running pods on the cluster.", COUNT, default=0)
    accelerators: int | None = described(
        "Accelerators of the sub-jobs on the cluster.", NATURAL, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimStatus(Table):
    """A PersistentVolumeClaim of the sub-jobs, and the clusters that have a copy of it."""

    name: str = described("Name of the PersistentVolumeClaim.")
    clusters: tuple[str, ...] = described(
        "Clusters whose copy, with its data, stays until the PersistentVolumeClaim is"
        " deleted in the Karmada API server.",
        ATOMIC,
        default=(),
    )
    message: str = described(
        "Why a copy would not outlive its sub-job: the controller stops no sub-job that uses it.",
        default="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeStatus(Table):
    """The alternatives that the sub-jobs of a replicated job have, or their number."""

    replicated_job: str = described("Name of the replicated job.")
    name: str = described(
        "Name of the alternative, or number of sub-jobs; with a quorum numbers of alternatives,"
        " such as `2 h100 + 1 a100`."
    )
    reason: str = described("Reason of the choice, one CamelCase word.", default="")
    message: str = described("Message about the reason, for people.", default="")
    last_transition_time: str = described(
        "When the number of sub-jobs last changed.", TIME, default=""
    )


MOST_SPEEDS: Final = 32
"""The most entries of status.speeds: those with the longest times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpeed(Table):
    """The speed of the program with one alternative of each replicated job, and its time."""

    alternatives: str = described("The alternatives or sizes, such as `trainer=a100`.")
    steps_per_second: str = described("Steps that the program made in a second.", default="")
    accelerators: int = described("Accelerators of all sub-jobs.", COUNT, default=0)
    milliseconds: int = described(
        "Time in the phases Running and Degraded, up to `since` if that is set.", NATURAL, default=0
    )
    since: str = described("Since when it is in these phases; unset: it is not.", TIME, default="")

    def until(self, now: datetime) -> "MeasuredSpeed":
        """Return it with the time up to `now`."""
        begin = timestamp(self.since) or now
        lasted = max(0, round((now - begin) / timedelta(milliseconds=1)))
        return replace(self, milliseconds=self.milliseconds + lasted, since="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStart(Table):
    """The expected start of a waiting HyperJob, if the expected ends of other HyperJobs hold."""

    time: datetime = described("When the HyperJob has room.")
    after: str = described("The HyperJob, `namespace/name`, whose expected end frees the room.")
    by: str = described(
        "What says when that HyperJob ends, such as `its progress`.", default="its estimate"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(Table):
    """One aspect of an object's state."""

    type: str = described(
        "Kind of the condition, in CamelCase.", {"schema": {"minLength": 1, "maxLength": 316}}
    )
    status: str = described(
        "Status of the condition: True, False or Unknown.",
        {"schema": {"enum": ["True", "False", "Unknown"]}},
    )
    observed_generation: int | None = described(
        "Generation of the object for which the condition was set.", INT64, default=None
    )
    last_transition_time: str = described("When the status last changed.", TIME, default="")
    reason: str = described(
        "Reason of the status, one CamelCase word.", {"schema": {"maxLength": 1024}}, default=""
    )
    message: str = described(
        "Message about the reason, for people.", {"schema": {"maxLength": 32768}}, default=""
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperJobStatus(Table):
    """The status of a HyperJob."""

    # Every value that `kubectl get` shows is a scalar: a column can only show one field.
    conditions: tuple[Condition, ...] = described(
        "QuotaReserved, Admitted, Running, Suspended, Degraded, Reconciling, Stalled; Completed"
        " or Failed after the end.",
        keyed("type"),
        default=(),
    )
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = described(
        "The replicated jobs.", keyed("name"), default=()
    )
    split_count: int | None = described("Number of sub-jobs.", COUNT, default=None)
    observed_generation: int = described(
        "Generation of the HyperJob to which this status belongs.", INT64, default=0
    )
    state: HyperJobState | None = described(
        "The phase of the HyperJob and its reason.", default=None
    )
    jobs: tuple[JobStatus, ...] = described("The sub-jobs.", keyed("name"), default=())
    clusters: tuple[ClusterStatus, ...] = described(
        "The clusters in use.", keyed("name"), default=()
    )
    alternatives: tuple[AlternativeStatus, ...] = described(
        "The alternative of each replicated job that has some, or its number of sub-jobs if it has"
        " minReplicas or maxReplicas.",
        keyed("replicatedJob"),
        default=(),
    )
    speeds: tuple[MeasuredSpeed, ...] = described(
        f"Speeds and times with different alternatives: those of the {MOST_SPEEDS} longest times.",
        keyed("alternatives"),
        default=(),
    )
    persistent_volume_claims: tuple[ClaimStatus, ...] = described(
        "The PersistentVolumeClaims that sub-jobs have used.", keyed("name"), default=()
    )
    gang: GangStatus | None = described("The gang, if it is incomplete.", default=None)
    restarts: int | None = described(
        "Restarts and moves that count against maxRestarts.", COUNT, default=None
    )
    requests: HandledRequests | None = described(
        "The last handled requests by annotation.", default=None
    )
    expected_start: ExpectedStart | None = described(
        "The expected start of a waiting HyperJob, if the estimates give a time.", default=None
    )
    start_time: str = described("When the HyperJob was first admitted.", TIME, default="")
    completion_time: str = described("When the run ended.", TIME, default="")
    jobs_ready: str = described("Sub-jobs that run or completed, of all, such as 1/2.", default="")
    running_pods: int | None = described("Pods running.", COUNT, default=None)
    cluster_names: str = described("Names of the clusters in use, joined by commas.", default="")
    queue: str = described(
        "Queues in which the HyperJob waits or ran, joined by commas.", default=""
    )
    training: TrainingStatus | None = described(
        "The progress of the training, from the progress lines of its program.", default=None
    )
    stall: StallStatus | None = described(
        "The training makes no steps against its own pace.", default=None
    )
    goodput: GoodputStatus | None = described(
        "The use of the time since the creation of the HyperJob.", default=None
    )
    checkpoint: CheckpointStatus | None = described(
        "The step from which sub-jobs start.", default=None
    )
    stop: StopStatus | None = described(
        "The planned stop in progress; only with spec.checkpoint.", default=None
    )
    lost_work: tuple[LostWork, ...] = described(
        "Steps that the program repeated, by the cause of the stop between.",
        keyed("cause"),
        default=(),
    )
