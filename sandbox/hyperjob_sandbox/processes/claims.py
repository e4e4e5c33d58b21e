"""Remove the data of deleted PersistentVolumeClaims, whose folders pods that are processes share.

The data of a claim exists as long as the control plane or a cluster has the claim, and while a pod
uses it: Karmada deletes the copy in a cluster when the last sub-job there is gone, and the next one
finds the data again.
"""

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, objects, string
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from hyperjob_sandbox.controller import Informers
from hyperjob_sandbox.processes.volumes import CLAIMS, SHARED_FOLDER

_ENDED = ("Succeeded", "Failed")


class ClaimData:
    """The folders of claims below `folder`, by the claims of control plane and members."""

    def __init__(self, folder: Path, plane: Informers, members: Mapping[str, Informers]) -> None:
        self._folder = folder
        self._plane = plane
        self._members = members
        self._deleted = asyncio.Event()
        self._waiting = False
        for caches in (plane, *members.values()):
            caches[PERSISTENT_VOLUME_CLAIMS].add_handler(self._on_claim)
        for caches in members.values():
            caches[PODS].add_handler(self._on_pod)

    async def run(self) -> None:
        """Remove folders until cancelled."""
        while True:
            await self._deleted.wait()
            self._deleted.clear()
            gone = list(self._gone())
            self._waiting = any(self._is_used(folder) for folder in gone)
            for folder in gone:
                if not self._is_used(folder):
                    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _on_claim(self, kind: EventType, *_: object) -> None:
        if kind is EventType.DELETED:
            self._deleted.set()

    def _on_pod(self, *_: object) -> None:
        if self._waiting:
            self._deleted.set()

    def _gone(self) -> Iterator[Path]:
        """Yield the folders of claims that neither the control plane nor their cluster has."""
        for folder in sorted(self._folder.glob(f"*/{CLAIMS}/*/*")):
            owners = [self._plane, *self._users(folder)]
            if not any(caches[PERSISTENT_VOLUME_CLAIMS].get(_key(folder)) for caches in owners):
                yield folder

    def _is_used(self, folder: Path) -> bool:
        namespace, _, claim = _key(folder).partition("/")
        return any(
            string(at(pod, "metadata", "namespace")) == namespace and _mounts(pod, claim)
            for caches in self._users(folder)
            for pod in caches[PODS].items()
        )

    def _users(self, folder: Path) -> list[Informers]:
        """Return the clusters whose pods share the folder."""
        cluster = folder.relative_to(self._folder).parts[0]
        if cluster == SHARED_FOLDER:
            return list(self._members.values())
        return [self._members[cluster]] if cluster in self._members else []


def _key(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def _mounts(pod: Object, claim: str) -> bool:
    if string(at(pod, "status", "phase")) in _ENDED:
        return False
    volumes = objects(at(pod, "spec", "volumes"))
    return any(at(each, "persistentVolumeClaim", "claimName") == claim for each in volumes)
