"""The types of a HyperJob's status.

Every value that `kubectl get` shows is a scalar field, because a column can only show one field.
"""

from typing import Annotated

from pydantic import Field

from hyperjob_core.api.batch import JobState
from hyperjob_core.api.markers import atomic_list, list_map
from hyperjob_core.api.model import Condition, Count, Int32, Int64, Model, Time
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.stops import CheckpointStatus, LostWork, StopStatus
from hyperjob_core.api.training import GoodputStatus, StallStatus, SubJobTraining, TrainingStatus


class ReplicatedJobStatus(Model):
    """The status of the sub-jobs of one replicated job."""

    name: str = Field(description="Name of the replicated job.")
    job_states: dict[str, JobState] | None = Field(
        default=None, description="State of each vcjob by its name."
    )
    pending: Count = Field(default=0, description="Pods not yet started.")
    running: Count = Field(default=0, description="Pods running.")
    succeeded: Count = Field(default=0, description="Pods that succeeded.")
    failed: Count = Field(default=0, description="Pods that failed.")
    terminating: Count = Field(default=0, description="Pods being deleted.")
    unknown: Count = Field(default=0, description="Pods whose phase is not known.")


class HyperJobState(Model):
    """The phase of a HyperJob and its reason."""

    phase: Phase | None = Field(default=None, description="Phase of the HyperJob.")
    reason: str = Field(default="", description="Reason of the phase, one CamelCase word.")
    message: str = Field(
        default="",
        description="Message about the reason, for people: why the HyperJob waits, or why it"
        " ended.",
    )
    last_transition_time: Time | None = Field(
        default=None, description="When the phase last changed."
    )


class Rejection(Model):
    """A cluster on which Karmada could not schedule a sub-job."""

    cluster: str = Field(description="Name of the cluster.")
    times: Count = Field(
        default=0, description="How often the controller has left out the cluster."
    )
    since: Time | None = Field(
        default=None,
        description="When Karmada first refused the cluster; unset after the controller has acted"
        " upon it.",
    )
    retry_time: Time | None = Field(
        default=None, description="When the controller may place the sub-job there again."
    )


class Silence(Model):
    """A sub-job that Karmada has applied and about which its cluster does not report."""

    times: Count = Field(default=0, description="How often the controller has acted upon it.")
    retry_time: Time | None = Field(
        default=None, description="When the controller acts next, or a person has to look."
    )


class GangStatus(Model):
    """The gang: sub-jobs that are suspended until enough of them are admitted to start together."""

    incomplete_since: Time | None = Field(
        default=None, description="When the queue last released a held sub-job."
    )
    admitted: Count = Field(default=0, description="Held sub-jobs that the queue had released.")
    attempts: Count = Field(
        default=0,
        description="How often the controller has deleted the held sub-jobs because the gang stayed"
        " incomplete.",
    )
    retry_time: Time | None = Field(default=None, description="When the gang queues again.")


class ContainerFailure(Model):
    """The first container of a sub-job that failed, as the kubelet of its cluster reported it."""

    pod: str = Field(description="Name of the pod.")
    task: str = Field(default="", description="Task of the pod in its vcjob.")
    container: str = Field(
        default="", description="Name of the container; empty if the pod failed as a whole."
    )
    rank: Count | None = Field(
        default=None, description="Rank of the pod, where a plugin gives ranks to pods."
    )
    exit_code: Int32 | None = Field(default=None, description="Exit code of the container.")
    reason: str = Field(
        default="", description="Reason from the kubelet, such as Error, OOMKilled or Evicted."
    )
    message: str = Field(
        default="",
        description="Message from the kubelet: the last lines of the log where the container has"
        " `terminationMessagePolicy: FallbackToLogsOnError`.",
    )
    time: Time | None = Field(default=None, description="When the container ended.")


class JobRun(Model):
    """One ended run of a sub-job: from its first running pod to its end."""

    attempt: Count = Field(default=0, description="Attempt of the run.")
    cluster: str = Field(default="", description="Cluster of the run.")
    start_time: Time | None = Field(
        default=None, description="When the run began; absent if no pod was seen running."
    )
    end_time: Time | None = Field(default=None, description="When the run ended.")
    phase: str = Field(default="", description="Last phase of the vcjob.")
    reason: str = Field(
        default="",
        description="Why the run ended, one CamelCase word: JobFailed, ClusterLost,"
        " RestartedWithAll, RestartRequested, MigrateRequested, Reclaimed, Preempted, Suspended,"
        " or the reason for which its vcjob was deleted.",
    )
    message: str = Field(default="", description="Message about the reason, for people.")
    failure: ContainerFailure | None = Field(
        default=None, description="The first failed container, if it is known."
    )


class JobStatus(Model):
    """One sub-job: its cluster, its phase, and why it does not run yet."""

    name: str = Field(description="Name of the vcjob.")
    replicated_job: str = Field(default="", description="Replicated job of the sub-job.")
    index: Count = Field(default=0, description="Index of the sub-job in the replicated job.")
    cluster: str = Field(default="", description="Cluster of the sub-job.")
    accelerators: Annotated[Int64, Field(ge=0)] | None = Field(
        default=None, description="Accelerators of all its pods."
    )
    phase: str = Field(
        default="",
        description="Phase of the vcjob; without one, and before the vcjob is recreated: Unplaced,"
        " Queued or Placed.",
    )
    reason: str = Field(default="", description="Reason of the phase, one CamelCase word.")
    message: str = Field(default="", description="Message about the reason, for people.")
    attempt: Count = Field(
        default=0,
        description="How often the controller has recreated the sub-job, after a suspension too.",
    )
    admitted: bool = Field(
        default=False,
        description="Whether the built-in queue admission has admitted the sub-job to its queue.",
    )
    running: Count = Field(default=0, description="Pods running.")
    pods: Count = Field(default=0, description="Pods in all.")
    excluded_clusters: tuple[str, ...] | None = Field(
        default=None,
        description="Clusters from which the sub-job was moved away.",
        json_schema_extra=atomic_list(),
    )
    excluded_until: Time | None = Field(
        default=None,
        description="When the controller tries the excluded clusters again, if no pod of the"
        " sub-job started there.",
    )
    excluded_for_good: tuple[str, ...] | None = Field(
        default=None,
        description="Excluded clusters to which the sub-job does not return at excludedUntil.",
        json_schema_extra=atomic_list(),
    )
    retry_time: Time | None = Field(
        default=None,
        description="The earliest time at which the controller creates the present attempt.",
    )
    rejections: tuple[Rejection, ...] | None = Field(
        default=None,
        description="Clusters on which Karmada could not schedule the sub-job.",
        json_schema_extra=list_map("cluster"),
    )
    silence: Silence | None = Field(
        default=None,
        description="The controller's actions because the cluster does not report about the"
        " sub-job.",
    )
    training: SubJobTraining | None = Field(
        default=None, description="The last progress that the program reported."
    )
    start_time: Time | None = Field(
        default=None, description="When the present run began; absent before any pod of it ran."
    )
    failure: ContainerFailure | None = Field(
        default=None,
        description="The first failed container of the present attempt, if it is known.",
    )
    history: tuple[JobRun, ...] | None = Field(
        default=None,
        description="Ended runs, the oldest first: the last 10 of each sub-job, and the last 500"
        " of all sub-jobs.",
        json_schema_extra=atomic_list(),
    )
    last_transition_time: Time | None = Field(
        default=None, description="When the phase last changed."
    )


class HandledRequests(Model):
    """The tokens of the last handled requests by annotation."""

    restart: str = Field(default="", description="Token of the last requested restart.")
    migrate: str = Field(default="", description="Token of the last requested move.")


class ClusterStatus(Model):
    """The part of a HyperJob on one cluster."""

    name: str = Field(description="Name of the cluster.")
    jobs: Count = Field(default=0, description="Sub-jobs on the cluster.")
    ready: Count = Field(default=0, description="Sub-jobs on the cluster that run or completed.")
    running: Count = Field(default=0, description="Running pods on the cluster.")
    accelerators: Annotated[Int64, Field(ge=0)] | None = Field(
        default=None, description="Accelerators of the sub-jobs on the cluster."
    )


class ClaimStatus(Model):
    """A PersistentVolumeClaim of the sub-jobs, and the clusters that have a copy of it."""

    name: str = Field(description="Name of the PersistentVolumeClaim.")
    clusters: tuple[str, ...] | None = Field(
        default=None,
        description="Clusters whose copy, with its data, stays until the PersistentVolumeClaim is"
        " deleted in the Karmada API server.",
        json_schema_extra=atomic_list(),
    )
    message: str = Field(
        default="",
        description="Why a copy would not outlive its sub-job: the controller stops no sub-job"
        " that uses it.",
    )


class ExpectedStart(Model):
    """The expected start of a waiting HyperJob, if the estimates of other HyperJobs hold."""

    time: Time = Field(description="When the HyperJob has room.")
    after: str = Field(
        description="The HyperJob, `namespace/name`, whose estimated end frees the room."
    )


class HyperJobStatus(Model):
    """The status of a HyperJob."""

    conditions: tuple[Condition, ...] | None = Field(
        default=None,
        description="Completed or Failed, set when the HyperJob has ended.",
        json_schema_extra=list_map("type"),
    )
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] | None = Field(
        default=None,
        description="The replicated jobs.",
        json_schema_extra=list_map("name"),
    )
    split_count: Count | None = Field(default=None, description="Number of sub-jobs.")
    observed_generation: Int64 = Field(
        default=0, description="Generation of the HyperJob to which this status belongs."
    )
    state: HyperJobState | None = Field(
        default=None, description="The phase of the HyperJob and its reason."
    )
    jobs: tuple[JobStatus, ...] | None = Field(
        default=None, description="The sub-jobs.", json_schema_extra=list_map("name")
    )
    clusters: tuple[ClusterStatus, ...] | None = Field(
        default=None, description="The clusters in use.", json_schema_extra=list_map("name")
    )
    persistent_volume_claims: tuple[ClaimStatus, ...] | None = Field(
        default=None,
        description="The PersistentVolumeClaims that sub-jobs have used.",
        json_schema_extra=list_map("name"),
    )
    gang: GangStatus | None = Field(default=None, description="The gang, if it is incomplete.")
    restarts: Count | None = Field(
        default=None, description="Restarts and moves that count against maxRestarts."
    )
    requests: HandledRequests | None = Field(
        default=None, description="The last handled requests by annotation."
    )
    expected_start: ExpectedStart | None = Field(
        default=None,
        description="The expected start of a waiting HyperJob, if the estimates give a time.",
    )
    start_time: Time | None = Field(
        default=None, description="When the HyperJob was first admitted."
    )
    completion_time: Time | None = Field(default=None, description="When the run ended.")
    jobs_ready: str = Field(
        default="", description="Sub-jobs that run or completed, of all, such as 1/2."
    )
    running_pods: Count | None = Field(default=None, description="Pods running.")
    cluster_names: str = Field(
        default="", description="Names of the clusters in use, joined by commas."
    )
    queue: str = Field(
        default="", description="Queues in which the HyperJob waits or ran, joined by commas."
    )
    training: TrainingStatus | None = Field(
        default=None,
        description="The progress of the training, from the progress lines of its program.",
    )
    stall: StallStatus | None = Field(
        default=None, description="The training makes no steps against its own pace."
    )
    goodput: GoodputStatus | None = Field(
        default=None, description="The use of the time since the creation of the HyperJob."
    )
    checkpoint: CheckpointStatus | None = Field(
        default=None, description="The step from which sub-jobs start."
    )
    stop: StopStatus | None = Field(
        default=None, description="The planned stop in progress; only with spec.checkpoint."
    )
    lost_work: tuple[LostWork, ...] | None = Field(
        default=None,
        description="Steps that the program repeated, by the cause of the stop between.",
        json_schema_extra=list_map("cause"),
    )
