"""The pod template of one node of a TrainJob, and the launcher of MPI."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from hyperjob_core.api.merge import merged
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import child_name
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.trainer import (
    ANCESTOR,
    COMPLETION_INDEX,
    DATASET_STEP,
    HOSTFILE,
    JOBSET_NAME,
    MODEL_STEP,
    NODE,
    REPLICATED_JOB_NAME,
)
from hyperjob_core.api.wire import at, integer, mapping, objects, string, string_map, strings
from hyperjob_engine.resources import (
    accelerator_of,
    devices_in,
    is_device,
    is_part,
    parse_resources,
)


def upserted(items: list[Object], more: list[Object]) -> list[Object]:
    """Return named items with others, which replace those of the same name in their places."""
    found = {string(each.get("name")): each for each in items}
    return list((found | {string(each.get("name")): each for each in more}).values())


def patched(runtime: Object, trainjob: Object) -> Object:
    """Return the template of a runtime (metadata and spec) with the patches of a TrainJob."""
    template = mapping(at(runtime, "spec", "template"))
    for patch in objects(at(trainjob, "spec", "runtimePatches")):
        template = merged(template, mapping(at(patch, "trainingRuntimeSpec", "template")))
    return template


def step_of(job: Object) -> str:
    """Return the step of a replicatedJob: trainer, dataset-initializer, model-initializer."""
    return string_map(at(job, "template", "metadata", "labels")).get(ANCESTOR, "")


def pod_of(job: Object) -> Object:
    """Return the pod spec of a replicatedJob."""
    return mapping(at(job, "template", "spec", "template", "spec"))


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
    if device is not None and (is_device(device) or is_part(device)):
        number = devices_in(limits | requests)
        return "auto" if device.endswith("/gpu") else str(max(1, number))
    cpu = requests.get("cpu") or limits.get("cpu", 0)
    return str(max(1, -(-cpu // NANO)))


RESERVED: Final = frozenset(
    {
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
    }
)
"""The variables of the launcher that Trainer sets."""
_FOLDER: Final = "/etc/mpi"
_VOLUME: Final = "mpi-hostfile"
_WAIT: Final = """\
for host in "$@"; do
  until ssh -o BatchMode=yes -o ConnectTimeout=5 "$host" true; do sleep 1; done
done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiTraining:
    """The launcher and the nodes of an MPI training."""

    launcher: Object
    node: Object
    """The replicatedJobs of the runtime."""
    nodes: int
    """Number of pods of `node`."""
    slots: int
    """Processes of each host."""
    keys: str
    """Folder of the SSH keys."""
    launches_itself: bool
    """Whether the launcher trains too."""

    @classmethod
    def of(cls, trainjob: Object, policy: Object, launcher: Object, node: Object) -> Self:
        """Return the shape of a training from `mlPolicy.mpi` and the jobs of its runtime."""
        given, trainer = mapping(policy.get("mpi")), mapping(at(trainjob, "spec", "trainer"))
        itself = given.get("runLauncherAsNode") is True
        asked = integer(trainer.get("numNodes"))
        nodes = integer(at(node, "template", "spec", "parallelism")) or 1
        if asked is not None:
            nodes = max(asked - 1, 1) if itself else asked
        return cls(
            launcher=launcher,
            node=node,
            nodes=nodes,
            slots=_slots(given, trainer, (launcher, node)),
            keys=string(given.get("sshAuthMountPath")) or "/root/.ssh",
            launches_itself=itself,
        )

    @property
    def pods(self) -> int:
        """Return the number of all pods, the launcher's included."""
        return 1 + self.nodes

    def plugins(self) -> Mapping[str, list[str]]:
        """Return Volcano's plugins of the vcjob."""
        return {
            "ssh": [f"--ssh-key-file-path={self.keys}"],
            "svc": ["--publish-not-ready-addresses=true", "--disable-network-policy=true"],
        }

    def tasks(self, template: Object, training: Training) -> Iterator[Object]:
        """Yield the launcher's task, whose end completes the sub-job, and one for each node."""
        name = string(self.launcher.get("name"))
        hosts = _hosts(training.name, name, NODE, self.nodes)
        targets = [*_hosts(training.name, name, name, 1), *hosts] if self.launches_itself else hosts
        pod = pod_template(template, self.launcher, training, 0)
        yield {
            "name": f"{name}-0",
            "replicas": 1,
            "minAvailable": 1,
            "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
            "template": self._launched(pod, targets, hosts),
        }
        given = training.trainer if self.launches_itself else {}
        kept: Object = {key: given[key] for key in ("env", "resourcesPerNode") if key in given}
        theirs = replace(training, job=NODE, trainer=kept)
        for rank in range(self.nodes):
            pod = pod_template(template, self.node, theirs, rank)
            yield {"name": f"{NODE}-{rank}", "replicas": 1, "minAvailable": 1, "template": pod}

    def _launched(self, pod: Object, targets: list[str], waits_for: list[str]) -> Object:
        """Return the launcher's pod with its hostfile, which mpirun finds by its variables."""
        lines = "".join(f"{host} slots={self.slots}\n" for host in targets)
        metadata = {**pod["metadata"]}
        metadata["annotations"] = {**metadata["annotations"], HOSTFILE: lines}
        spec = {**pod["spec"]}
        item = {
            "path": "hostfile",
            "fieldRef": {"fieldPath": f"metadata.annotations['{HOSTFILE}']"},
            "mode": 0o444,
        }
        volume = {"name": _VOLUME, "downwardAPI": {"items": [item]}}
        spec["volumes"] = upserted(objects(spec.get("volumes")), [volume])
        spec["containers"] = [
            self._equipped(each) if each.get("name") == NODE else each
            for each in objects(spec["containers"])
        ]
        if self._waits():
            first = next(each for each in spec["containers"] if each.get("name") == NODE)
            waiting = {name: value for name, value in first.items() if name in _SAME}
            waiting |= {"name": "wait-for-nodes", "command": ["sh", "-c", _WAIT, "sh", *waits_for]}
            spec["initContainers"] = [*objects(spec.get("initContainers")), waiting]
        return {**pod, "metadata": metadata, "spec": spec}

    def _waits(self) -> bool:
        """Return whether the launcher starts after its nodes are Ready."""
        return any(
            (each.get("name"), each.get("status")) == (NODE, "Ready")
            for each in objects(self.launcher.get("dependsOn"))
        )

    def _equipped(self, container: Object) -> Object:
        """Return the launcher's container with mpirun's variables and the mounted hostfile."""
        values = {
            "OMPI_MCA_orte_default_hostfile": f"{_FOLDER}/hostfile",
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
            "OMPI_MCA_orte_set_default_slots": str(self.slots),
            "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        }
        variables = [{"name": name, "value": value} for name, value in values.items()]
        mount = {"name": _VOLUME, "mountPath": _FOLDER}
        return {
            **container,
            "env": upserted(objects(container.get("env")), variables),
            "volumeMounts": [*objects(container.get("volumeMounts")), mount],
        }


_SAME: Final = frozenset(
    {"image", "imagePullPolicy", "env", "envFrom", "securityContext", "resources", "volumeMounts"}
)
"""The fields of the launcher's container that the container which waits for its nodes shares."""


def _hosts(name: str, group: str, job: str, number: int) -> list[str]:
    """Return the host names that Volcano gives to the pods of a job: one task has one pod."""
    vcjob = child_name(name, group, 0)
    return [f"{vcjob}-{job}-{rank}-0.{vcjob}" for rank in range(number)]


def _slots(given: Object, trainer: Object, jobs: tuple[Object, ...]) -> int:
    """Return the processes of each host: as asked, else the GPUs of a node, else those of `mpi`."""
    asked = integer(trainer.get("numProcPerNode"))
    if asked is not None:
        return asked
    usual = integer(given.get("numProcPerNode")) or 1
    if usual != 1:
        return usual
    found = [
        mapping(each.get("resources"))
        for job in jobs
        for each in objects(pod_of(job).get("containers"))
        if each.get("name") == NODE and "resources" in each
    ]
    own = mapping(trainer.get("resourcesPerNode"))
    resources = merged(next(iter(found), {}), own)
    amounts = parse_resources(resources.get("limits")) | parse_resources(resources.get("requests"))
    device = accelerator_of(amounts)
    return max(1, devices_in(amounts)) if device is not None and is_device(device) else 1
