"""The pod template of one node of a TrainJob: its containers, its rank and its variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.trainer import (
    COMPLETION_INDEX,
    DATASET_STEP,
    JOBSET_NAME,
    MODEL_STEP,
    NODE,
    REPLICATED_JOB_NAME,
)
from hyperjob_core.api.wire import at, mapping, objects, string, string_map, strings
from hyperjob_engine.devices import is_device
from hyperjob_engine.resources import accelerator_of, parse_resources
from hyperjob_trainjobs.merge import merged, pod_of, step_of, upserted

INITIALIZERS: Final[Mapping[str, str]] = {DATASET_STEP: "dataset", MODEL_STEP: "model"}
"""The steps before the training, each with its field below `spec.initializer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What the pods of a TrainJob have in common."""

    name: str
    """Name of the TrainJob."""
    job: str
    """Name of the replicatedJob that trains."""
    nodes: int
    policy: Object
    """`spec.mlPolicy` of the runtime."""
    trainer: Object
    """`spec.trainer` of the TrainJob."""
    initializer: Object
    """`spec.initializer` of the TrainJob."""

    @property
    def framework(self) -> str:
        """Return `torch`, `jax`, `mpi`, or an empty text for a plain runtime."""
        return next((name for name in ("torch", "jax", "mpi") if name in self.policy), "")


def pod_template(template: Object, job: Object, training: Training, rank: int) -> Object:
    """Return the template of the pod with a rank."""
    metadata = mapping(at(job, "template", "spec", "template", "metadata"))
    return {
        "metadata": {
            "labels": string_map(metadata.get("labels")) | _labels(training, rank),
            "annotations": string_map(metadata.get("annotations")) | {COMPLETION_INDEX: str(rank)},
        },
        "spec": _pod_spec(template, job, training, rank),
    }


def _labels(training: Training, rank: int) -> dict[str, str]:
    """Return the labels by which Trainer's users find the pod of a node."""
    return {
        JOBSET_NAME: training.name,
        REPLICATED_JOB_NAME: training.job,
        COMPLETION_INDEX: str(rank),
    }


def _pod_spec(template: Object, job: Object, training: Training, rank: int) -> Object:
    """Return the pod spec of the node with a rank.

    The initializers of the runtime `template` are its first init containers. Every container has
    the rank; those of `_targets` have the framework's variables too, in place of equal ones.
    """
    spec = dict(pod_of(job))
    spec.pop("schedulerName", None)
    spec["restartPolicy"] = "Never"
    before = [
        (step, each)
        for each in objects(at(template, "spec", "replicatedJobs"))
        if (step := step_of(each)) in INITIALIZERS
    ]
    index: Object = {"name": "JOB_COMPLETION_INDEX", "value": str(rank)}
    framework = _framework(training, job, rank)
    targets = _targets(training)

    def equipped(container: Object) -> Object:
        variables = objects(container.get("env"))
        if string(container.get("name")) in targets:
            variables = upserted(variables, framework)
        return {**container, "env": upserted([index], variables)}

    own = [equipped(each) for each in objects(spec.get("initContainers"))]
    first = [equipped(_initializer(each, step, training)) for step, each in before]
    if own or first:
        spec["initContainers"] = [*first, *own]
    spec["containers"] = [
        equipped(_trainer(each, training) if each.get("name") == NODE else each)
        for each in objects(spec.get("containers"))
    ]
    volumes = [volume for _, each in before for volume in objects(pod_of(each).get("volumes"))]
    volumes = upserted([*volumes, *_claims(template)], objects(spec.get("volumes")))
    if volumes:
        spec["volumes"] = volumes
    return spec


def _trainer(container: Object, training: Training) -> Object:
    """Return the container `node` with the values of `spec.trainer`."""
    given = training.trainer
    changes: Object = {
        name: given[name] for name in ("image", "command", "args") if given.get(name) is not None
    }
    variables = upserted(objects(container.get("env")), objects(given.get("env")))
    changes["env"] = variables
    if resources := mapping(given.get("resourcesPerNode")):
        changes["resources"] = merged(mapping(container.get("resources")), resources)
    return {**container, **changes}


def _initializer(job: Object, step: str, training: Training) -> Object:
    """Return the container of an initializer with the values of `spec.initializer`."""
    container = next(
        (each for each in objects(pod_of(job).get("containers")) if each.get("name") == step), {}
    )
    given = mapping(training.initializer.get(INITIALIZERS[step]))
    variables = objects(container.get("env"))
    if given.get("storageUri") is not None:
        variables = upserted(
            variables, [{"name": "STORAGE_URI", "value": string(given["storageUri"])}]
        )
    found = {**container, "env": upserted(variables, objects(given.get("env")))}
    if secret := string(at(given, "secretRef", "name")):
        sources = objects(container.get("envFrom"))
        found["envFrom"] = [*sources, {"secretRef": {"name": secret}}]
    return found


def _claims(template: Object) -> list[Object]:
    """Return the volumes of JobSet's claims: each pod has its own until the HyperJob is deleted."""
    return [
        {
            "name": string(at(claim, "metadata", "name")),
            "ephemeral": {"volumeClaimTemplate": {"spec": mapping(claim.get("spec"))}},
        }
        for policy in objects(at(template, "spec", "volumeClaimPolicies"))
        for claim in objects(policy.get("templates"))
    ]


def _targets(training: Training) -> frozenset[str]:
    """Return the containers that get the variables of the framework."""
    more = objects(at(training.policy, "torch", "envInjection", "targets"))
    return frozenset(
        {NODE, *(name for each in more for name in strings(each.get("containerNames")))}
    )


def _framework(training: Training, job: Object, rank: int) -> list[Object]:
    """Return Trainer's variables for torchrun; the plugin adds the address of the first node.

    With the static rendezvous the rank of a node is its number, as in Trainer.
    """
    if training.framework != "torch":
        return []
    values = {
        "PET_NNODES": str(training.nodes),
        "PET_NPROC_PER_NODE": _processes_per_node(training, job),
        "PET_NODE_RANK": str(rank),
    }
    given = {string(each.get("name")) for each in objects(training.trainer.get("env"))}
    if "PET_RDZV_BACKEND" not in given:
        values["PET_RDZV_BACKEND"] = "static"
    return [{"name": name, "value": value} for name, value in values.items()]


def _processes_per_node(training: Training, job: Object) -> str:
    """Return the processes of a node: as asked, else by its devices, else one for each CPU.

    With GPUs it is `auto`, by which torchrun counts them; parts of GPUs it would count wrongly.
    """
    asked = training.trainer.get("numProcPerNode")
    if asked is not None:
        return str(asked)
    containers = objects(pod_of(job).get("containers"))
    node = next((each for each in containers if each.get("name") == NODE), {})
    resources = _trainer(node, training).get("resources")
    requests = parse_resources(at(resources, "requests"))
    limits = parse_resources(at(resources, "limits"))
    device = accelerator_of(limits | requests)
    if device is not None and is_device(device):
        number = (limits | requests)[device] // NANO
        return "auto" if device.endswith("/gpu") else str(max(1, number))
    cpu = requests.get("cpu") or limits.get("cpu", 0)
    return str(max(1, -(-cpu // NANO)))
