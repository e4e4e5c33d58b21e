"""The types of the HyperJob, version v1alpha1.

Fields that the Go controller's API has keep their names, types and defaults, so its manifests
work unchanged; all others are optional.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from hyperjob_core.api.alternatives import Alternative, SplitPolicy
from hyperjob_core.api.batch import JobSpec
from hyperjob_core.api.choices import (
    ClusterPolicy,
    DeadlineMode,
    DependencyStatus,
    FailedPhase,
    FailurePolicyAction,
    OnNoProgress,
    SuccessOperator,
)
from hyperjob_core.api.limits import MAX_ALTERNATIVES, MAX_REPLICATED_JOBS, MAX_SUB_JOBS
from hyperjob_core.api.markers import (
    LABEL_PATTERN,
    SUBDOMAIN_PATTERN,
    atomic_list,
    list_map,
    rules,
)
from hyperjob_core.api.meta import Object
from hyperjob_core.api.model import Bool, Condition, Count, Int32, Model, ObjectMeta
from hyperjob_core.api.names import API_VERSION, KIND
from hyperjob_core.api.plugins import PLUGINS
from hyperjob_core.api.status import (
    AlternativeStatus,
    ClaimStatus,
    ClusterStatus,
    ExpectedStart,
    GangStatus,
    HandledRequests,
    HyperJobState,
    JobStatus,
    MeasuredSpeed,
    ReplicatedJobStatus,
)
from hyperjob_core.api.stops import CheckpointStatus, LostWork, StopStatus
from hyperjob_core.api.table import COUNT, INT64, TIME, Table, described, keyed
from hyperjob_core.api.training import GoodputStatus, StallStatus, TrainingStatus


class DependsOn(Model):
    """A replicated job that must be Ready or Complete before this one starts."""

    name: str = Field(
        description="Name of an earlier replicated job in the list.", min_length=1, max_length=63
    )
    status: DependencyStatus = Field(
        description="Ready: all its sub-jobs run. Complete: all its sub-jobs completed."
    )


class TemplateMetadata(Model):
    """Labels and annotations of the sub-jobs."""

    labels: dict[str, str] | None = Field(default=None, description="Labels of every sub-job.")
    annotations: dict[str, str] | None = Field(
        default=None, description="Annotations of every sub-job."
    )


_AUTO_DECIDES_REPLICAS = (
    (
        "!has(self.splitPolicy) || !has(self.splitPolicy.mode) || self.splitPolicy.mode != 'auto'"
        " || !has(self.replicas) || self.replicas == 1"
    ),
    "replicas must be unset if splitPolicy.mode is auto: the split decides it",
)
_REQUIRED_NEEDS_CLUSTERS = (
    (
        "!has(self.clusterPolicy) || self.clusterPolicy != 'Required'"
        " || (has(self.clusterNames) && size(self.clusterNames) > 0)"
    ),
    "clusterNames must be set if clusterPolicy is Required",
)
_NOT_ON_ITSELF = (
    "!has(self.dependsOn) || self.dependsOn.all(d, d.name != self.name)",
    "a replicated job must not depend on itself",
)


class ReplicatedJob(Model):
    """The sub-jobs of one template, each a vcjob in one cluster."""

    model_config = ConfigDict(
        json_schema_extra=rules(_AUTO_DECIDES_REPLICAS, _REQUIRED_NEEDS_CLUSTERS, _NOT_ON_ITSELF)
    )

    name: str = Field(
        description="Name of the replicated job, unique in the HyperJob.",
        min_length=1,
        max_length=63,
        pattern=LABEL_PATTERN,
    )
    template_metadata: TemplateMetadata | None = Field(
        default=None, description="Labels and annotations of the sub-jobs."
    )
    template_spec: JobSpec = Field(description="Spec of the vcjob of every sub-job.")
    split_policy: SplitPolicy | None = Field(
        default=None,
        description="How accelerators are shared out over the sub-jobs; unset: every sub-job is as"
        " the template.",
    )
    # No default below a list: `kubectl apply` compares a list as a whole, and would always replace
    # one with a stored default.
    replicas: Annotated[Int32, Field(ge=1, le=MAX_SUB_JOBS)] | None = Field(
        default=None,
        description="Number of sub-jobs, 1 if unset; the controller decides it if splitPolicy.mode"
        " is auto.",
    )
    cluster_names: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] | None = Field(
        default=None,
        description="Preferred clusters, in this order. The controller uses other clusters only if"
        " none of these has room, and never if clusterPolicy is Required.",
        max_length=256,
        json_schema_extra=atomic_list(),
    )
    cluster_policy: ClusterPolicy | None = Field(
        default=None,
        description="Whether clusterNames is a preference or the only clusters allowed; Preferred"
        " if unset.",
    )
    alternatives: tuple[Alternative, ...] | None = Field(
        default=None,
        description="Shapes of the sub-jobs in order of preference, such as one for each kind of"
        " accelerator, each as changes of the other fields. The controller takes one of them for"
        " all sub-jobs: the one with the earliest expected end if all have a speed or an estimate,"
        " else the first with room. After all sub-jobs have stopped it may take another one.",
        max_length=MAX_ALTERNATIVES,
        json_schema_extra=list_map("name"),
    )
    depends_on: tuple[DependsOn, ...] | None = Field(
        default=None,
        description="Replicated jobs that must be Ready or Complete before this one starts.",
        max_length=16,
        json_schema_extra=list_map("name"),
    )


class FailurePolicyRule(Model):
    """One rule of a failure policy: the failures that it matches, and its action."""

    action: FailurePolicyAction = Field(description="Action of the rule.")
    on_job_phases: tuple[FailedPhase, ...] | None = Field(
        default=None,
        description="Phases of a sub-job that the rule matches. If this and onClusterLost are"
        " unset, the rule matches every failure.",
        max_length=8,
        json_schema_extra=atomic_list(),
    )
    on_cluster_lost: Bool | None = Field(
        default=None, description="Whether the rule matches the loss of a sub-job's cluster."
    )
    target_replicated_jobs: (
        tuple[Annotated[str, Field(min_length=1, max_length=63)], ...] | None
    ) = Field(
        default=None,
        description="Replicated jobs of the rule; unset: all.",
        max_length=256,
        json_schema_extra=atomic_list(),
    )


class FailurePolicy(Model):
    """The reaction to failed sub-jobs and lost clusters."""

    max_restarts: Count = Field(
        default=0,
        description="Greatest number of restarts and moves, of the HyperJob and its sub-jobs"
        " together.",
    )
    rules: tuple[FailurePolicyRule, ...] | None = Field(
        default=None,
        description="Rules, of which the first matching one decides. A failure that matches no"
        " rule restarts the HyperJob while maxRestarts allows it, and fails it otherwise.",
        max_length=64,
        json_schema_extra=atomic_list(),
    )


class SuccessPolicy(Model):
    """Which sub-jobs must complete before the HyperJob is Completed."""

    operator: SuccessOperator | None = Field(
        default=None, description="Whether All sub-jobs or Any one must complete; All if unset."
    )
    target_replicated_jobs: (
        tuple[Annotated[str, Field(min_length=1, max_length=63)], ...] | None
    ) = Field(
        default=None,
        description="Replicated jobs that count; unset: all.",
        max_length=256,
        json_schema_extra=atomic_list(),
    )


_ONE_PLACE = (
    "has(self.directory) != has(self.persistentVolumeClaim)",
    "exactly one of directory and persistentVolumeClaim must be set",
)
_PATH_OF_CLAIM = (
    "!has(self.path) || has(self.persistentVolumeClaim)",
    "path may be set only with persistentVolumeClaim",
)


class Checkpoint(Model):
    """Where the program saves its checkpoints, and how long a pod has to save one."""

    model_config = ConfigDict(json_schema_extra=rules(_ONE_PLACE, _PATH_OF_CLAIM))

    directory: str | None = Field(
        default=None,
        description="Absolute path in the containers, or URL of an object store, of the"
        " checkpoints. The templates themselves mount the path.",
        min_length=1,
        max_length=1024,
    )
    persistent_volume_claim: str | None = Field(
        default=None,
        description="Name of a PersistentVolumeClaim in the namespace of the HyperJob, which the"
        " controller mounts at `path` in all containers of the sub-jobs.",
        min_length=1,
        max_length=253,
        pattern=SUBDOMAIN_PATTERN,
    )
    path: str | None = Field(
        default=None,
        description="Absolute mount path of the claim; /checkpoints if unset.",
        min_length=1,
        max_length=1024,
    )
    grace_period_seconds: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None,
        description="Seconds that a pod has from SIGTERM to save a checkpoint: the"
        " terminationGracePeriodSeconds of pods whose template has none; 30 if unset.",
    )
    interval_seconds: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None,
        description="Expected seconds between two checkpoints of the program.",
    )


class HyperJobSpec(Model):
    """The spec of a HyperJob."""

    replicated_jobs: tuple[ReplicatedJob, ...] = Field(
        description="The replicated jobs of the HyperJob, each a template and a number of"
        " sub-jobs.",
        min_length=1,
        max_length=MAX_REPLICATED_JOBS,
        json_schema_extra=list_map("name"),
    )
    min_available: Count | None = Field(
        default=None,
        description="Number of sub-jobs that must be admitted and placed before any of them"
        " starts. With fewer running sub-jobs the HyperJob is Degraded. Unset: all.",
    )
    max_domains: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None,
        description="Greatest number of clusters for all sub-jobs together; 1 keeps them in one"
        " cluster. Unset: no limit.",
    )
    plugins: dict[str, tuple[str, ...]] | None = Field(
        default=None,
        description=f"HyperJob plugins by name, each with its arguments: {', '.join(PLUGINS)}."
        " They set up a framework over all sub-jobs.",
    )
    suspend: Bool | None = Field(
        default=None,
        description="true: the controller deletes the sub-jobs and frees their quota. false: it"
        " creates them again.",
    )
    failure_policy: FailurePolicy | None = Field(
        default=None,
        description="The reaction to failures; unset: no sub-job is restarted, and the HyperJob"
        " ends when every sub-job has ended.",
    )
    on_no_progress: OnNoProgress | None = Field(
        default=None,
        description="The reaction to a program that makes no steps against its own pace. Notify:"
        " the status and an Event say it. Restart: the controller also restarts the HyperJob, or"
        " with a quorum the stalled sub-jobs. Migrate: it also moves the sub-jobs for which the"
        " others wait to other clusters. A restart counts against failurePolicy.maxRestarts. Unset:"
        " Notify.",
    )
    success_policy: SuccessPolicy | None = Field(
        default=None, description="When the HyperJob is Completed; unset: when all sub-jobs are."
    )
    quorum: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None,
        description="Fewest sub-jobs that can train without the others. If it is set, the"
        " controller recreates a failed sub-job, or one on a lost cluster, alone while the others"
        " train on; after the start of the first sub-jobs no sub-job waits for the others. Unset:"
        " all sub-jobs are one world.",
    )
    checkpoint: Checkpoint | None = Field(
        default=None,
        description="Where the checkpoints are, and how long a pod has to save one. If it is set,"
        " every planned stop waits until all sub-jobs have ended, and all resume from one step.",
    )
    active_deadline_seconds: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None,
        description="Seconds after which the controller stops the sub-jobs and fails the HyperJob"
        " with the reason DeadlineExceeded. Unset: no limit.",
    )
    active_deadline_mode: DeadlineMode | None = Field(
        default=None,
        description="Which time counts against activeDeadlineSeconds: RunTime, all time except"
        " waiting and suspension, or Total, all time since the creation. RunTime if unset.",
    )
    ttl_seconds_after_finished: Count | None = Field(
        default=None, description="Seconds between the end and the deletion of the HyperJob."
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
        "The alternative of each replicated job that has some.", keyed("replicatedJob"), default=()
    )
    speeds: tuple[MeasuredSpeed, ...] = described(
        "The speeds that the program had with different alternatives.",
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


class HyperJob(Model):
    """One training job that is split over several clusters and runs as one."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: ObjectMeta = ObjectMeta()
    spec: HyperJobSpec = Field(description="Spec of the HyperJob.")
    status: Object | None = Field(default=None, description="Status of the HyperJob.")
