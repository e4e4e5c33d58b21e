"""The types of Volcano's Job (vcjob), with every field that Volcano has.

They have no defaults: `hyperjob_core.api.defaults` completes a template with those of Volcano.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from hyperjob_core.api.markers import (
    LABEL_PATTERN,
    SUBDOMAIN_PATTERN,
    Duration,
    PodTemplate,
    VolumeClaim,
    atomic_list,
)
from hyperjob_core.api.model import Count, Int32, Model, Time


class NetworkTopologyMode(StrEnum):
    """Whether a limit on the network distance is hard or soft."""

    HARD = "hard"
    SOFT = "soft"


class NumaPolicy(StrEnum):
    """How the pods of a task are placed on NUMA nodes."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Iteration(StrEnum):
    """Whether any or all of several tasks must have started."""

    ANY = "any"
    ALL = "all"


class NetworkTopologySpec(Model):
    """How far apart in the network the pods may be."""

    mode: NetworkTopologyMode | None = Field(
        default=None,
        description="hard: the pods must be within the tier. soft: Volcano prefers a lower tier.",
    )
    highest_tier_allowed: Annotated[int, Field(strict=True, ge=0)] | None = Field(
        default=None, description="Highest network tier that the pods may span."
    )
    highest_tier_name: str | None = Field(
        default=None,
        description="Name of the highest network tier that the pods may span; not together with"
        " highestTierAllowed.",
        max_length=253,
    )


class LifecyclePolicy(Model):
    """The action of Volcano for an event or an exit code of a task or job."""

    action: str | None = Field(default=None, description="Action, such as RestartJob.")
    event: str | None = Field(
        default=None, description="Event that the policy matches, such as PodEvicted."
    )
    events: tuple[str, ...] | None = Field(
        default=None,
        description="Events that the policy matches.",
        json_schema_extra=atomic_list(),
    )
    exit_code: Int32 | None = Field(
        default=None,
        description="Exit code of a container that the policy matches, instead of an event.",
    )
    timeout: Duration | None = Field(
        default=None, description="Time between the event and the action; 0 if unset."
    )


class DependsOn(Model):
    """The tasks that must start before this task."""

    name: tuple[str, ...] | None = Field(
        default=None, description="Names of the tasks.", json_schema_extra=atomic_list()
    )
    iteration: Iteration | None = Field(
        default=None, description="Whether any or all of these tasks must have started."
    )


class PartitionPolicySpec(Model):
    """Groups of equal size inside one task."""

    total_partitions: Annotated[Int32, Field(ge=1)] = Field(description="Number of groups.")
    partition_size: Annotated[Int32, Field(ge=1)] = Field(description="Pods in each group.")
    network_topology: NetworkTopologySpec | None = Field(
        default=None, description="How far apart the pods of one group may be."
    )
    min_partitions: Count | None = Field(
        default=None, description="Fewest groups that must start together."
    )


class VolumeSpec(Model):
    """A volume that every pod of the vcjob mounts."""

    mount_path: str = Field(description="Where the pods mount it.", min_length=1, pattern="^[^:]+$")
    volume_claim_name: str | None = Field(
        default=None, description="Name of the claim to use or to create.", max_length=253
    )
    volume_claim: VolumeClaim | None = Field(
        default=None,
        description="Spec of the PersistentVolumeClaim to create; not together with"
        " volumeClaimName.",
    )


class TaskSpec(Model):
    """Pods of one kind."""

    name: str | None = Field(
        default=None,
        description="Name of the task, unique in the vcjob.",
        max_length=63,
        pattern=LABEL_PATTERN,
    )
    replicas: Count | None = Field(default=None, description="Number of pods.")
    min_available: Count | None = Field(
        default=None, description="Fewest pods of the task that must start together."
    )
    template: PodTemplate | None = Field(default=None, description="The pods.")
    policies: tuple[LifecyclePolicy, ...] | None = Field(
        default=None,
        description="Actions for events of the task.",
        json_schema_extra=atomic_list(),
    )
    topology_policy: NumaPolicy | None = Field(
        default=None, description="How the pods are placed on NUMA nodes."
    )
    max_retry: Count | None = Field(
        default=None, description="How often the task may be restarted."
    )
    depends_on: DependsOn | None = Field(
        default=None, description="The tasks that must start before this task."
    )
    partition_policy: PartitionPolicySpec | None = Field(
        default=None, description="Groups of equal size inside the task."
    )


class JobSpec(Model):
    """The spec of a vcjob."""

    scheduler_name: str | None = Field(
        default=None, description="Scheduler of the pods.", max_length=63
    )
    min_available: Count | None = Field(
        default=None, description="Fewest pods that must start together."
    )
    volumes: tuple[VolumeSpec, ...] | None = Field(
        default=None,
        description="Volumes that every pod mounts.",
        json_schema_extra=atomic_list(),
    )
    tasks: tuple[TaskSpec, ...] | None = Field(
        default=None,
        description="The tasks, each a number of equal pods.",
        json_schema_extra=atomic_list(),
    )
    policies: tuple[LifecyclePolicy, ...] | None = Field(
        default=None,
        description="Actions for events of any task.",
        json_schema_extra=atomic_list(),
    )
    plugins: dict[str, tuple[str, ...]] | None = Field(
        default=None, description="Volcano plugins by name, each with its arguments."
    )
    running_estimate: Duration | None = Field(
        default=None, description="Running time that the user estimates for the vcjob."
    )
    queue: str | None = Field(
        default=None,
        description="Queue of the vcjob.",
        max_length=253,
        pattern=SUBDOMAIN_PATTERN,
    )
    max_retry: Count | None = Field(
        default=None, description="How often Volcano may restart the vcjob before it fails."
    )
    ttl_seconds_after_finished: Count | None = Field(
        default=None, description="Seconds between the end and the deletion of the vcjob."
    )
    priority_class_name: str | None = Field(
        default=None,
        description="Priority class of the pods.",
        max_length=253,
        pattern=SUBDOMAIN_PATTERN,
    )
    min_success: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None, description="Fewest pods that must succeed before the vcjob is Completed."
    )
    network_topology: NetworkTopologySpec | None = Field(
        default=None, description="How far apart in the network the pods may be."
    )


class JobState(Model):
    """The phase of a vcjob and its reason."""

    phase: str = Field(default="", description="Phase that Volcano reports.")
    reason: str = Field(default="", description="Reason of the phase, one CamelCase word.")
    message: str = Field(default="", description="Message about the reason, for people.")
    last_transition_time: Time | None = Field(
        default=None, description="When the phase last changed."
    )


class TaskState(Model):
    """How many pods of a task are in each phase."""

    phase: dict[str, Int32] | None = Field(default=None, description="Number of pods by phase.")


class JobCondition(Model):
    """A past phase of a vcjob; Volcano identifies these conditions by status, not by type."""

    status: str = Field(description="The phase.")
    last_transition_time: Time | None = Field(
        default=None, description="When the vcjob entered the phase."
    )


class JobStatus(Model):
    """The status of a vcjob."""

    state: JobState = Field(
        default=JobState(), description="The phase of the vcjob and its reason."
    )
    min_available: Count = Field(default=0, description="Fewest pods that must run.")
    task_status_count: dict[str, TaskState] | None = Field(
        default=None, description="Number of pods by task and phase."
    )
    pending: Count = Field(default=0, description="Pods not yet started.")
    running: Count = Field(default=0, description="Pods running.")
    succeeded: Count = Field(default=0, description="Pods that succeeded.")
    failed: Count = Field(default=0, description="Pods that failed.")
    terminating: Count = Field(default=0, description="Pods being deleted.")
    unknown: Count = Field(default=0, description="Pods whose phase is not known.")
    version: Count = Field(default=0, description="Version of the job.")
    retry_count: Count = Field(default=0, description="How often Volcano has restarted the vcjob.")
    running_duration: Duration | None = Field(default=None, description="How long the vcjob ran.")
    controlled_resources: dict[str, str] | None = Field(
        default=None, description="Objects that plugins created for the vcjob."
    )
    conditions: tuple[JobCondition, ...] | None = Field(
        default=None,
        description="The past phases of the vcjob.",
        json_schema_extra=atomic_list(),
    )
