"""The ends of the logs of failed attempts, in a ConfigMap of their HyperJob.

A restart deletes the pods. The administrator switches it on by the number of bytes. A log that
cannot be read or written delays no restart beyond the time in which the cause of a failure is read.
A ConfigMap of that name which the HyperJob does not own stays as it is.
"""

from contextlib import aclosing
from dataclasses import replace
from typing import Final

from hyperjob_core.api.failedlogs import FailedLog, change, config_map, config_map_name
from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import ForeignObjectError, is_controlled, named
from hyperjob_core.api.status import ContainerFailure
from hyperjob_core.api.wire import at, mapping, string, string_map
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists, NotFound
from hyperjob_core.kube.logs import Log
from hyperjob_core.kube.resources import CLUSTERS, CONFIG_MAPS, PODS, split_key
from hyperjob_engine.model.planned import FailedJob

_TAIL: Final = "2000"
_STAMP: Final = 64
"""More than the bytes of the time before a line."""
_MOST: Final = 4 * 1024 * 1024
"""The bytes of a log that are read to find its end."""


class FailedLogs:
    """Keeps the last `limit` bytes of the log of each container that failed a sub-job."""

    def __init__(self, kube: Kube, members: Kube, *, limit: int) -> None:
        """`members` reads the logs, `kube` writes the ConfigMaps."""
        self._kube = kube
        self._members = members
        self._limit = limit

    async def keep(
        self, key: str, owner: Object, job: FailedJob, failure: ContainerFailure
    ) -> None:
        """Read the end of a log and store it; raises KubeError and ForeignObjectError."""
        namespace, name = split_key(key)
        about = FailedLog(
            job=job.name,
            attempt=job.attempt + 1,
            cluster=job.cluster,
            pod=failure.pod,
            container=failure.container,
            time=failure.time,
        )
        text = await log_end(self._members, namespace, job.cluster, failure, limit=self._limit)
        entry, value = replace(about, text=text).entry(self._limit)
        known = config_map_name(name)
        try:
            found = await self._kube.get(CONFIG_MAPS, known, namespace=namespace)
        except NotFound:
            made = config_map(name, owner, {entry: value})
            try:
                await self._kube.create(CONFIG_MAPS, made, namespace=namespace)
            except AlreadyExists:  # another sub-job failed at the same time
                found = await self._kube.get(CONFIG_MAPS, known, namespace=namespace)
            else:
                return
        if not is_controlled(found, string(owner.get("uid"))):
            raise ForeignObjectError(
                f"{named(CONFIG_MAPS.kind, found)} exists and does not belong to this HyperJob:"
                " the logs of failed containers are not kept; delete the ConfigMap, or give it"
                " another name"
            )
        changed = change(string_map(mapping(found.get("data"))), entry, value)
        body = {"metadata": {"uid": at(found, "metadata", "uid")}, "data": changed}
        await self._kube.patch(CONFIG_MAPS, known, body, kind=PatchType.MERGE, namespace=namespace)


async def log_end(
    members: Kube,
    namespace: str | None,
    cluster: str,
    failure: ContainerFailure,
    *,
    limit: int,
) -> str:
    """Return the last `limit` bytes of the log of a failed container; raises KubeError."""
    path = CLUSTERS.path(None, cluster, "proxy") + PODS.path(namespace, failure.pod, "log")
    log = Log(members, path, container=failure.container, longest=limit + _STAMP)
    end = b""
    async with aclosing(log.read({"tailLines": _TAIL}, most=_MOST)) as batches:
        async for batch in batches:
            lines = b"".join(line.text + b"\n" for line in batch)
            end = (end + lines)[-limit:]
    return end.decode(errors="replace")
