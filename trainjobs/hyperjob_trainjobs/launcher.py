"""An MPI training in one sub-job: a launcher, with which it ends, and nodes that SSH reaches.

Volcano's plugin ssh gives all pods of a vcjob one key, and its plugin svc the host names, which are
known before any pod exists: the launcher mounts them as hostfile from its own annotation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import child_name
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.trainer import HOSTFILE, NODE
from hyperjob_core.api.wire import at, integer, mapping, objects, string
from hyperjob_engine.devices import is_device
from hyperjob_engine.resources import accelerator_of, parse_resources
from hyperjob_trainjobs.merge import merged, pod_of, upserted
from hyperjob_trainjobs.pods import Training, pod_template

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
    return max(1, amounts[device] // NANO) if device is not None and is_device(device) else 1
