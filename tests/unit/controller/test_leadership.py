"""What a controller writes into its Lease, and what it asks the API server before it competes."""

import asyncio
import logging
from typing import Any

import pytest

from hyperjob_controller.leadership import Leadership
from hyperjob_controller.options import Options
from hyperjob_controller.wall import Wall
from hyperjob_controller.watchdog import Place
from hyperjob_core.api.duration import utc_now
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    CONTROLLER_USER,
    CONTROLLER_VERSION,
    ENDING_PODS,
    FIELD_MANAGER,
    LEASE_NAME,
)
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.leaderelection import new_lease
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import LEASES
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.apiserver import refusal
from tests.support.counts import Counts


class Records:
    """The admission, which records a text, or raises."""

    state: Any = None
    error: Exception | None = None

    def __init__(self) -> None:
        self.restored: list[str] = []

    def record(self, *_: object) -> str:
        if self.error is not None:
            raise self.error
        return "recorded"

    def restore(self, text: str) -> None:
        self.restored.append(text)
        if self.error is not None:
            raise self.error


class Server:
    """Answers the review of the own user and the read of the namespace, or raises."""

    def __init__(self, user: Any = None, namespace: KubeError | None = None) -> None:
        self.user, self.namespace = user, namespace

    async def create(self, _resource: object, body: Any) -> Any:
        if isinstance(self.user, KubeError):
            raise self.user
        return {**body, "status": {"userInfo": self.user or {}}}

    async def get(self, _resource: object, name: str) -> Any:
        if self.namespace is not None:
            raise self.namespace
        return {"metadata": {"name": name}}


def leadership(server: Server | Kube, admission: Records | None = None) -> Leadership:
    return Leadership(
        server,  # type: ignore[arg-type] # what a leader asks of a Kube
        Options(),
        admission or Records(),  # type: ignore[arg-type] # what it records
        wall=Wall(lambda _: None, now=utc_now, wake=lambda _: None),
        namespace="hyperjob-system",
        identity="me",
        mode=lambda: QueueAdmission.BUILTIN,
    )


@pytest.mark.parametrize(
    ("user", "written"),
    [
        ({"username": "system:sa", "groups": ["a", "b"]}, True),
        ({}, False),
        (refusal(403, "no"), False),
    ],
)
async def test_the_lease_has_the_user_of_the_controller_if_the_server_names_it(
    user: Any, written: bool
) -> None:
    found = leadership(Server(user))
    await found._look_for_user()
    annotations = found._annotations()
    assert (CONTROLLER_USER in annotations) is written
    if written:
        assert "system:sa" in annotations[CONTROLLER_USER]
        assert "b" in annotations[CONTROLLER_USER]
    assert annotations[CONTROLLER_VERSION]


async def test_only_a_leader_records_what_the_next_one_needs() -> None:
    found = leadership(Server())
    assert ENDING_PODS not in found._annotations()
    found._leads = True
    assert found._annotations()[ENDING_PODS] == "recorded"


def test_an_exception_about_what_the_last_leader_left_ends_no_leader() -> None:
    """What it left stays for the next one."""
    admission, counts = Records(), Counts()
    admission.error = ZeroDivisionError("a bug")
    worked = asyncio.Event()

    async def main() -> Object:
        async with Kube(MemoryServer(now=now)) as kube:
            lease = new_lease(
                "hyperjob-system", LEASE_NAME, "", seconds=1, now=now(), manager=FIELD_MANAGER
            )
            lease["metadata"]["annotations"] = {ENDING_PODS: "ending"}
            await kube.create(LEASES, lease)

            async def work() -> None:
                await asyncio.sleep(60)  # virtual: renewals in between
                worked.set()

            await leadership(kube, admission).run(work)
            return await kube.get(LEASES, LEASE_NAME, namespace="hyperjob-system")

    left = run(main())["metadata"]["annotations"]
    assert worked.is_set()
    assert admission.restored == ["ending"]
    assert left[ENDING_PODS] == "ending"
    counted = counts("hyperjob_internal_errors_total", place=Place.LEASE)
    assert counted
    assert counted > 2


@pytest.mark.parametrize(
    ("failure", "level"),
    [(None, None), (refusal(404, "no"), "ERROR"), (refusal(403, "no"), "INFO")],
)
async def test_a_missing_namespace_of_the_lease_is_an_error_of_the_operator(
    failure: KubeError | None, level: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await leadership(Server(namespace=failure))._look_for_namespace()
    assert [each.levelname for each in caplog.records] == ([level] if level else [])
    if level == "ERROR":
        assert "`hyperjob install` creates it" in caplog.text
