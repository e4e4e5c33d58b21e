"""Causes in the members: pods that do not start or run on, and what Volcano says of them. Pure."""

from collections.abc import Iterator
from typing import Final

from controller.model.parse import condition
from controller.model.reasons import Reason
from controller.model.wire import at, mapping, string
from hyperjob.client.pods import pod_trouble
from hyperjob.client.summary import SubJob, Summary
from hyperjob.client.why.evidence import Cause, Evidence

_SHOWN: Final = 3
_STARTED: Final = ("Running", "Failed")
"""Phases of a pod that had its containers; Running is also one whose container crashes for ever."""
_STUCK: Final = ("Image", "CrashLoop", "Config")
"""Words in a container's reason that no time mends: ImagePullBackOff, InvalidImageName, …"""


def troubled(evidence: Evidence) -> Iterator[Cause]:
    """Say what keeps pods from starting or running on in the members, each reason once."""
    summary = evidence.summary
    seen: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for job in summary.jobs:
        for pod in evidence.pods.get(job.name, ()):
            phase = string(at(pod, "status", "phase"))
            if phase == "Succeeded" or not (trouble := pod_trouble(pod)):
                continue
            key = ("PodsFailing" if phase in _STARTED else Reason.PODS_PENDING, trouble)
            name = f"{job.cluster}/{string(at(pod, 'metadata', 'name'))}"
            seen.setdefault(key, []).append((name, _look(summary, job, phase)))
    for (reason, trouble), found in list(seen.items())[:_SHOWN]:
        name, command = found[0]
        number = f" (and {len(found) - 1} more pods)" if len(found) > 1 else ""
        yield Cause(
            reason=reason,
            message=f"pod {name}{number}: {trouble}",
            next=command,
            needs_help=any(word in trouble.partition(":")[0] for word in _STUCK),
        )
    if not seen:
        yield from _in_groups(evidence)


def _look(summary: Summary, job: SubJob, phase: str) -> str:
    """Give the command that shows more: the log of what ended, or the state of what never ran."""
    where = f"{summary.name} -n {summary.namespace}"
    if phase == "Running":
        return f"kubectl hyperjob logs {where} --job {job.name} --previous --tail 50"
    if phase in _STARTED:
        return f"kubectl hyperjob logs {where} --job {job.name} --tail 50"
    return f"kubectl hyperjob tree {where} --pods"


def _in_groups(evidence: Evidence) -> Iterator[Cause]:
    """Say what Volcano in a member says of pods that do not start, or are not made yet."""
    summary = evidence.summary
    for job in evidence.unstarted():
        for group in evidence.pod_groups.get(job.name, ()):
            said = condition(mapping(group.get("status")), "Unschedulable")
            if said.get("status") == "True" and (message := string(said.get("message"))):
                yield Cause(
                    reason=Reason.PODS_PENDING,
                    message=f"{job.name}: Volcano on {job.cluster}: {message}",
                    next=f"kubectl hyperjob tree {summary.name} -n {summary.namespace} --pods",
                )
