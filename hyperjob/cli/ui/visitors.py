"""How visitors get in, as the flags of `hyperjob ui` say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from hyperjob.kube.client import Kube
from hyperjob.ui.access.acting import acting_as
from hyperjob.ui.access.cluster import ClusterAccess
from hyperjob.ui.access.local import LocalAccess, is_loopback
from hyperjob.ui.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The flags."""

    kubeconfig: Path | None
    context: str | None
    require_login: bool
    hosts: tuple[str, ...]
    read_only: bool

    def check(self, host: str) -> None:
        """Raise a usage error where flags do not go together."""
        if self.require_login and not self.hosts:
            raise click.UsageError("--require-login needs --allowed-host, such as hj.example.org")
        if self.hosts and not self.require_login:
            raise click.UsageError("--allowed-host is of use with --require-login only")
        if not self.require_login and not is_loopback(host):
            raise click.UsageError(
                f"--listen {host} can be reached from other machines, and all visitors would have"
                " your rights: listen on 127.0.0.1, or let them log in (--require-login)"
            )


@asynccontextmanager
async def entrance(
    entry: Entry, kube: Kube, known: Running
) -> AsyncIterator[LocalAccess | ClusterAccess]:
    """Let visitors in for the length of the block."""
    if not entry.require_login:
        async with LocalAccess(kube, read_only=entry.read_only) as local:
            yield local
        return
    async with (
        acting_as(kubeconfig=entry.kubeconfig, context=entry.context) as acting,
        ClusterAccess(
            kube,
            acting=acting,
            hosts=entry.hosts,
            namespaces=lambda: known.namespaces,
            read_only=entry.read_only,
        ) as shared,
    ):
        yield shared
