"""The stores of a bundle: a Secret, or a directory of files.

A write replaces the whole bundle, and fails if the stored state has changed since its read: two
concurrent rotations cannot mix their keys.
"""

import asyncio
import shutil
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from hyperjob_certs.x509 import (
    CLOCK_SKEW,
    InvalidPair,
    Pair,
    check_pair,
    facts,
    is_signed_by,
    issue_ca,
    issue_serving,
    join_bundle,
    split_bundle,
)
from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import CERTS, MANAGED_BY, ForeignObjectError, manager_of, named
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import SECRETS

_RENEW_AT: Final = 1 / 3
"""Renew when this part of the lifetime is left, which allows two failed attempts."""
_OVERLAP: Final = timedelta(hours=1)
"""Time until every API server has a new authority, and no server has an old certificate."""


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """The names and lifetimes of certificates."""

    names: tuple[str, ...]
    """The names to serve, each as `x509.served_name` returns it: another form never matches."""
    ca_lifetime: timedelta = timedelta(days=3650)
    leaf_lifetime: timedelta = timedelta(days=90)

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("a policy needs at least one name to issue a certificate for")
        if self.leaf_lifetime <= timedelta():
            raise ValueError("a serving certificate must live longer than 0 days")
        if self.leaf_lifetime >= self.ca_lifetime:
            raise ValueError("a serving certificate must live shorter than its authority")


@dataclass(frozen=True, slots=True)
class Bundle:
    """The stored certificates: the signing authority, all trusted ones, and the serving pair."""

    ca: Pair | None = None
    trusted: tuple[bytes, ...] = ()
    """PEM of every trusted authority, the signing one first."""
    serving: Pair | None = None

    @property
    def signing(self) -> Pair:
        """Return the signing authority; ValueError if there is none."""
        if self.ca is None:
            raise ValueError("there is no authority")
        return self.ca


def advance(bundle: Bundle, *, policy: RotationPolicy, now: datetime) -> tuple[Bundle, list[str]]:
    """Return the bundle after every step that is due now, and these steps with their reasons.

    The steps are `new-ca`, `reissue-leaf` and `retire-ca`; the first two generate random keys.
    """
    steps: list[str] = []
    if (reason := _authority_is_due(bundle.ca, now=now)) is not None:
        bundle = with_authority(bundle, policy=policy, now=now)
        steps.append(f"new-ca: {reason}")
    if (reason := _leaf_is_due(bundle, policy=policy, now=now)) is not None:
        bundle = with_leaf(bundle, policy=policy, now=now)
        steps.append(f"reissue-leaf: {reason}")
    if (reason := _retirement_is_due(bundle, now=now)) is not None:
        bundle = replace(bundle, trusted=(bundle.signing.certificate,))
        steps.append(f"retire-ca: {reason}")
    return bundle, steps


def with_authority(bundle: Bundle, *, policy: RotationPolicy, now: datetime) -> Bundle:
    """Return the bundle with a new authority, which is trusted beside those that are valid."""
    ca = issue_ca(common_name="hyperjob-webhook-ca", lifetime=policy.ca_lifetime, now=now)
    alive = [one for one in bundle.trusted if facts(one).not_after > now]
    return replace(bundle, ca=ca, trusted=(ca.certificate, *alive))


def with_leaf(bundle: Bundle, *, policy: RotationPolicy, now: datetime) -> Bundle:
    """Return the bundle with a new serving certificate of its authority."""
    lifetime = policy.leaf_lifetime
    serving = issue_serving(bundle.signing, names=policy.names, lifetime=lifetime, now=now)
    return replace(bundle, serving=serving)


def _authority_is_due(ca: Pair | None, *, now: datetime) -> str | None:
    """Return why a new authority must be issued; None if the present one can sign on."""
    if ca is None:
        return "there is no authority"
    try:
        check_pair(ca, now=now)
    except InvalidPair as problem:
        return f"the authority cannot sign: {problem}"
    if now >= _renewal(ca.certificate):
        return "the authority is near its end"
    return None


def _leaf_is_due(bundle: Bundle, *, policy: RotationPolicy, now: datetime) -> str | None:
    """Return why the serving certificate must be issued again; None if it need not.

    A new authority signs it only after the overlap, when every API server trusts that authority. A
    certificate without a trusted signature is issued again at once.
    """
    ca = bundle.signing
    if bundle.serving is None:
        return "there is no serving certificate"
    try:
        found = check_pair(bundle.serving, now=now)
    except InvalidPair as problem:
        return f"the serving certificate cannot be used: {problem}"
    if found.names != frozenset(policy.names):
        return "the names to serve have changed"
    if not is_signed_by(bundle.serving.certificate, ca.certificate):
        if not any(is_signed_by(bundle.serving.certificate, one) for one in bundle.trusted):
            return "no trusted authority has signed the serving certificate"
        if _age(ca.certificate, now) >= _OVERLAP:
            return "the new authority is known everywhere by now"
        return None
    if now >= _renewal(bundle.serving.certificate):
        return "the serving certificate is near its end"
    return None


def _retirement_is_due(bundle: Bundle, *, now: datetime) -> str | None:
    """Return why older authorities are needed no more; None while a certificate may need one."""
    ca = bundle.signing
    old = [each for each in bundle.trusted if each.strip() != ca.certificate.strip()]
    if not old or bundle.serving is None:
        return None
    if not is_signed_by(bundle.serving.certificate, ca.certificate):
        return None
    if all(facts(one).not_after <= now for one in old):
        return "the old authority has expired"
    if _age(bundle.serving.certificate, now) >= _OVERLAP:
        return "no served certificate is signed by the old authority"
    return None


def _renewal(certificate: bytes) -> datetime:
    found = facts(certificate)
    life = found.not_after - (found.not_before + CLOCK_SKEW)
    return found.not_after - life * _RENEW_AT


def _age(certificate: bytes, now: datetime) -> timedelta:
    return now - (facts(certificate).not_before + CLOCK_SKEW)


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
        data = secret.get("data") or {}
        return Stored(from_items({name: b64decode(data.get(name) or "") for name in ITEMS}), secret)

    async def save(self, bundle: Bundle, *, over: Stored) -> None:
        """Create the Secret, or replace the version that was read.

        Raises ForeignObjectError for a Secret that another program created.
        """
        data = {name: b64encode(pem).decode("ascii") for name, pem in to_items(bundle).items()}
        if over.origin is None:
            secret = {
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
        files = {name: self._directory / name for name in ITEMS}
        return {name: file.read_bytes() for name, file in files.items() if file.exists()}

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


Store: TypeAlias = SecretStore | DirectoryStore
"""A store of one bundle; its `save` fails if the stored state has changed since the `load`."""


def _link(link: Path, target: str) -> None:
    """Set a link to a target in one step, also over an existing one."""
    if link.is_symlink() and str(link.readlink()) == target:
        return
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
