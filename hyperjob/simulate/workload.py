"""The input of a simulation: clusters, queues and jobs, with the times at which jobs arrive.

Plain values; the readers and the generator make them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.api.names import GROUP

ARRIVAL: Final = f"simulation.{GROUP}/arrival"
"""Annotation of a HyperJob: how long after the start it is created, such as `90m`."""
DURATION: Final = f"simulation.{GROUP}/duration"
"""Annotation of a HyperJob, or of `templateMetadata`: how long its sub-jobs run, such as `2h`."""


class WorkloadError(ValueError):
    """A workload, or a clusters file, cannot be simulated; the text says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One HyperJob that is created `arrival` seconds after the start.

    `duration` is in seconds of undisturbed running, `gpus` its accelerators in all.
    """

    arrival: float
    duration: float
    hyperjob: Object
    gpus: int
    queue: str

    @property
    def key(self) -> str:
        """Return namespace and name."""
        metadata = self.hyperjob["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A member cluster: its idle Cluster object, and its nodes by name, allocatable and number."""

    name: str
    cluster: Object
    nodes: Sequence[tuple[str, Mapping[str, object], int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What breaks, by mean times in hours; 0 never.

    `pod` is the time between failures of one busy node's pods, `node` that of a node, `cluster`
    that of a cluster; a node or a cluster is away for the time of its repair.
    """

    pod: float = 0.0
    node: float = 0.0
    node_repair: float = 4.0
    cluster: float = 0.0
    cluster_repair: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A cluster that cannot be reached from `at` to `until`, in seconds."""

    cluster: str
    at: float
    until: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """All of a simulation but the policy."""

    sites: Sequence[Site]
    queues: Sequence[Object]
    jobs: Sequence[Submission]
    priority_classes: Sequence[Object] = ()
    failures: Failures = field(default_factory=Failures)
    outages: Sequence[Outage] = ()
    seed: int = 0
    startup: float = 30.0
    """Seconds from the placement of a sub-job's pods until they train."""
    checkpoint: float = 1800.0
    """Seconds of work between two checkpoints: what follows the last is lost at a stop."""
    status_period: float = 10.0
    """Seconds between two collections of a Cluster's status: Karmada's default."""
