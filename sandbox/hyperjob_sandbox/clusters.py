"""A strict model of the clusters file, of which `examples/clusters.yaml` shows every field."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from hyperjob_core.api.field import ROOT
from hyperjob_core.api.formats import dns1123_label, dns1123_subdomain, label_value, qualified_name
from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import Quantity
from hyperjob_sandbox.processes.images import Image

_CLUSTER_NAME_LIMIT = 48
_USUAL: dict[str, str | int] = {"ephemeral-storage": "100Gi", "pods": 110}
"""What every node has, unless the file says otherwise."""


class SandboxConfigError(ValueError):
    """The clusters file cannot be used; the text names the file, the field and the reason."""


def _checked(check: Callable[[str], list[str]]) -> AfterValidator:
    def validate(value: str) -> str:
        if errors := check(value):
            raise ValueError(errors[0])
        return value

    return AfterValidator(validate)


def _quantity(amount: str | int) -> str | int:
    Quantity.parse(amount)
    return amount


def _valid_images(images: dict[str, str]) -> dict[str, str]:
    for name, image in images.items():
        Image.parse(f"{name}={image}")
    return images


Seconds = Annotated[float, Field(ge=0)]
Subdomain = Annotated[str, _checked(dns1123_subdomain)]
Labels = dict[Annotated[str, _checked(qualified_name)], Annotated[str, _checked(label_value)]]
Amounts = dict[str, Annotated[str | int, AfterValidator(_quantity)]]
Images = Annotated[dict[str, str], AfterValidator(_valid_images)]


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True
    )


class Taint(_Model):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class NodeGroup(_Model):
    """Nodes that are alike."""

    count: int = Field(ge=1, le=5000)
    name: Annotated[str, _checked(dns1123_label)] = "node"
    labels: Labels = Field(default_factory=dict)
    taints: list[Taint] = Field(default_factory=list)
    allocatable: Annotated[Amounts, AfterValidator(lambda amounts: {**_USUAL, **amounts})]
    others: Amounts = Field(default_factory=dict)
    """What a pod of another workload holds on each of the nodes; nothing: there is none."""
    relative_speed: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """How much faster than its duration says a job runs on them in `hyperjob simulate`."""


class HyperNode(_Model):
    """A network domain of Volcano: the nodes, or the HyperNodes of lower tiers, whose names match.

    `*` is a wildcard.
    """

    name: Subdomain
    tier: int = Field(ge=1)
    nodes: list[str] = Field(default_factory=list)
    hyper_nodes: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _members(self) -> Self:
        if not self.nodes and not self.hyper_nodes:
            raise ValueError("nodes or hyperNodes must name a member")
        return self


class Cluster(_Model):
    """A member cluster."""

    name: Annotated[Subdomain, Field(max_length=_CLUSTER_NAME_LIMIT)]
    labels: Labels = Field(default_factory=dict)
    provider: str = ""
    region: str = ""
    zone: str = ""
    relative_speed: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """The `relativeSpeed` of node groups that have none."""
    nodes: list[NodeGroup] = Field(min_length=1)
    hyper_nodes: list[HyperNode] = Field(default_factory=list)

    @model_validator(mode="after")
    def _groups(self) -> Self:
        _refuse_duplicates([group.name for group in self.nodes], "node group")
        _refuse_duplicates([each.name for each in self.hyper_nodes], "HyperNode")
        return self


class Queue(_Model):
    """A Volcano queue of the control plane, propagated to every member."""

    name: Subdomain
    weight: int = Field(default=1, ge=1)
    priority: int = 0
    reclaimable: bool = True
    capability: Amounts | None = None
    parent: str | None = None


class _OfPods(_Model):
    """A rule for the pods whose job, task and cluster match; `*` is a wildcard."""

    job: str = "*"
    task: str = "*"
    cluster: str = "*"

    def matches(self, **names: str) -> bool:
        """Tell whether the rule is for the pods of this job, task and cluster."""
        return all(fnmatchcase(name, getattr(self, field)) for field, name in names.items())


class RunTime(_OfPods):
    """How long the pods run that match; the first match decides."""

    seconds: Seconds


class RunTimes(_Model):
    """How long pods run, before the speed factor."""

    default_seconds: Seconds = 20.0
    jobs: list[RunTime] = Field(default_factory=list)
    annotation: str = "sandbox.hyperjob.volcano.sh/seconds"

    def seconds(self, **names: str) -> float:
        """Return the run time of a pod that has no annotation of its own."""
        found = (rule.seconds for rule in self.jobs if rule.matches(**names))
        return next(found, self.default_seconds)


class Failure(_OfPods):
    """Pods that end with an exit code; `after` seconds of their run time, or at its end."""

    pod: int | None = Field(default=None, ge=0)
    attempt: int | None = Field(default=None, ge=0)
    exit_code: int = Field(default=1, ge=1, le=255)
    after: Seconds | None = None


class LostCluster(_Model):
    """A cluster whose API server stops listening, in seconds since the start."""

    cluster: str
    at: Seconds
    back_at: Seconds | None = None

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.back_at is not None and self.back_at <= self.at:
            raise ValueError("backAt must come after at")
        return self


class VolcanoGlobal(_Model):
    """Volcano Global in the control plane; HyperJob's own queue admission decides without it."""

    enabled: bool = False
    dispatch_period: float = Field(default=1.0, gt=0)


class Karmada(_Model):
    """Settings of the simulated Karmada."""

    cluster_status_seconds: float = Field(default=5.0, gt=0)
    """How often Cluster status is collected; in between it lags."""
    cluster_failure_seconds: Seconds = 2.0
    """How long a cluster must not answer before it is not Ready."""
    resource_models: bool = True
    """Whether Clusters join with Karmada's default resource models (cpu and memory only)."""


class SandboxConfig(_Model):
    """A whole clusters file."""

    clusters: list[Cluster] = Field(min_length=1, max_length=50)
    queues: list[Queue] = Field(default_factory=list)
    run_times: RunTimes = Field(default_factory=RunTimes)
    failures: list[Failure] = Field(default_factory=list)
    lost_clusters: list[LostCluster] = Field(default_factory=list)
    volcano_global: VolcanoGlobal = Field(default_factory=VolcanoGlobal)
    karmada: Karmada = Field(default_factory=Karmada)
    pods: Literal["simulated", "processes"] = "simulated"
    """Whether containers are simulated, or run as processes of this machine."""
    images: Images = Field(default_factory=dict)
    """What replaces images where pods are processes: a virtual environment or a command."""
    speed: float = Field(default=1.0, gt=0)
    """Run times and their failures pass this many times faster."""

    @model_validator(mode="after")
    def _references(self) -> Self:
        names = [cluster.name for cluster in self.clusters]
        _refuse_duplicates(names, "cluster")
        _refuse_duplicates([queue.name for queue in self.queues], "queue")
        for lost in self.lost_clusters:
            if lost.cluster not in names:
                raise ValueError(f"lostClusters: there is no cluster {lost.cluster!r}")
        queues = {"root", *(queue.name for queue in self.queues)}
        for queue in self.queues:
            if queue.parent is not None and queue.parent not in queues:
                raise ValueError(f"queues: there is no queue {queue.parent!r}")
        return self

    def exit_code(self, *, pod: int, attempt: int, **names: str) -> tuple[int, float | None]:
        """Return a pod's exit code (0 is success) and after how many seconds, None at the end."""
        for each in self.failures:
            if (
                each.matches(**names)
                and each.pod in (None, pod)
                and each.attempt in (None, attempt)
            ):
                return each.exit_code, each.after
        return 0, None


def load(path: Path) -> SandboxConfig:
    """Read a clusters file; raises SandboxConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SandboxConfigError(f"{path}: {error.strerror or error}") from None
    return parse(text, source=str(path))


def changed(config: SandboxConfig, **changes: object) -> SandboxConfig:
    """Return the configuration with other fields; raises SandboxConfigError."""
    return _validated({**dict(config), **changes})


def parse(text: str, *, source: str = "clusters file") -> SandboxConfig:
    """Read the text of a clusters file; raises SandboxConfigError with every wrong field."""
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}" if mark is not None else ""
        raise SandboxConfigError(
            f"{source}{where}: not YAML: {getattr(error, 'problem', error)}"
        ) from None
    if not isinstance(raw, dict):
        raise SandboxConfigError(f"{source}: a mapping with the key `clusters` is expected")
    return _validated(raw, f"{source}: ")


def _validated(raw: Object, prefix: str = "") -> SandboxConfig:
    try:
        return SandboxConfig.model_validate(raw)
    except ValidationError as error:
        problems = "; ".join(
            f"{ROOT.below(each['loc']) if each['loc'] else 'file'}: "
            f"{each['msg'].removeprefix('Value error, ')}"
            for each in error.errors()
        )
        raise SandboxConfigError(prefix + problems) from None


def _refuse_duplicates(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{what} {twice[0]!r} is there twice")
