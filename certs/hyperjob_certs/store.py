"""The stores of a bundle: a Secret, or a directory of files.

A write replaces the whole bundle, and fails if the stored state has changed since its read: two
concurrent rotations cannot mix their keys.
"""

import asyncio
import shutil
import tempfile
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from hyperjob_certs.rotation import Bundle
from hyperjob_certs.x509 import InvalidPair, Pair, join_bundle, split_bundle
from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import CERTS, MANAGED_BY, ForeignObjectError, manager_of, named
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import SECRETS

# The names of a kubernetes.io/tls Secret; `ca.crt` has all trusted authorities, the signing one
# first. Only the rotation uses `ca.key`: a serving pod mounts only the `tls.` items.
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
TRUSTED: Final = "ca.crt"
CA_KEY: Final = "ca.key"
ITEMS: Final = (CERTIFICATE, KEY, TRUSTED, CA_KEY)


@dataclass(frozen=True, slots=True)
class Stored:
    """A bundle, with the stored state as the precondition of a write."""

    bundle: Bundle
    origin: Object | None = None


class Store(Protocol):
    """A store of one bundle."""

    async def load(self) -> Stored:
        """Return the stored bundle; an empty one if there is none yet."""
        ...

    async def save(self, bundle: Bundle, *, over: Stored) -> None:
        """Replace the state `over`; raise `Conflict` (or AlreadyExists) if it has changed."""
        ...


def to_items(bundle: Bundle) -> dict[str, bytes]:
    """Return a complete bundle as PEM files by name; ValueError if a part is missing."""
    if bundle.ca is None or bundle.serving is None:
        raise ValueError("only a complete bundle can be kept")
    return {
        CERTIFICATE: bundle.serving.certificate,
        KEY: bundle.serving.key,
        TRUSTED: trusted_pem(bundle),
        CA_KEY: bundle.ca.key,
    }


def trusted_pem(bundle: Bundle) -> bytes:
    """Return the PEM of all trusted authorities, the signing one first."""
    signing = () if bundle.ca is None else (bundle.ca.certificate,)
    return join_bundle((*signing, *bundle.trusted))


def from_items(items: Mapping[str, bytes]) -> Bundle:
    """Return the bundle of these files; an unreadable part counts as missing and is renewed."""
    try:
        trusted = tuple(split_bundle(items.get(TRUSTED, b"")))
    except InvalidPair:
        trusted = ()
    ca_key, certificate, key = (items.get(name, b"") for name in (CA_KEY, CERTIFICATE, KEY))
    return Bundle(
        ca=Pair(trusted[0], ca_key) if trusted and ca_key else None,
        trusted=trusted,
        serving=Pair(certificate, key) if certificate and key else None,
    )


class SecretStore:
    """A Secret with the bundle, whose other items and metadata stay as they are."""

    def __init__(self, kube: Kube, *, namespace: str, name: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = name

    async def load(self) -> Stored:
        """Read the Secret."""
        try:
            secret = await self._kube.get(SECRETS, self._name, namespace=self._namespace)
        except NotFound:
            return Stored(Bundle())
        items = {}
        for name in ITEMS:
            try:
                items[name] = b64decode((secret.get("data") or {}).get(name) or "", validate=True)
            except BadBase64:  # impossible in an API server, but possible in a hand-made file
                continue
        return Stored(from_items(items), secret)

    async def save(self, bundle: Bundle, *, over: Stored) -> None:
        """Create the Secret, or replace the version that was read.

        Raises ForeignObjectError for a Secret that another program created.
        """
        data = {name: b64encode(pem).decode("ascii") for name, pem in to_items(bundle).items()}
        if over.origin is None:
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": self._name,
                    "namespace": self._namespace,
                    "labels": {MANAGED_BY: CERTS},
                },
                "type": "kubernetes.io/tls",
                "data": data,
            }
            await self._kube.create(SECRETS, secret, namespace=self._namespace)
        elif manager_of(over.origin) != CERTS:
            raise ForeignObjectError(
                f"{named(SECRETS.kind, over.origin)} exists, and hyperjob-certs did not create it:"
                " name another Secret with --secret, or delete this one"
            )
        else:
            kept = over.origin.get("data") or {}
            await self._kube.replace(SECRETS, {**over.origin, "data": {**kept, **data}})


class DirectoryStore:
    """A directory with the bundle, in the layout of a Secret volume.

    The items are links into `..data`, itself a link that one rename replaces: a reader sees the old
    pair or the new one, never a mix.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def load(self) -> Stored:
        """Read the files."""
        return Stored(from_items(await asyncio.to_thread(self._read)))

    async def save(self, bundle: Bundle, *, over: Stored) -> None:
        """Write all files at once; only one process may write to the directory."""
        del over
        await asyncio.to_thread(self._write, to_items(bundle))

    def _read(self) -> dict[str, bytes]:
        found = {}
        for name in ITEMS:
            file = self._directory / name
            if file.exists():
                found[name] = file.read_bytes()
        return found

    def _write(self, items: Mapping[str, bytes]) -> None:
        """Write a new version beside the old one, switch the link, then delete the old version."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = self._directory / "..data"
        old = data.resolve() if data.is_symlink() else None
        version = Path(tempfile.mkdtemp(prefix="..", dir=self._directory))
        for name, pem in items.items():
            file = version / name
            file.touch(mode=0o600, exist_ok=False)
            file.write_bytes(pem)
        _link(data, version.name)
        for name in items:
            _link(self._directory / name, f"..data/{name}")
        if old is not None and old.parent == self._directory.resolve():
            shutil.rmtree(old, ignore_errors=True)


def _link(link: Path, target: str) -> None:
    """Set a link to a target in one step, also over an existing one."""
    if link.is_symlink() and str(link.readlink()) == target:
        return
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
