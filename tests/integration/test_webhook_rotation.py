"""Certificates replaced while requests run: on kept and on new connections, none fails."""

import asyncio
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hyperjob_certs.store import (
    Bundle,
    DirectoryStore,
    RotationPolicy,
    advance,
    with_authority,
    with_leaf,
)
from hyperjob_certs.x509 import facts
from hyperjob_rules.configuration import MUTATE_RESOURCEBINDING
from tests.support.stack import Certificates
from tests.support.webhookprocess import RawConnection, webhook_process

pytestmark = pytest.mark.scenario

DATA = Path(__file__).parents[1] / "unit/webhook/data/admission-reviews.jsonl"
BINDING = next(x for x in DATA.read_bytes().splitlines() if b'"kind":"ResourceBinding"' in x)
ROTATIONS = 10
POLICY = RotationPolicy(
    names=("127.0.0.1",), ca_lifetime=timedelta(days=30), leaf_lifetime=timedelta(days=3)
)


class Load:
    """Posts reviews until told to stop, over connections that are kept and ones that are new."""

    def __init__(self, webhook) -> None:
        self.webhook = webhook
        self.answered = {"kept": 0, "new": 0}
        self.serials: set[int] = set()
        self.seen = asyncio.Condition()
        self.stopping = False

    def tls(self) -> ssl.SSLContext:
        return self.webhook.client_tls()

    async def kept(self) -> None:
        connection = await RawConnection.open(self.webhook.port, self.tls())
        while not self.stopping:
            status, headers, _ = await connection.post(MUTATE_RESOURCEBINDING, BINDING)
            assert status == 200
            assert "connection" not in headers
            self.answered["kept"] += 1
        await connection.close()

    async def new(self) -> None:
        while not self.stopping:
            connection = await RawConnection.open(self.webhook.port, self.tls())
            status, _, _ = await connection.post(MUTATE_RESOURCEBINDING, BINDING)
            assert status == 200
            self.answered["new"] += 1
            pem = ssl.DER_cert_to_PEM_cert(connection.certificate).encode()
            await connection.close()
            async with self.seen:
                self.serials.add(facts(pem).serial)
                self.seen.notify_all()

    async def further(self, *, new: int) -> None:
        """Wait until that many more new connections have been served."""
        wanted = self.answered["new"] + new
        async with asyncio.timeout(60), self.seen:
            await self.seen.wait_for(lambda: self.answered["new"] >= wanted)

    async def until_served(self, certificate: bytes) -> None:
        serial = facts(certificate).serial
        async with asyncio.timeout(60), self.seen:
            await self.seen.wait_for(lambda: serial in self.serials)


async def step(store, *, at):
    """Take the steps that are due, and keep what they gave."""
    stored = await store.load()
    bundle, _ = advance(stored.bundle, policy=POLICY, now=at)
    await store.save(bundle, over=stored)
    return bundle


async def test_twenty_rotations_under_load_lose_no_request(tmp_path):
    now = datetime.now(UTC)
    store = DirectoryStore(tmp_path / "tls")
    bundle = await step(store, at=now)
    files = Certificates(*(tmp_path / "tls" / name for name in ("ca.crt", "tls.crt", "tls.key")))
    with webhook_process(tmp_path, files) as webhook:
        load = Load(webhook)
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(load.kept())
            for _ in range(2):
                group.create_task(load.new())
            await load.until_served(bundle.serving.certificate)
            for number in range(ROTATIONS):
                stored = await store.load()
                fresh, _ = advance(
                    Bundle(ca=stored.bundle.ca, trusted=stored.bundle.trusted),
                    policy=POLICY,
                    now=now,
                )
                if number % 5 == 2:  # a pair that cannot be served comes first
                    spoil(tmp_path / "tls", fresh)
                    await complaint(webhook, number)
                await store.save(fresh, over=stored)
                await load.until_served(fresh.serving.certificate)
            load.stopping = True
        assert len(load.serials) == ROTATIONS + 1
        assert load.answered["kept"] >= ROTATIONS
        assert load.answered["new"] >= ROTATIONS
        assert webhook.process.poll() is None
        levels = {line["level"] for line in webhook.lines() if line["msg"] != "admission decision"}
        assert levels <= {"info", "error"}
        refused = [line for line in webhook.lines() if line["msg"] == "request refused"]
        assert refused == []


def spoil(directory, fresh):
    """Put a new certificate beside the old key, as a writer does that was interrupted."""
    data = directory / "..data"
    (data.resolve() / "tls.crt").write_bytes(fresh.serving.certificate)


async def complaint(webhook, number):
    """Wait until the bad pair was noticed; requests go on meanwhile."""
    wanted = number // 5 + 1
    async with asyncio.timeout(60):
        while webhook.log.read_bytes().count(b"the old one stays") < wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def alone(bundle, **_more):
    """Return a bundle that trusts its signing authority alone."""
    return replace(bundle, trusted=(bundle.signing.certificate,))


async def test_an_authority_is_replaced_under_load_without_a_refused_handshake(tmp_path):
    """New, then serving, then alone: clients trust what the authority file says at that moment."""
    now = datetime.now(UTC)
    store = DirectoryStore(tmp_path / "tls")
    first = await step(store, at=now)
    files = Certificates(*(tmp_path / "tls" / name for name in ("ca.crt", "tls.crt", "tls.key")))
    with webhook_process(tmp_path, files) as webhook:
        load = Load(webhook)
        async with asyncio.TaskGroup() as group:
            group.create_task(load.kept())
            for _ in range(2):
                group.create_task(load.new())
            for change in (with_authority, with_leaf, alone):
                stored = await store.load()
                bundle = change(stored.bundle, policy=POLICY, now=now)
                await store.save(bundle, over=stored)
                await load.until_served(bundle.serving.certificate)
                await load.further(new=6)  # nobody goes on with what it read before
            load.stopping = True
        last = (await store.load()).bundle
    assert last.ca != first.ca
    assert len(last.trusted) == 1
    assert len(load.serials) == 2
