"""Causes in the members: pods that do not start, and what Volcano there says of them. Pure."""

from collections.abc import Iterator
from typing import Final

from controller.model.parse import condition
from controller.model.wire import at, mapping, string
from controller.status.outlook import Reason
from hyperjob.cli.views.tree import pod_trouble
from hyperjob.cli.why.evidence import Cause, Evidence

_SHOWN: Final = 3
_STUCK: Final = ("Image", "CrashLoop", "Config")
"""Words in a container's reason that no time mends: ImagePullBackOff, InvalidImageName, …"""


def pending(evidence: Evidence) -> Iterator[Cause]:
    """Say what keeps pods from starting in the members, each reason once."""
    summary = evidence.summary
    seen: dict[str, list[str]] = {}
    for job in evidence.summary.jobs:
        for pod in evidence.pods.get(job.name, ()):
            if string(at(pod, "status", "phase")) in ("Running", "Succeeded"):
                continue
            if trouble := pod_trouble(pod):
                name = f"{job.cluster}/{string(at(pod, 'metadata', 'name'))}"
                seen.setdefault(trouble, []).append(name)
    for trouble, names in list(seen.items())[:_SHOWN]:
        number = f" (and {len(names) - 1} more pods)" if len(names) > 1 else ""
        yield Cause(
            reason="PodsPending",
            message=f"pod {names[0]}{number}: {trouble}",
            next=f"kubectl hyperjob tree {summary.name} -n {summary.namespace} --pods",
            needs_help=any(word in trouble.partition(":")[0] for word in _STUCK),
        )
    if not seen:
        yield from _in_groups(evidence)


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
