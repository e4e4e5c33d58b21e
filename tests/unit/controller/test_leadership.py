"""What a controller writes into its Lease, and what it asks the API server before it competes."""

import logging
from typing import Any

import pytest

from hyperjob_controller.leadership import Leadership
from hyperjob_controller.options import Options
from hyperjob_core.api.names import CLAIMS, CONTROLLER_USER, CONTROLLER_VERSION, ENDING_PODS
from hyperjob_core.kube.errors import KubeError, from_status, make_status
from hyperjob_core.telemetry.metrics import Metrics
from hyperjob_engine.model.observed import QueueAdmission


class Records:
    """The admission and the handover, which record a text each."""

    state: Any = None

    def record(self, *_: object) -> str:
        return "recorded"


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


def leadership(server: Server) -> Leadership:
    return Leadership(
        server,  # type: ignore[arg-type] # what a leader asks of a Kube
        Options(),
        Records(),  # type: ignore[arg-type] # what it records
        Records(),  # type: ignore[arg-type]
        namespace="hyperjob-system",
        identity="me",
        mode=lambda: QueueAdmission.BUILTIN,
        metrics=Metrics(),
    )


def refused(code: int) -> KubeError:
    return from_status(make_status(code, "no"), "x")


@pytest.mark.parametrize(
    ("user", "written"),
    [
        ({"username": "system:sa", "groups": ["a", "b"]}, True),
        ({}, False),
        (refused(403), False),
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
    assert not {ENDING_PODS, CLAIMS} & found._annotations().keys()
    found._leads = True
    annotations = found._annotations()
    assert (annotations[ENDING_PODS], annotations[CLAIMS]) == ("recorded", "recorded")


@pytest.mark.parametrize(
    ("failure", "level"), [(None, None), (refused(404), "ERROR"), (refused(403), "INFO")]
)
async def test_a_missing_namespace_of_the_lease_is_an_error_of_the_operator(
    failure: KubeError | None, level: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await leadership(Server(namespace=failure))._look_for_namespace()
    assert [each.levelname for each in caplog.records] == ([level] if level else [])
    if level == "ERROR":
        assert "`hyperjob install` creates it" in caplog.text
