"""Both Deployments roll, or lose a leader, under traffic: nothing is refused, lost or doubled."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.leaderelection import LEASE_SECONDS
from hyperjob_core.kube.resources import (
    CRDS,
    HYPERJOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
)
from hyperjob_rules.configuration import configurations
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource
from tests.support.controller import clusters, eventually
from tests.support.embedded import crd_files
from tests.support.hyperjobs import hyperjob
from tests.support.processes import free_port
from tests.support.rolling import Pod, Service
from tests.support.stack import Certificates, issue_certificates

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(300)]

Object = dict[str, Any]
JOBS = ("batch.volcano.sh", "jobs")
RATE = 20
CHILDREN = 2


class Platform:
    """An API server, pods of webhook and controller, and what has become of children."""

    def __init__(
        self, server: ApiServer, kube: Kube, directory: Path, certificates: Certificates
    ) -> None:
        self.server = server
        self.kube = kube
        self.service = Service()
        self.controllers: list[Pod] = []
        self.made: Counter[str] = Counter()
        self.gone: Counter[str] = Counter()
        self._directory = directory
        self._certificates = certificates
        self._kubeconfig = server.kubeconfig(directory / "kubeconfig")
        self._count = 0
        server.store.subscribe(self._changed)

    def _changed(self, resource: GroupResource, change: Change) -> None:
        if resource == JOBS and change.type != "MODIFIED":
            seen = self.made if change.type == "ADDED" else self.gone
            seen[change.now.key[1]] += 1

    def webhook(self) -> Pod:
        port = free_port()
        command = ("hyperjob_webhook", "--bind-address=127.0.0.1", f"--secure-port={port}")
        return Pod(
            [
                *command,
                f"--tls-cert-file={self._certificates.certificate}",
                f"--tls-private-key-file={self._certificates.key}",
                "--shutdown-delay=1",
            ],
            log=self._log("webhook"),
            port=port,
        )

    def controller(self) -> Pod:
        command = [
            "hyperjob_controller",
            f"--kubeconfig={self._kubeconfig}",
            "--queue-admission=none",
        ]
        return Pod(command, log=self._log("controller"))

    async def start(self) -> None:
        """Run two pods of each, and have the webhook called."""
        for _ in range(2):
            pod = self.webhook()
            await pod.start()
            self.service.endpoints.append(pod)
            pod = self.controller()
            await pod.start()
            self.controllers.append(pod)
        bundle = self._certificates.authority.read_bytes()
        url = f"https://127.0.0.1:{self.service.port}"
        for resource, hooks in zip(
            (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS),
            configurations(url=url, ca_bundle=bundle),
            strict=True,
        ):
            await self.kube.create(resource, hooks)

    async def stop(self) -> None:
        await asyncio.gather(
            *(pod.end(signal.SIGKILL) for pod in (*self.service.endpoints, *self.controllers))
        )

    async def upgrade(self) -> None:
        """Replace every pod, one after the other."""
        for old in list(self.service.endpoints):
            await self.service.roll(old, self.webhook())
        for old in list(self.controllers):
            new = self.controller()
            await new.start()
            self.controllers.append(new)
            self.controllers.remove(old)
            assert await old.end() == 0, old.log.read_text()

    async def all_are_split(self, names: list[str]) -> None:
        """Wait until every HyperJob has its children, and see that each was made just once."""
        wanted = {f"{name}-trainer-{index}" for name in names for index in range(CHILDREN)}

        async def complete() -> bool:
            return wanted <= set(self.made)

        await eventually(complete, what=f"{len(wanted)} children")
        assert set(self.made) == wanted
        assert set(self.made.values()) == {1}
        assert not self.gone

    async def lease(self) -> Object:
        return dict(
            (await self.kube.get(LEASES, "hyperjob-controller", namespace="karmada-system"))["spec"]
        )

    def _log(self, name: str) -> Path:
        self._count += 1
        return self._directory / f"{name}-{self._count}.log"


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    certificates = await asyncio.to_thread(issue_certificates, tmp_path / "tls")
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer())
        config = server.kubeconfig(tmp_path / "admin")
        kube = await stack.enter_async_context(Kube.connect(kubeconfig=config))
        for path in crd_files():
            await kube.create(CRDS, yaml.safe_load(path.read_text()))
        await kube.create(NAMESPACES, {"metadata": {"name": "karmada-system"}})
        await stack.enter_async_context(clusters(kube, one=100, two=100))
        found = Platform(server, kube, tmp_path, certificates)
        await stack.enter_async_context(found.service.listening())
        stack.push_async_callback(found.stop)
        await found.start()
        yield found


async def submit(platform: Platform, names: list[str], done: asyncio.Event) -> None:
    """Submit HyperJobs at a steady rate; any refusal ends the test."""
    async with asyncio.TaskGroup() as group:
        while not done.is_set():
            names.append(f"hj-{len(names)}")
            group.create_task(
                platform.kube.create(HYPERJOBS, hyperjob(names[-1], replicas=CHILDREN))
            )
            await asyncio.sleep(1 / RATE)


async def test_a_rolling_upgrade_refuses_loses_and_doubles_nothing(platform: Platform) -> None:
    names: list[str] = []
    done = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(submit(platform, names, done))
        await platform.upgrade()
        done.set()
    assert len(names) > RATE, "there was traffic"
    await platform.all_are_split(names)


async def test_a_killed_leader_is_followed_within_the_time_of_its_lease(platform: Platform) -> None:
    names: list[str] = []
    done = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(submit(platform, names, done))
        await eventually(lambda: led(platform), what="children")
        before = await platform.lease()
        (leader,) = [pod for pod in platform.controllers if leads(pod)]
        await leader.end(signal.SIGKILL)
        platform.controllers.remove(leader)
        done.set()
    after: Object = {}

    async def followed() -> bool:
        after.update(await platform.lease())
        return bool(after["holderIdentity"] != before["holderIdentity"])

    await eventually(followed, what="another leader")
    took = moment(after["acquireTime"]) - moment(before["renewTime"])
    # The last renewal may be later than the one that was read, and the next try be due.
    assert took.total_seconds() < LEASE_SECONDS * 2
    assert after["leaseTransitions"] == before["leaseTransitions"] + 1
    await platform.all_are_split(names)


async def led(platform: Platform) -> bool:
    return bool(platform.made)


def leads(pod: Pod) -> bool:
    return '"Leading"' in pod.log.read_text()


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
