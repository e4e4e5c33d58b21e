"""Read the evidence concurrently; an error replaces objects that cannot be read."""

import asyncio
from datetime import UTC, datetime
from typing import Final

from hyperjob.client.events import events_of
from hyperjob.client.members import pods_of_all, refusals_of_all
from hyperjob.client.reading import lease, listed
from hyperjob.client.summary import Summary, read
from hyperjob.client.why.evidence import Evidence
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS, RESOURCE_BINDINGS, VCJOBS

_JOBS_LOOKED_INTO: Final = 4


async def gather(kube: Kube, namespace: str, name: str) -> Evidence:
    """Read a HyperJob and the objects around it; KubeError when the HyperJob cannot be read."""
    hyperjob = await kube.get(HYPERJOBS, name, namespace=namespace)
    summary = read(hyperjob)
    selector = f"{LABEL_HYPERJOB}={name}"
    inspected = _with_pods(summary)
    unstarted = [job for job in inspected if job.phase != JobPhase.RUNNING]
    async with asyncio.TaskGroup() as group:
        start = group.create_task
        vcjobs = start(listed(kube, VCJOBS, namespace=namespace, label_selector=selector))
        bindings = start(listed(kube, RESOURCE_BINDINGS, namespace=namespace))
        leases = start(lease(kube, of=namespace))
        events = start(events_of(kube, hyperjob))
        pods = start(pods_of_all(kube, namespace, inspected))
        refusals = start(refusals_of_all(kube, namespace, unstarted))
    found, errors = pods.result()
    return Evidence(
        now=datetime.now(UTC),
        summary=summary,
        vcjobs=vcjobs.result(),
        bindings=bindings.result(),
        events=events.result(),
        lease=leases.result(),
        pods=found,
        pod_errors=errors,
        pods_refused=refusals.result(),
    )


def _with_pods(summary: Summary) -> list[JobStatus]:
    """Return the few sub-jobs whose pods to read: those on a cluster, incomplete ones first."""
    started = (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING)
    placed = [job for job in summary.jobs if job.cluster and job.phase in started]
    return sorted(placed, key=lambda job: job.running >= job.pods)[:_JOBS_LOOKED_INTO]
