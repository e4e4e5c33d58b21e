"""The machine and the place of a pod that is a process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.events import EventKind
from hyperjob_sandbox.processes.accelerators import Slots
from hyperjob_sandbox.processes.environment import Sources
from hyperjob_sandbox.processes.hostclient import ProcessHost
from hyperjob_sandbox.processes.images import Image, this_python
from hyperjob_sandbox.processes.network import Host, Network
from hyperjob_sandbox.processes.volumes import Folders


@dataclass(slots=True, kw_only=True, eq=False)
class Machine:
    """The parts that all clusters of a sandbox share: process host, network, folders, images."""

    host: ProcessHost
    network: Network
    folder: Path
    images: Sequence[Image] = ()
    speed: float = 1.0

    @property
    def description(self) -> str:
        """Return a text about how pods run on this machine."""
        if self.host.permitted:
            names = "each pod has its own hosts file, mounts and host name."
        else:
            names = (
                f"this machine permits no mount namespace ({self.host.why_not}): addresses and"
                " folders"
                " replace names of pods and mount paths in commands and variables."
            )
        mapped = ", ".join(each.pattern for each in self.images)
        images = f"images other than {mapped} are" if mapped else "images are"
        return (
            f"Pods are processes of this machine: {images} ignored, commands run in the environment"
            f" of {this_python().folders[0]}.\nPods listen on addresses of 127.0.0.0/8; {names}"
        )


@dataclass(slots=True, kw_only=True, eq=False)
class PodPlace:
    """The parts of machine and cluster that a pod uses."""

    pod: Object
    cluster: str
    machine: Machine
    slots: Slots
    folders: Folders
    sources: Callable[[], Sources]
    event: Callable[[EventKind, str, str], None]
    """Records an Event of the pod: type, reason, note."""
    volumes: Mapping[str, Path] = field(default_factory=dict)
    address: str = ""

    @property
    def host(self) -> ProcessHost:
        """Return the parent of all container processes."""
        return self.machine.host

    @property
    def network(self) -> Network:
        """Return the network of all pods."""
        return self.machine.network

    @property
    def images(self) -> Sequence[Image]:
        """Return the replacements of images."""
        return self.machine.images

    @property
    def speed(self) -> float:
        """Return the factor by which back-offs are shorter."""
        return self.machine.speed

    @property
    def namespace(self) -> str:
        """Return the pod's namespace."""
        return str(self.pod["metadata"]["namespace"])

    @property
    def hostname(self) -> str:
        """Return the pod's host name."""
        return str(self.pod["spec"].get("hostname") or self.pod["metadata"]["name"])

    @property
    def grace_seconds(self) -> float:
        """Return the seconds between SIGTERM and SIGKILL."""
        grace = self.pod["metadata"].get("deletionGracePeriodSeconds")
        if grace is None:
            grace = self.pod["spec"].get("terminationGracePeriodSeconds")
        return 30.0 if grace is None else float(grace)

    @property
    def identity(self) -> Host:
        """Return the pod's entry in the network."""
        return Host(
            cluster=self.cluster,
            namespace=self.namespace,
            name=self.hostname,
            service=str(self.pod["spec"].get("subdomain") or ""),
        )

    def addressed(self, text: str) -> str:
        """Return a text with addresses in place of names of pods."""
        return self.network.addressed(text, self.identity)
