"""The HyperJob, version v1alpha1: what a user writes and reads back.

Fields that the Go controller's API has keep their names, types and defaults, so its manifests
work unchanged; all others are optional.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from hyperjob.api.batch import JobSpec
from hyperjob.api.choices import (
    ClusterPolicy,
    DependencyStatus,
    FailedPhase,
    FailurePolicyAction,
    SplitMode,
    SuccessOperator,
)
from hyperjob.api.limits import MAX_REPLICATED_JOBS, MAX_SUB_JOBS
from hyperjob.api.markers import LABEL_PATTERN, SUBDOMAIN_PATTERN, atomic_list, list_map, rules
from hyperjob.api.model import Bool, Count, Int32, Model, ObjectMeta
from hyperjob.api.names import API_VERSION, KIND
from hyperjob.api.phases import Phase
from hyperjob.api.plugins import PLUGINS
from hyperjob.api.status import (
    ClusterStatus,
    HandledRequests,
    HyperJobState,
    HyperJobStatus,
    JobStatus,
    ReplicatedJobStatus,
)

__all__ = [
    "Checkpoint",
    "ClusterPolicy",
    "ClusterStatus",
    "DependencyStatus",
    "DependsOn",
    "FailedPhase",
    "FailurePolicy",
    "FailurePolicyAction",
    "FailurePolicyRule",
    "HandledRequests",
    "HyperJob",
    "HyperJobSpec",
    "HyperJobState",
    "HyperJobStatus",
    "JobStatus",
    "Phase",
    "ReplicatedJob",
    "ReplicatedJobStatus",
    "SplitMode",
    "SplitPolicy",
    "SuccessOperator",
    "SuccessPolicy",
    "TemplateMetadata",
]


class SplitPolicy(Model):
    """How a replicated job is split over clusters."""

    mode: SplitMode | None = Field(
        default=None,
        description="static: accelerators are shared equally among the sub-jobs. auto: number and"
        " size of the sub-jobs follow what the clusters have free.",
    )
    accelerators: Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)] | None = Field(
        default=None,
        description="Accelerators of all sub-jobs together; never more and never fewer.",
    )
    accelerator_type: str | None = Field(
        default=None,
        description="Resource name of the accelerator, as the pods request it.",
        min_length=1,
        max_length=316,
    )


class DependsOn(Model):
    """A replicated job that must have got far enough before this one starts."""

    name: str = Field(
        description="Name of a replicated job earlier in the list.", min_length=1, max_length=63
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
        " || self.replicas == 1"
    ),
    "replicas must be unset if splitPolicy.mode is auto: the split decides it",
)
_REQUIRED_NEEDS_CLUSTERS = (
    "self.clusterPolicy != 'Required' || (has(self.clusterNames) && size(self.clusterNames) > 0)",
    "clusterNames must be set if clusterPolicy is Required",
)
_NOT_ON_ITSELF = (
    "!has(self.dependsOn) || self.dependsOn.all(d, d.name != self.name)",
    "a replicated job must not depend on itself",
)


class ReplicatedJob(Model):
    """Sub-jobs made from one template, each a vcjob in one cluster."""

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
    template_spec: JobSpec = Field(description="The vcjob that every sub-job is made from.")
    split_policy: SplitPolicy | None = Field(
        default=None, description="How accelerators are shared out; unset: the template as it is."
    )
    replicas: Annotated[Int32, Field(ge=1, le=MAX_SUB_JOBS)] = Field(
        default=1, description="Number of sub-jobs; decided by the split if splitPolicy is auto."
    )
    cluster_names: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] | None = Field(
        default=None,
        description="Clusters to try first, in this order. Others are used only if none of these"
        " has room, and never if clusterPolicy is Required.",
        max_length=256,
        json_schema_extra=atomic_list(),
    )
    cluster_policy: ClusterPolicy = Field(
        default=ClusterPolicy.PREFERRED,
        description="Whether clusterNames is a preference or the only clusters allowed.",
    )
    depends_on: tuple[DependsOn, ...] | None = Field(
        default=None,
        description="Replicated jobs that must have got far enough before this one starts.",
        max_length=16,
        json_schema_extra=list_map("name"),
    )


class FailurePolicyRule(Model):
    """One case of failure and what is done about it."""

    action: FailurePolicyAction = Field(description="What is done.")
    on_job_phases: tuple[FailedPhase, ...] | None = Field(
        default=None,
        description="Phases of a sub-job that the rule answers. If this and onClusterLost are"
        " unset, it answers every failure.",
        max_length=8,
        json_schema_extra=atomic_list(),
    )
    on_cluster_lost: Bool | None = Field(
        default=None, description="Whether the rule answers the loss of a sub-job's cluster."
    )
    target_replicated_jobs: (
        tuple[Annotated[str, Field(min_length=1, max_length=63)], ...] | None
    ) = Field(
        default=None,
        description="Replicated jobs that the rule is for; unset: all.",
        max_length=256,
        json_schema_extra=atomic_list(),
    )


class FailurePolicy(Model):
    """What is done when sub-jobs fail or clusters are lost."""

    max_restarts: Count = Field(
        default=0,
        description="Restarts and moves in all, of the HyperJob and of its sub-jobs together.",
    )
    rules: tuple[FailurePolicyRule, ...] | None = Field(
        default=None,
        description="Cases, the first that matches decides. A failure that no rule matches"
        " restarts the HyperJob while maxRestarts allows it, and fails it otherwise.",
        max_length=64,
        json_schema_extra=atomic_list(),
    )


class SuccessPolicy(Model):
    """Which sub-jobs must complete for the HyperJob to be completed."""

    operator: SuccessOperator = Field(
        default=SuccessOperator.ALL, description="Whether all sub-jobs or any one must complete."
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
    """Where the program keeps its checkpoints, and how long it takes to save one."""

    model_config = ConfigDict(json_schema_extra=rules(_ONE_PLACE, _PATH_OF_CLAIM))

    directory: str | None = Field(
        default=None,
        description="Absolute path in the containers, or URL of an object store, where the"
        " checkpoints are. The templates mount it themselves.",
        min_length=1,
        max_length=1024,
    )
    persistent_volume_claim: str | None = Field(
        default=None,
        description="Name of a PersistentVolumeClaim in the namespace of the HyperJob, which is"
        " mounted at `path` in all containers of the sub-jobs.",
        min_length=1,
        max_length=253,
        pattern=SUBDOMAIN_PATTERN,
    )
    path: str | None = Field(
        default=None,
        description="Absolute path at which the claim is mounted; /checkpoints if unset.",
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
        description="Seconds from one checkpoint to the next, as the program is expected to save"
        " them.",
    )


class HyperJobSpec(Model):
    """What a HyperJob shall run, and how."""

    replicated_jobs: tuple[ReplicatedJob, ...] = Field(
        description="The jobs that make up the HyperJob, each a template and a number of sub-jobs.",
        min_length=1,
        max_length=MAX_REPLICATED_JOBS,
        json_schema_extra=list_map("name"),
    )
    min_available: Count | None = Field(
        default=None,
        description="Sub-jobs that must be admitted and placed together before any starts; with"
        " fewer running, the HyperJob is Degraded. Unset: all.",
    )
    max_domains: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None,
        description="Most clusters that all sub-jobs together may be spread over; 1 keeps them in"
        " one cluster. Unset: no limit.",
    )
    plugins: dict[str, tuple[str, ...]] | None = Field(
        default=None,
        description=f"HyperJob plugins by name, each with its arguments: {', '.join(PLUGINS)}."
        " They set up a framework over all sub-jobs.",
    )
    suspend: Bool | None = Field(
        default=None,
        description="true: the sub-jobs are taken back from the clusters and their quota is"
        " returned; false: they run again.",
    )
    failure_policy: FailurePolicy | None = Field(
        default=None,
        description="What is done about failures; unset: nothing is restarted, and the HyperJob"
        " ends when every sub-job has ended.",
    )
    success_policy: SuccessPolicy | None = Field(
        default=None, description="When the HyperJob is completed; unset: all sub-jobs completed."
    )
    quorum: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None,
        description="Fewest sub-jobs that must train. Set, a sub-job that fails or whose cluster is"
        " lost is made again alone while the others train on, and no sub-job waits for the others"
        " once one runs. Unset: all sub-jobs are one world.",
    )
    checkpoint: Checkpoint | None = Field(
        default=None,
        description="Where the checkpoints are, and how long a pod has to save one; set, every"
        " planned stop waits until all sub-jobs have ended, and all start from one step.",
    )
    ttl_seconds_after_finished: Count | None = Field(
        default=None, description="Seconds after its end until the HyperJob is deleted."
    )


class HyperJob(Model):
    """One training job that is split over several clusters and runs as one."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: ObjectMeta = ObjectMeta()
    spec: HyperJobSpec = Field(description="What shall run, and how.")
    status: HyperJobStatus = Field(default=HyperJobStatus(), description="What it has come to.")
