"""Causes in the members: pods that do not start or fail, and Volcano's PodGroups. Pure."""

from collections.abc import Iterator
from typing import Final

from hyperjob.client.pods import pod_trouble
from hyperjob.client.reading import items
from hyperjob.client.summary import SubJob, Summary
from hyperjob.client.why.evidence import Cause, Evidence
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import at, condition, mapping, string, timestamp
from hyperjob_engine.model.clusterusage import room_of
from hyperjob_engine.reasons.podsrefused import refused_text
from hyperjob_engine.reasons.reason import Reason

_SHOWN: Final = 3
_STARTED: Final = ("Running", "Failed")
"""Phases of a pod whose containers have started; a pod in CrashLoopBackOff is Running too."""
_STUCK: Final = ("Image", "CrashLoop", "Config")
"""Parts of reasons that stay until a person acts: ImagePullBackOff, InvalidImageName, …"""


def troubled(evidence: Evidence) -> Iterator[Cause]:
    """Yield the reasons why pods in the members do not start or fail, each reason once."""
    summary = evidence.summary
    seen: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for job in summary.jobs:
        for pod in evidence.pods.get(job.name, ()):
            phase = string(at(pod, "status", "phase"))
            if phase == "Succeeded" or not (trouble := pod_trouble(pod)):
                continue
            key = ("PodsFailing" if phase in _STARTED else Reason.PODS_PENDING, trouble)
            name = f"{job.cluster}/{string(at(pod, 'metadata', 'name'))}"
            large = _larger_than_a_node(evidence, job, trouble)
            seen.setdefault(key, []).append((name, _look(summary, job, phase), large))
    for (reason, trouble), found in list(seen.items())[:_SHOWN]:
        name, command, large = found[0]
        number = f" (and {len(found) - 1} more pods)" if len(found) > 1 else ""
        yield Cause(
            reason=reason,
            message=f"pod {name}{number}: {trouble}{large}",
            next=command,
            needs_help=bool(large) or any(word in trouble.partition(":")[0] for word in _STUCK),
        )
    refused = list(_refused(evidence))
    yield from refused
    if not seen and not refused:
        yield from _in_groups(evidence)


def _look(summary: Summary, job: SubJob, phase: str) -> str:
    """Return the command for a pod: its log if a container has run, else its state."""
    where = f"{summary.name} -n {summary.namespace}"
    if phase == "Running":
        return f"kubectl hyperjob logs {where} --job {job.name} --previous --tail 50"
    if phase in _STARTED:
        return f"kubectl hyperjob logs {where} --job {job.name} --tail 50"
    return f"kubectl hyperjob tree {where} --pods"


def _refused(evidence: Evidence) -> Iterator[Cause]:
    """Yield the messages of members about pods that they refuse, where the status has none."""
    summary = evidence.summary
    for job in evidence.unstarted():
        refused = evidence.pods_refused.get(job.name)
        made = timestamp(at(evidence.vcjob(job.name), "metadata", "creationTimestamp"))
        if refused is None or job.reason == Reason.PODS_REFUSED or made is None:
            continue
        if made <= refused.last:  # the Event is about this vcjob
            yield Cause(
                reason=Reason.PODS_REFUSED,
                message=f"{job.name}: {refused_text(job.cluster, refused.message)}",
                next=f"kubectl hyperjob describe {summary.name} -n {summary.namespace}",
                needs_help=True,
            )


def _in_groups(evidence: Evidence) -> Iterator[Cause]:
    """Yield Volcano's message for sub-jobs whose pods do not start or do not exist."""
    summary = evidence.summary
    for job in evidence.unstarted():
        for group in evidence.pod_groups.get(job.name, ()):
            said = condition(mapping(group.get("status")), "Unschedulable")
            if said.get("status") == "True" and (message := string(said.get("message"))):
                large = _larger_than_a_node(evidence, job, message)
                yield Cause(
                    reason=Reason.PODS_PENDING,
                    message=f"{job.name}: Volcano on {job.cluster}: {message}{large}",
                    needs_help=bool(large),
                    next=f"kubectl hyperjob tree {summary.name} -n {summary.namespace} --pods",
                )


def _larger_than_a_node(evidence: Evidence, job: SubJob, said: str) -> str:
    """Return a text if a pod is probably larger than every node of its cluster; else empty.

    A Cluster reports only the sum of its nodes. If the cluster has enough free accelerators for
    all pods of the sub-job, and a pod still fits on no node, the nodes are too small.
    """
    summary = evidence.summary
    accelerator, number = summary.accelerators(job)
    group = summary.group(job.group)
    found = next(
        (each for each in items(evidence.clusters) if each["metadata"]["name"] == job.cluster), None
    )
    # Volcano uses the text of the predicate of Kubernetes' scheduler for nodes that lack a
    # resource.
    short = f"Insufficient {accelerator}" in said
    if found is None or group is None or group.per_pod < 2 or not short:
        return ""
    free = room_of(found).free.get(accelerator, 0) // NANO
    if free < number:
        return ""
    return (
        f"; {free} {accelerator} are free in the cluster, and probably no node has the"
        f" {group.per_pod} of one pod: make its pods smaller"
    )
