"""The status of a HyperJob: the state of its sub-jobs and clusters.

Every scalar that `kubectl get` shows is a field here, because a column can only be one.
"""

from typing import Annotated

from pydantic import Field

from hyperjob.api.batch import JobState
from hyperjob.api.markers import atomic_list, list_map
from hyperjob.api.model import Condition, Count, Int32, Int64, Model, Time
from hyperjob.api.phases import Phase
from hyperjob.api.stops import CheckpointStatus, LostWork, StopStatus
from hyperjob.api.training import GoodputStatus, SubJobTraining, TrainingStatus


class ReplicatedJobStatus(Model):
    """What the sub-jobs of one replicated job have come to."""

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
    """Where a HyperJob is, and why."""

    phase: Phase | None = Field(default=None, description="Where the HyperJob is in its life.")
    reason: str = Field(default="", description="Why, as one CamelCase word for programs.")
    message: str = Field(
        default="", description="Why, for people: what it waits for, or what ended it."
    )
    last_transition_time: Time | None = Field(
        default=None, description="When the phase last changed."
    )


class Rejection(Model):
    """A cluster on which Karmada could not schedule a sub-job."""

    cluster: str = Field(description="Name of the cluster.")
    times: Count = Field(default=0, description="How often it was left out.")
    since: Time | None = Field(
        default=None, description="Since when Karmada says so, while that is not acted upon yet."
    )
    retry_time: Time | None = Field(
        default=None, description="When the sub-job may be placed there again."
    )


class Silence(Model):
    """A sub-job that Karmada applied and of which its cluster reports nothing."""

    times: Count = Field(default=0, description="How often something was done about it.")
    retry_time: Time | None = Field(
        default=None, description="When the next thing is done about it, or a person has to look."
    )


class GangStatus(Model):
    """Sub-jobs that are held until enough of them are admitted to start together."""

    incomplete_since: Time | None = Field(
        default=None, description="When the queue last released one of those that are held."
    )
    admitted: Count = Field(default=0, description="Held sub-jobs that the queue had released.")
    attempts: Count = Field(
        default=0, description="How often all was given back because the gang stayed incomplete."
    )
    retry_time: Time | None = Field(
        default=None, description="When what was given back is asked for again."
    )


class ContainerFailure(Model):
    """The first container of a sub-job that failed, as the kubelet of its cluster reported it."""

    pod: str = Field(description="Name of the pod.")
    task: str = Field(default="", description="Task of the vcjob that the pod is of.")
    container: str = Field(
        default="", description="Name of the container; empty where the pod failed as a whole."
    )
    exit_code: Int32 | None = Field(default=None, description="Exit code of the container.")
    reason: str = Field(
        default="", description="Reason that the kubelet gave, such as Error, OOMKilled or Evicted."
    )
    message: str = Field(default="", description="Message that the kubelet gave.")
    time: Time | None = Field(default=None, description="When the container ended.")


class JobRun(Model):
    """One run of a sub-job that is over: from its first running pod to its end."""

    attempt: Count = Field(
        default=0, description="Attempt that it was of; a suspension ends a run, not an attempt."
    )
    cluster: str = Field(default="", description="Cluster on which it ran.")
    start_time: Time | None = Field(
        default=None, description="When it first ran; absent where no pod was seen running."
    )
    end_time: Time | None = Field(default=None, description="When it ended.")
    phase: str = Field(default="", description="Last phase of the vcjob.")
    reason: str = Field(
        default="",
        description="What ended it, as one CamelCase word: JobFailed, ClusterLost,"
        " RestartedWithAll, RestartRequested, MigrateRequested, Reclaimed, Preempted, Suspended, or"
        " the reason for which its vcjob went.",
    )
    message: str = Field(default="", description="What ended it, for people.")
    failure: ContainerFailure | None = Field(
        default=None, description="The first container that failed, where it is known."
    )


class JobStatus(Model):
    """One sub-job: where it is and why it does not run yet."""

    name: str = Field(description="Name of the vcjob.")
    replicated_job: str = Field(default="", description="Replicated job it is made from.")
    index: Count = Field(default=0, description="Its index in the replicated job.")
    cluster: str = Field(default="", description="Cluster chosen for it.")
    accelerators: Annotated[Int64, Field(ge=0)] | None = Field(
        default=None, description="Accelerators of its pods together."
    )
    phase: str = Field(
        default="",
        description="Phase of the vcjob; before it has one, or while it waits to be made again:"
        " Unplaced, Queued or Placed.",
    )
    reason: str = Field(default="", description="Why, as one CamelCase word for programs.")
    message: str = Field(default="", description="Why, for people.")
    attempt: Count = Field(default=0, description="How often it was made again.")
    admitted: bool = Field(
        default=False,
        description="Whether the built-in queue admission has given it a share of its queue.",
    )
    running: Count = Field(default=0, description="Pods running.")
    pods: Count = Field(default=0, description="Pods in all.")
    excluded_clusters: tuple[str, ...] | None = Field(
        default=None,
        description="Clusters that it was moved away from.",
        json_schema_extra=atomic_list(),
    )
    retry_time: Time | None = Field(
        default=None, description="When its present attempt was, or will be, made at the earliest."
    )
    rejections: tuple[Rejection, ...] | None = Field(
        default=None,
        description="Clusters on which Karmada could not schedule it.",
        json_schema_extra=list_map("cluster"),
    )
    silence: Silence | None = Field(
        default=None, description="What was done because nothing is reported of it."
    )
    training: SubJobTraining | None = Field(
        default=None, description="What its program last said of its progress."
    )
    start_time: Time | None = Field(
        default=None, description="When the present run began; absent while none of its pods ran."
    )
    failure: ContainerFailure | None = Field(
        default=None,
        description="The first container that failed in the present attempt, where it is known.",
    )
    history: tuple[JobRun, ...] | None = Field(
        default=None,
        description="Runs that are over, the oldest first: the last 10 of each sub-job, and the"
        " last 500 of all.",
        json_schema_extra=atomic_list(),
    )
    last_transition_time: Time | None = Field(
        default=None, description="When the phase last changed."
    )


class HandledRequests(Model):
    """The requests by annotation that were acted on, by their tokens."""

    restart: str = Field(default="", description="Token of the last restart that was asked for.")
    migrate: str = Field(default="", description="Token of the last move that was asked for.")


class ClusterStatus(Model):
    """The part of a HyperJob that one cluster has."""

    name: str = Field(description="Name of the cluster.")
    jobs: Count = Field(default=0, description="Sub-jobs placed there.")
    ready: Count = Field(default=0, description="Sub-jobs running or completed there.")
    running: Count = Field(default=0, description="Pods running there.")
    accelerators: Annotated[Int64, Field(ge=0)] | None = Field(
        default=None, description="Accelerators of the sub-jobs there."
    )


class ExpectedStart(Model):
    """When a HyperJob that waits has room, if the running times that others estimate hold."""

    time: Time = Field(description="When it has room.")
    after: str = Field(
        description="The HyperJob, `namespace/name`, whose end by its estimate gives it room."
    )


class HyperJobStatus(Model):
    """What a HyperJob has come to."""

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
        default=0, description="Generation of the spec that this status is about."
    )
    state: HyperJobState | None = Field(default=None, description="Where it is, and why.")
    jobs: tuple[JobStatus, ...] | None = Field(
        default=None, description="The sub-jobs.", json_schema_extra=list_map("name")
    )
    clusters: tuple[ClusterStatus, ...] | None = Field(
        default=None, description="The clusters in use.", json_schema_extra=list_map("name")
    )
    gang: GangStatus | None = Field(default=None, description="The gang, while it is incomplete.")
    restarts: Count | None = Field(
        default=None, description="Restarts and moves counted against maxRestarts."
    )
    requests: HandledRequests | None = Field(
        default=None, description="Requests by annotation that were acted on."
    )
    expected_start: ExpectedStart | None = Field(
        default=None,
        description="When it is expected to start, while it waits and estimates support a time.",
    )
    start_time: Time | None = Field(default=None, description="When it was first admitted.")
    completion_time: Time | None = Field(default=None, description="When it ended.")
    jobs_ready: str = Field(
        default="", description="Sub-jobs that run or completed, of all, such as 1/2."
    )
    running_pods: Count | None = Field(default=None, description="Pods running.")
    cluster_names: str = Field(
        default="", description="Names of the clusters in use, joined by commas."
    )
    queue: str = Field(default="", description="Queues that it waits or ran in, joined by commas.")
    training: TrainingStatus | None = Field(
        default=None, description="How far the training is, by the lines that its program prints."
    )
    goodput: GoodputStatus | None = Field(
        default=None, description="What the time since its creation went to."
    )
    checkpoint: CheckpointStatus | None = Field(
        default=None, description="The step that sub-jobs start from."
    )
    stop: StopStatus | None = Field(
        default=None, description="The planned stop that is going on; only with spec.checkpoint."
    )
    lost_work: tuple[LostWork, ...] | None = Field(
        default=None,
        description="Steps that were made twice, by the cause of the stop between.",
        json_schema_extra=list_map("cause"),
    )
