"""Reasons for which Volcano Global's dispatcher never releases a ResourceBinding. Pure.

The rules look for these reasons themselves: the dispatcher writes none into an object.
"""

from collections.abc import Iterator

from hyperjob.client.summary import SubJob
from hyperjob.client.why.evidence import Cause, Evidence
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import at, mapping
from hyperjob_core.kube.errors import KubeError
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import parse_resources


def passed_over(evidence: Evidence) -> Iterator[Cause]:
    """Yield the reasons why the dispatcher will never release the sub-jobs that it holds."""
    for job in evidence.unstarted():
        binding = evidence.binding(binding_name(job.name)) or {}
        if at(binding, "spec", "suspension", "scheduling") is True:
            yield from _without_priority_class(evidence, job)
            yield from _beyond_queue(evidence, job)


def _without_priority_class(evidence: Evidence, job: SubJob) -> Iterator[Cause]:
    """Yield a cause if a sub-job names a PriorityClass that does not exist."""
    summary, group = evidence.summary, evidence.summary.group(job.group)
    wanted = group.priority_class if group is not None else ""
    if not wanted or isinstance(evidence.priority_classes, KubeError):
        return
    if all(each["metadata"]["name"] != wanted for each in evidence.priority_classes):
        yield Cause(
            reason="NoPriorityClass",
            message=f"there is no PriorityClass {wanted} in the Karmada API server, and Volcano"
            f" Global skips HyperJobs that name it; {summary.name} continues after you create it",
            next="kubectl get priorityclasses",
            needs_help=True,
        )


def _beyond_queue(evidence: Evidence, job: SubJob) -> Iterator[Cause]:
    """Yield a cause if a sub-job exceeds what its queue's capability leaves, or the capability."""
    summary, group = evidence.summary, evidence.summary.group(job.group)
    name = group.queue if group is not None else "default"
    queue = evidence.queue(name) or {}
    accelerator, asked = summary.accelerators(job)
    most = parse_resources(mapping(at(queue, "spec", "capability"))).get(accelerator)
    if most is None or not asked:
        return
    most //= NANO
    used = parse_resources(mapping(at(queue, "status", "allocated"))).get(accelerator, 0) // NANO
    never = asked > most
    if not never and used + asked <= most:
        return
    state = "may never use more than" if never else f"has {used} in use of its capability of"
    yield Cause(
        reason=Reason.EXCEEDS_QUEUE if never else Reason.QUEUE_LIMIT_REACHED,
        message=f"{job.name} asks for {asked} {accelerator}, and queue {name} {state} {most}",
        next=f"kubectl get queues.scheduling.volcano.sh {name} -o yaml"
        if never
        else "kubectl hyperjob top --by queue",
        needs_help=never,
    )
