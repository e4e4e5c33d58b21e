"""Remove the data of deleted PersistentVolumeClaims, whose folders pods that are processes share.

A claim of a cluster has its data as a dynamically provisioned volume has it, whose reclaim policy
is Delete: the data goes with the claim.
"""

import asyncio
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.resources import PERSISTENT_VOLUME_CLAIMS, key_of
from hyperjob_sandbox.controller import Informers
from hyperjob_sandbox.processes.volumes import CLAIMS

_GONE: Final = "gone"


class ClaimData:
    """The folders of claims below `folder`, by the claims of the members."""

    def __init__(self, folder: Path, members: Mapping[str, Informers]) -> None:
        self._folder = folder
        self._deleted = asyncio.Event()
        for name, caches in members.items():
            caches[PERSISTENT_VOLUME_CLAIMS].add_handler(partial(self._on_claim, name))

    async def run(self) -> None:
        """Remove the data of deleted claims until cancelled."""
        while True:
            await self._deleted.wait()
            self._deleted.clear()
            await asyncio.to_thread(shutil.rmtree, self._folder / _GONE, ignore_errors=True)

    def _on_claim(
        self, cluster: str, kind: EventType, old: Object | None, new: Object | None
    ) -> None:
        """Remove the data at once: the next claim of this name begins without it."""
        if old is None or (new is not None and _uid(old) == _uid(new)):
            return
        data = self._folder / cluster / CLAIMS / key_of(old)
        if data.exists():
            (self._folder / _GONE).mkdir(exist_ok=True)
            data.rename(self._folder / _GONE / str(uuid4()))
            self._deleted.set()


def _uid(claim: Object) -> str:
    return str(claim["metadata"]["uid"])
