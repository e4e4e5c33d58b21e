"""The place of an administrator for folders that are larger than a HyperJob.

The ConfigMap `hyperjob-code` of a namespace names it, with one of these keys:

- `url`: archives are sent by PUT and read by GET at URL/SHA256.zip, as in WebDAV, Artifactory,
  Nexus and the generic packages of GitLab; or an object store that fsspec knows, such as
  s3://bucket/code, whose signed addresses the pods read.
- `claim` and `directory`: a PersistentVolumeClaim whose volume all clusters share, and the
  directory where users have the same volume.

`secret` names a Secret whose key `authorization` is that header of requests to `url`.
"""

import asyncio
import base64
import binascii
import os
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import aiohttp

from hyperjob.sdk.errors import SourceError
from hyperjob.sdk.program import Carried
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string, string_map
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import CONFIG_MAPS, SECRETS

CONFIG_MAP: Final = "hyperjob-code"
_KEY: Final = "authorization"
_MOUNT: Final = "/hyperjob-code"
_SIGNED_SECONDS: Final = 7 * 24 * 3600
"""The longest time that S3 allows."""
_SEND_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a namespace; `header` is the Authorization of requests, empty for none."""

    url: str = ""
    secret: str = ""
    claim: str = ""
    directory: str = ""
    header: str = field(default="", repr=False)

    async def carry(self, archive: Path) -> Carried:
        """Put an archive into the place if it is not there; raise SourceError."""
        if self.claim:
            await asyncio.to_thread(self._copy, archive)
            path = f"{_MOUNT}/{archive.name}"
            return Carried(variables={"HYPERJOB_SDK_ARCHIVE": path}, mounts={_MOUNT: self.claim})
        if not self.url.startswith(("http://", "https://")):
            address = await asyncio.to_thread(_into_store, self.url, archive)
            return Carried(variables={"HYPERJOB_SDK_ARCHIVE": address})
        address = f"{self.url.rstrip('/')}/{archive.name}"
        await self._send(archive, address)
        reference = {"secretKeyRef": {"name": self.secret, "key": _KEY}}
        return Carried(
            variables={
                "HYPERJOB_SDK_ARCHIVE": address,
                **({"HYPERJOB_SDK_AUTHORIZATION": reference} if self.secret else {}),
            }
        )

    def _copy(self, archive: Path) -> None:
        """Copy an archive into the directory of the volume, if it is not there."""
        target = Path(self.directory) / archive.name
        if not Path(self.directory).is_dir():
            raise SourceError(
                f"{self.directory}: no such directory: the ConfigMap {CONFIG_MAP} says that this"
                f" machine has the volume of claim {self.claim} there"
            )
        if target.exists():
            return
        part = target.with_suffix(f".{os.getpid()}")
        try:
            shutil.copyfile(archive, part)
            part.rename(target)  # a pod never reads a part of an archive
        except OSError as error:
            part.unlink(missing_ok=True)
            raise SourceError(f"{target}: {error.strerror}") from None

    async def _send(self, archive: Path, address: str) -> None:
        """Send an archive to an address by PUT, if a HEAD does not find it there."""
        headers = {"Authorization": self.header} if self.header else {}
        limit = aiohttp.ClientTimeout(total=_SEND_SECONDS)
        try:
            async with aiohttp.ClientSession(
                headers=headers, timeout=limit, trust_env=True
            ) as session:
                async with session.head(address) as found:
                    if found.status == 200:  # an equal folder was sent before
                        return
                with archive.open("rb") as data:
                    async with session.put(address, data=data) as answer:
                        if answer.status >= 300:
                            raise SourceError(
                                f"PUT {address}: {answer.status} {answer.reason}: the ConfigMap"
                                f" {CONFIG_MAP} names this place"
                            )
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SourceError(f"PUT {address}: {str(error) or type(error).__name__}") from None


async def place_of(kube: Kube, namespace: str) -> Place | None:
    """Return the place of a namespace; None without one; raise SourceError for a wrong one."""
    try:
        found = await kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=namespace)
    except NotFound:
        return None
    data = string_map(found.get("data"))
    place = Place(
        **{key: data.get(key, "").strip() for key in ("url", "secret", "claim", "directory")}
    )
    if bool(place.url) == bool(place.claim) or bool(place.claim) != bool(place.directory):
        raise SourceError(
            f"ConfigMap {namespace}/{CONFIG_MAP}: expected the key url, or the keys claim and"
            f" directory; it has {', '.join(sorted(data)) or 'none'}"
        )
    if not place.secret or place.claim:
        return place
    secret = await kube.get(SECRETS, place.secret, namespace=namespace)
    return replace(place, header=_header(secret, namespace))


def _header(secret: Object, namespace: str) -> str:
    """Return the Authorization header in a Secret; raise SourceError without one."""
    try:
        header = base64.b64decode(string(at(secret, "data", _KEY)), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        header = ""
    if not header.strip():
        name = secret["metadata"]["name"]
        raise SourceError(f"Secret {namespace}/{name}: it has no text with the key {_KEY}")
    return header.strip()


def _into_store(url: str, archive: Path) -> str:
    """Put an archive into an object store; return an address that pods can read without rights."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise SourceError(f"{url}: to send files there: pip install fsspec s3fs") from None
    try:
        store, path = url_to_fs(f"{url.rstrip('/')}/{archive.name}")
        if not store.exists(path):
            store.put_file(str(archive), path)
        return str(store.sign(path, expiration=_SIGNED_SECONDS))
    except Exception as error:  # noqa: BLE001, each store has exceptions of its own
        raise SourceError(f"{url}: {type(error).__name__}: {error}") from None
