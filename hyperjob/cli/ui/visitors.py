"""The access of visitors to `hyperjob ui`, from its flags."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from hyperjob.cli.kubectl.exits import FailureError
from hyperjob_core.kube.client import Kube
from hyperjob_page.access.cluster import KEY_BYTES, ClusterAccess, acting_as
from hyperjob_page.access.local import LocalAccess, is_loopback
from hyperjob_page.visitor import VisitorAccess
from hyperjob_page.world import LiveState


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorOptions:
    """The flags for access."""

    kubeconfig: Path | None
    context: str | None
    require_login: bool
    session_key: Path | None
    hosts: tuple[str, ...]
    read_only: bool

    def check(self, host: str) -> None:
        """Raise a usage error where flags conflict."""
        if self.require_login and not self.hosts:
            raise click.UsageError("--require-login needs --allowed-host, such as hj.example.org")
        for flag, given in (
            ("--allowed-host", self.hosts),
            ("--session-key-file", self.session_key),
        ):
            if given and not self.require_login:
                raise click.UsageError(f"{flag} needs --require-login")
        if not self.require_login and not is_loopback(host):
            raise click.UsageError(
                f"other machines can reach --listen {host}, and every visitor would have your"
                " rights: listen on 127.0.0.1, or use --require-login"
            )

    @property
    def key(self) -> bytes:
        """Return the key of the sessions, without a file that of this process; FailureError."""
        if self.session_key is None:
            return secrets.token_bytes(KEY_BYTES)
        remedy = "`hyperjob credentials renew --account=hyperjob-ui=SECRET` writes one"
        try:
            key = self.session_key.read_bytes()
        except OSError as error:
            why = f"cannot read {self.session_key}: {error.strerror}"
            raise FailureError(f"{why}; {remedy}") from None
        if len(key) < KEY_BYTES:
            why = f"{self.session_key} has {len(key)} bytes, and a key at least {KEY_BYTES}"
            raise FailureError(f"{why}: {remedy}")
        return key


@asynccontextmanager
async def entrance(
    entry: VisitorOptions, kube: Kube, world: LiveState
) -> AsyncIterator[VisitorAccess]:
    """Yield the access of visitors, which ends with the block."""
    if not entry.require_login:
        async with LocalAccess(kube, read_only=entry.read_only) as local:
            yield local
        return
    async with (
        acting_as(kubeconfig=entry.kubeconfig, context=entry.context) as acting,
        ClusterAccess(
            kube,
            acting=acting,
            key=entry.key,
            hosts=entry.hosts,
            namespaces=lambda: world.namespaces,
            read_only=entry.read_only,
        ) as shared,
    ):
        yield shared
