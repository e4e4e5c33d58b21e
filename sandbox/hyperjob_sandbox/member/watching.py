"""What is watched in a member, by the simulated Volcano and Karmada, and where each thing is found.

It must never write.
"""

from collections.abc import Iterable
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import Kube
from hyperjob.kube.resources import (
    COMMANDS,
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_EXPORTS,
    VCJOBS,
)
from hyperjob_sandbox.controller import Informers
from hyperjob_sandbox.member.jobpods import GROUP_NAME, JOB_NAME

BY_JOB: Final = "job"
BY_GROUP: Final = "group"
BY_NODE: Final = "node"


class MemberCaches(Informers):
    """The informers of a member cluster."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube)
        self.pods = self.add(
            PODS, indexers={BY_JOB: _job_key, BY_GROUP: _group_key, BY_NODE: _node_name}
        )
        self.jobs = self.add(VCJOBS)
        self.groups = self.add(PODGROUPS)
        self.nodes = self.add(NODES)
        self.queues = self.add(QUEUES)
        self.namespaces = self.add(NAMESPACES)
        self.commands = self.add(COMMANDS)
        self.priority_classes = self.add(PRIORITY_CLASSES)
        self.add(SERVICE_EXPORTS)
        for resource in (CONFIG_MAPS, SECRETS, PERSISTENT_VOLUME_CLAIMS, SERVICE_ACCOUNTS):
            self.add(resource)


def job_key_of(pod: Object) -> str | None:
    """Return the key of the vcjob a pod belongs to, None for a pod without one."""
    name = (pod["metadata"].get("annotations") or {}).get(JOB_NAME)
    return f"{pod['metadata']['namespace']}/{name}" if name else None


def phase_of_pod(pod: Object) -> str:
    """Return the phase of a pod."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _job_key(pod: Object) -> Iterable[str]:
    key = job_key_of(pod)
    return [key] if key else []


def _group_key(pod: Object) -> Iterable[str]:
    group = (pod["metadata"].get("annotations") or {}).get(GROUP_NAME)
    return [f"{pod['metadata']['namespace']}/{group}"] if group else []


def _node_name(pod: Object) -> Iterable[str]:
    node = pod["spec"].get("nodeName")
    return [node] if node else []
