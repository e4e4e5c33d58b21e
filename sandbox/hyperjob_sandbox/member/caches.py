"""What the simulated Volcano and Karmada watch in a member, and where each thing is found."""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import (
    COMMANDS,
    CONFIG_MAPS,
    HYPERNODES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_EXPORTS,
    VCJOBS,
    key_of,
)
from hyperjob_sandbox.controller import Informers
from hyperjob_sandbox.member.jobpods import GROUP_NAME, JOB_NAME
from hyperjob_sandbox.objects import annotations_of, phase_of

DEPENDENCIES: Final = (
    CONFIG_MAPS,
    SECRETS,
    PERSISTENT_VOLUME_CLAIMS,
    SERVICE_ACCOUNTS,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
)
"""The kinds that follow a vcjob whose pods name them."""
BY_JOB: Final = "job"
BY_GROUP: Final = "group"
BY_NODE: Final = "node"
ENDED: Final = frozenset({"Succeeded", "Failed"})
"""The phases of a pod that runs no more."""


class MemberCaches(Informers):
    """The informers of a member cluster."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube)
        self.pods = self.add(
            PODS,
            indexers={
                BY_JOB: job_keys,
                BY_GROUP: lambda pod: _named(pod, GROUP_NAME),
                BY_NODE: lambda pod: filter(None, [pod["spec"].get("nodeName")]),
            },
        )
        self.jobs = self.add(VCJOBS)
        self.groups = self.add(PODGROUPS)
        self.nodes = self.add(NODES)
        self.hypernodes = self.add(HYPERNODES)
        self.queues = self.add(QUEUES)
        self.commands = self.add(COMMANDS)
        self.priority_classes = self.add(PRIORITY_CLASSES)
        for resource in (NAMESPACES, SERVICE_EXPORTS, *DEPENDENCIES):
            self.add(resource)

    def pods_on(self, node: Object) -> list[str]:
        """Return the keys of the pods that are bound to a node."""
        return [key_of(pod) for pod in self.pods.by_index(BY_NODE, key_of(node))]

    def priority(self, obj: Object) -> int:
        """Return the value of the PriorityClass that a PodGroup names, 0 without one."""
        name = obj["spec"].get("priorityClassName")
        found = self.priority_classes.get(name) if name else None
        return int((found or {}).get("value") or 0)


def holds_node(pod: Object | None) -> bool:
    """Tell whether a pod takes something of a node: it is bound and has not ended."""
    return pod is not None and bool(pod["spec"].get("nodeName")) and phase_of(pod) not in ENDED


def job_keys(pod: Object) -> list[str]:
    """Return the key of the vcjob that a pod belongs to, nothing where there is none."""
    return _named(pod, JOB_NAME)


def _named(pod: Object, annotation: str) -> list[str]:
    """Return the key of what an annotation names in the pod's namespace."""
    name = annotations_of(pod).get(annotation)
    return [f"{pod['metadata']['namespace']}/{name}"] if name else []
