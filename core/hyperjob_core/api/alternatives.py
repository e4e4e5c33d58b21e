"""The schema of the alternatives of a replicatedJob: its sub-jobs for another accelerator."""

from typing import Annotated

from pydantic import Field

from hyperjob_core.api.choices import SplitMode
from hyperjob_core.api.limits import MAX_SUB_JOBS
from hyperjob_core.api.markers import LABEL_PATTERN, Duration, Quantity, atomic_list, list_map
from hyperjob_core.api.model import Count, Int32, Model


class SplitPolicy(Model):
    """How accelerators are shared out over the sub-jobs of a replicated job."""

    mode: SplitMode | None = Field(
        default=None,
        description="static: the sub-jobs share the accelerators equally. auto: the controller"
        " decides number and size of the sub-jobs by the free resources of the clusters.",
    )
    accelerators: Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)] | None = Field(
        default=None,
        description="Exact number of accelerators of all sub-jobs together.",
    )
    accelerator_type: str | None = Field(
        default=None,
        description="Resource name of the accelerator, as the pods request it.",
        min_length=1,
        max_length=316,
    )


class OverlaidVariable(Model):
    """A variable of a container in one alternative."""

    name: str = Field(description="Name of the variable.", min_length=1, max_length=1024)
    value: str | None = Field(default=None, description="Value of the variable.")


class OverlaidResources(Model):
    """The resources of a container in one alternative."""

    limits: dict[str, Quantity] | None = Field(
        default=None, description="Limits by the name of the resource."
    )
    requests: dict[str, Quantity] | None = Field(
        default=None, description="Requests by the name of the resource; the limits if unset."
    )


class OverlaidContainer(Model):
    """What one alternative changes in a container."""

    name: str = Field(description="Name of a container of the task.", min_length=1, max_length=63)
    image: str | None = Field(default=None, description="Image, instead of the template's.")
    command: tuple[str, ...] | None = Field(
        default=None,
        description="Command, instead of the template's.",
        json_schema_extra=atomic_list(),
    )
    args: tuple[str, ...] | None = Field(
        default=None,
        description="Arguments, instead of the template's.",
        json_schema_extra=atomic_list(),
    )
    env: tuple[OverlaidVariable, ...] | None = Field(
        default=None,
        description="Variables, which replace those of the same name.",
        json_schema_extra=list_map("name"),
    )
    resources: OverlaidResources | None = Field(
        default=None, description="Requests and limits, instead of all of the template's."
    )


class OverlaidPod(Model):
    """What one alternative changes in the pods of a task."""

    node_selector: dict[str, str] | None = Field(
        default=None, description="Labels of nodes, in addition to the template's."
    )
    containers: tuple[OverlaidContainer, ...] | None = Field(
        default=None,
        description="What changes in containers.",
        json_schema_extra=list_map("name"),
    )


class OverlaidPodTemplate(Model):
    """What one alternative changes in the pod template of a task."""

    spec: OverlaidPod | None = Field(default=None, description="What changes in the pods.")


class OverlaidTask(Model):
    """What one alternative changes in a task."""

    name: str = Field(description="Name of a task of the template.", min_length=1, max_length=63)
    replicas: Count | None = Field(default=None, description="Number of pods.")
    min_available: Count | None = Field(
        default=None, description="Fewest pods of the task that must start together."
    )
    template: OverlaidPodTemplate | None = Field(
        default=None, description="What changes in the pods."
    )


class OverlaidJobSpec(Model):
    """What one alternative changes in the template."""

    min_available: Count | None = Field(
        default=None, description="Fewest pods that must start together."
    )
    running_estimate: Duration | None = Field(
        default=None, description="Running time that the user estimates with this alternative."
    )
    tasks: tuple[OverlaidTask, ...] | None = Field(
        default=None, description="What changes in tasks.", json_schema_extra=list_map("name")
    )


class Alternative(Model):
    """The sub-jobs of a replicated job in another shape, such as on another accelerator."""

    name: str = Field(
        description="Name of the alternative, unique in the replicated job.",
        min_length=1,
        max_length=63,
        pattern=LABEL_PATTERN,
    )
    replicas: Annotated[Int32, Field(ge=1, le=MAX_SUB_JOBS)] | None = Field(
        default=None, description="Number of sub-jobs, instead of that of the replicated job."
    )
    cluster_names: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] | None = Field(
        default=None,
        description="Clusters, instead of those of the replicated job.",
        min_length=1,
        max_length=256,
        json_schema_extra=atomic_list(),
    )
    split_policy: SplitPolicy | None = Field(
        default=None, description="Split policy, instead of that of the replicated job."
    )
    template_spec: OverlaidJobSpec | None = Field(
        default=None, description="What changes in the template."
    )
