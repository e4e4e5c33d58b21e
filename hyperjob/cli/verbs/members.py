"""What runs in the members, read through Karmada's cluster proxy. Reads only."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from hyperjob.api.meta import Object
from hyperjob.cli.views.summary import SubJob
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError
from hyperjob.kube.resources import CLUSTERS, PODS

JOB_LABEL: Final = "volcano.sh/job-name"
_PARALLEL: Final = 16
_PAGE: Final = "500"


def proxied(cluster: str, path: str) -> str:
    """Give the path in the Karmada API server that leads to a path in a member."""
    return f"{CLUSTERS.path(None, cluster, 'proxy')}{path}"


def log_path(cluster: str, namespace: str, pod: str) -> str:
    """Give the path of a pod's log."""
    return proxied(cluster, PODS.path(namespace, quote(pod, safe=""), "log"))


async def pods_of(kube: Kube, namespace: str, job: SubJob) -> list[Object]:
    """List the pods of a sub-job in its cluster, by name."""
    path = proxied(job.cluster, PODS.path(namespace))
    found: list[Object] = []
    token = ""
    while True:
        params = {"labelSelector": f"{JOB_LABEL}={job.name}", "limit": _PAGE}
        page = (
            await kube.raw("GET", path, params=params | ({"continue": token} if token else {}))
        ).json()
        found += page.get("items") or ()
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return sorted(found, key=_place)


async def pods_of_all(
    kube: Kube, namespace: str, jobs: Sequence[SubJob]
) -> tuple[dict[str, list[Object]], Mapping[str, KubeError]]:
    """List the pods of every placed sub-job; those that cannot be read with their errors."""
    limit = asyncio.Semaphore(_PARALLEL)
    pods: dict[str, list[Object]] = {}
    errors: dict[str, KubeError] = {}

    async def one(job: SubJob) -> None:
        async with limit:
            try:
                pods[job.name] = await pods_of(kube, namespace, job)
            except KubeError as error:
                errors[job.name] = error

    await asyncio.gather(*(one(job) for job in jobs if job.cluster))
    return pods, errors


def _place(pod: Object) -> tuple[str, int, str]:
    """Order pods by task and index, so that worker-2 stands before worker-10."""
    metadata = pod["metadata"]
    marks = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
    index = str(marks.get("volcano.sh/task-index") or "")
    return (
        str(marks.get("volcano.sh/task-spec") or ""),
        int(index) if index.isdigit() else 0,
        str(metadata["name"]),
    )
