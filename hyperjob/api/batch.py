"""Volcano's Job (vcjob): every field that Volcano knows, so that none is lost on the way.

These types hold no default of Volcano's; what Volcano would fill in is decided in admission.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from hyperjob.api.markers import (
    LABEL_PATTERN,
    SUBDOMAIN_PATTERN,
    Duration,
    PodTemplate,
    VolumeClaim,
    atomic_list,
)
from hyperjob.api.model import Count, Int32, Model, Time


class NetworkTopologyMode(StrEnum):
    """How binding a limit on the network distance is."""

    HARD = "hard"
    SOFT = "soft"


class NumaPolicy(StrEnum):
    """How the pods of a task are placed on NUMA nodes."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Iteration(StrEnum):
    """Whether one or all of several tasks must have got far enough."""

    ANY = "any"
    ALL = "all"


class NetworkTopologySpec(Model):
    """How far apart in the network the pods may be."""

    mode: NetworkTopologyMode | None = Field(
        default=None, description="hard: never farther apart; soft: closer where possible."
    )
    highest_tier_allowed: Annotated[int, Field(strict=True, ge=0)] | None = Field(
        default=None, description="Highest network tier that the pods may span."
    )
    highest_tier_name: str | None = Field(
        default=None,
        description="The same limit by the tier's name; not together with highestTierAllowed.",
        max_length=253,
    )


class LifecyclePolicy(Model):
    """What Volcano does when something happens to a task or job."""

    action: str | None = Field(default=None, description="What is done, such as RestartJob.")
    event: str | None = Field(default=None, description="What it answers, such as PodEvicted.")
    events: tuple[str, ...] | None = Field(
        default=None,
        description="Several events that it answers.",
        json_schema_extra=atomic_list(),
    )
    exit_code: Int32 | None = Field(
        default=None, description="Exit code of a container that it answers, instead of an event."
    )
    timeout: Duration | None = Field(
        default=None, description="How long to wait before it is done; at once if unset."
    )


class DependsOn(Model):
    """Tasks that must have started before this one."""

    name: tuple[str, ...] | None = Field(
        default=None, description="Names of those tasks.", json_schema_extra=atomic_list()
    )
    iteration: Iteration | None = Field(
        default=None, description="Whether any or all of them must have started."
    )


class PartitionPolicySpec(Model):
    """Groups of equal size inside one task."""

    total_partitions: Annotated[Int32, Field(ge=1)] = Field(description="Number of groups.")
    partition_size: Annotated[Int32, Field(ge=1)] = Field(description="Pods in each group.")
    network_topology: NetworkTopologySpec | None = Field(
        default=None, description="How far apart the pods of one group may be."
    )
    min_partitions: Count | None = Field(
        default=None, description="Fewest groups that must be there together."
    )


class VolumeSpec(Model):
    """A volume that every pod of the vcjob mounts."""

    mount_path: str = Field(description="Where the pods mount it.", min_length=1, pattern="^[^:]+$")
    volume_claim_name: str | None = Field(
        default=None, description="Name of the claim to use or to create.", max_length=253
    )
    volume_claim: VolumeClaim | None = Field(
        default=None, description="The claim to create; not together with volumeClaimName."
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
        description="What is done when something happens to the task.",
        json_schema_extra=atomic_list(),
    )
    topology_policy: NumaPolicy | None = Field(
        default=None, description="How the pods are placed on NUMA nodes."
    )
    max_retry: Count | None = Field(
        default=None, description="How often the task may be restarted."
    )
    depends_on: DependsOn | None = Field(
        default=None, description="Tasks that must have started before."
    )
    partition_policy: PartitionPolicySpec | None = Field(
        default=None, description="Groups of equal size inside the task."
    )


class JobSpec(Model):
    """What a vcjob shall run."""

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
        description="The kinds of pods.",
        json_schema_extra=atomic_list(),
    )
    policies: tuple[LifecyclePolicy, ...] | None = Field(
        default=None,
        description="What is done when something happens to any task.",
        json_schema_extra=atomic_list(),
    )
    plugins: dict[str, tuple[str, ...]] | None = Field(
        default=None, description="Volcano plugins by name, each with its arguments."
    )
    running_estimate: Duration | None = Field(
        default=None, description="How long the user expects it to run."
    )
    queue: str | None = Field(
        default=None,
        description="Queue that it waits in.",
        max_length=253,
        pattern=SUBDOMAIN_PATTERN,
    )
    max_retry: Count | None = Field(
        default=None, description="How often it may be restarted before it has failed."
    )
    ttl_seconds_after_finished: Count | None = Field(
        default=None, description="Seconds after its end until it is deleted."
    )
    priority_class_name: str | None = Field(
        default=None,
        description="Priority class of the pods.",
        max_length=253,
        pattern=SUBDOMAIN_PATTERN,
    )
    min_success: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None, description="Fewest pods that must succeed for it to be completed."
    )
    network_topology: NetworkTopologySpec | None = Field(
        default=None, description="How far apart in the network its pods may be."
    )


class JobState(Model):
    """Where a vcjob is, and why."""

    phase: str = Field(default="", description="Phase, as Volcano reports it.")
    reason: str = Field(default="", description="Why, as one CamelCase word.")
    message: str = Field(default="", description="Why, for people.")
    last_transition_time: Time | None = Field(
        default=None, description="When the phase last changed."
    )


class TaskState(Model):
    """How many pods of a task are in each phase."""

    phase: dict[str, Int32] | None = Field(default=None, description="Number of pods by phase.")


class JobCondition(Model):
    """A phase that a vcjob went through; Volcano keys these by status, not by type."""

    status: str = Field(description="The phase.")
    last_transition_time: Time | None = Field(default=None, description="When it was entered.")


class JobStatus(Model):
    """What a vcjob has come to."""

    state: JobState = Field(default=JobState(), description="Where it is, and why.")
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
    retry_count: Count = Field(default=0, description="How often it was restarted.")
    running_duration: Duration | None = Field(default=None, description="How long it ran.")
    controlled_resources: dict[str, str] | None = Field(
        default=None, description="What plugins made for it."
    )
    conditions: tuple[JobCondition, ...] | None = Field(
        default=None,
        description="The phases it went through.",
        json_schema_extra=atomic_list(),
    )
