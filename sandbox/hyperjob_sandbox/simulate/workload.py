"""The input of a simulation: clusters, queues and jobs with their times of arrival.

The readers and the generator make these values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GROUP
from hyperjob_engine.model.members import Labels
from hyperjob_queueing.consumed import HALF_LIFE

ARRIVAL: Final = f"simulation.{GROUP}/arrival"
"""Annotation of a HyperJob: the time of its creation after the start, such as `90m`."""
DURATION: Final = f"simulation.{GROUP}/duration"
"""Annotation of a HyperJob, or of `templateMetadata`: the duration of its sub-jobs (`2h`)."""


Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class WorkloadError(ValueError):
    """A workload or a clusters file cannot be simulated; the text has the place and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A HyperJob that is created `arrival` seconds after the start.

    `duration` is its running time in seconds without stops at speed 1, `gpus` the sum of its
    accelerators.
    """

    arrival: float
    duration: float
    hyperjob: Object
    gpus: int
    queue: str

    @property
    def key(self) -> str:
        """Return namespace/name."""
        metadata = self.hyperjob["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"


class NodeGroup(NamedTuple):
    """A number of equal nodes.

    `speed` is the work that a sub-job does there in a second, in seconds of its duration.
    """

    name: str
    allocatable: Mapping[str, object]
    number: int
    labels: Labels = ()
    speed: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A member cluster: its idle Cluster object, and its nodes."""

    name: str
    cluster: Object
    nodes: Sequence[NodeGroup]


class ScenarioPart(BaseModel):
    """A part of a scenario file, whose fields are in camel case."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True
    )


class Failures(ScenarioPart):
    """The mean times between failures, in hours; 0 is no failures.

    `pod` is the time between failures of the pods of a busy node, `node` of a node, `cluster` of a
    cluster; a failed node or cluster is back after the time of its repair.
    """

    pod: Amount = 0.0
    node: Amount = 0.0
    node_repair: Amount = 4.0
    cluster: Amount = 0.0
    cluster_repair: Amount = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The outage of a cluster from `at` to `until`, in seconds."""

    cluster: str
    at: float
    until: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The input of a simulation, without the policy."""

    sites: Sequence[Site]
    queues: Sequence[Object]
    jobs: Sequence[Submission]
    priority_classes: Sequence[Object] = ()
    failures: Failures = field(default_factory=Failures)
    outages: Sequence[Outage] = ()
    seed: int = 0
    startup: float = 30.0
    """Seconds from the placement of a sub-job's pods to the start of their training."""
    checkpoint: float = 1800.0
    """Seconds of work between two checkpoints: a stop loses the work since the last one."""
    half_life: float = HALF_LIFE.total_seconds()
    """Seconds after which what a queue has consumed counts half; 0: queues remember nothing."""
    status_period: float = 10.0
    """Seconds between two collections of a Cluster's status: Karmada's default."""
