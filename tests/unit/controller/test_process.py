"""The process of the controller: how it stops, what it says when it cannot run, what it serves."""

import asyncio
import logging
import os
import signal
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from hyperjob import __version__
from hyperjob_controller import __main__ as process
from hyperjob_controller import leadership
from hyperjob_controller import manager as managers
from hyperjob_controller.__main__ import run
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, published
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import ConfigError
from hyperjob_core.kube.leaderelection import LeadershipLostError
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.apiserver import ApiServer, refusal
from tests.unit.controller.test_pass import running, until


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note what `main` prepares, and leave the process of the tests as it is."""
    done: list[Any] = []
    monkeypatch.setattr(process.logs, "setup", lambda **how: done.append(how))
    monkeypatch.setattr(process, "collect_rarely", lambda: done.append("garbage"))
    return done


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_and_lets_it_end_in_order(
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    prepared: list[Any],
) -> None:
    caplog.set_level(logging.INFO)
    ended = []

    async def body(options: Options) -> None:
        ended.append(options.workers)
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("in order")

    monkeypatch.setattr(process, "run", body)
    assert process.main(["--workers", "3", "--log-format", "json", "--log-level", "warning"]) == 0
    assert ended == [3, "in order"]
    assert prepared == [{"format": "json", "level": "warning"}, "garbage"]
    assert [each.getMessage() for each in caplog.records] == ["Stopping"]


def test_its_tls_connections_take_a_quarter_of_the_usual_memory(
    monkeypatch: pytest.MonkeyPatch, prepared: list[Any]
) -> None:
    monkeypatch.setattr(SSLProtocol, "max_size", SSLProtocol.max_size)
    sizes: list[int] = []

    async def body(_options: Options) -> None:
        sizes.append(SSLProtocol.max_size)

    monkeypatch.setattr(process, "run", body)
    assert process.main([]) == 0
    assert sizes == [2**16]


def test_what_ends_by_itself_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, prepared: list[Any]
) -> None:
    caplog.set_level(logging.INFO)

    async def body(_options: Options) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(process, "run", body)
    assert process.main([]) == 0
    assert not caplog.records


CANNOT_RUN = {
    "no API server": (ConfigError("no kubeconfig"), ["Cannot reach the API server: no kubeconfig"]),
    "no lease": (LeadershipLostError("late"), ["Lost the lease; start again: late"]),
    "no port": (OSError("in use"), ["Cannot start: in use"]),
    "several": (
        BaseExceptionGroup(
            "all", [OSError("in use"), ExceptionGroup("inner", [LeadershipLostError("late")])]
        ),
        ["Cannot start: in use", "Lost the lease; start again: late"],
    ),
}


@pytest.mark.parametrize(("error", "told"), CANNOT_RUN.values(), ids=CANNOT_RUN)
def test_what_the_operator_can_correct_is_said_in_one_line_each(
    error: BaseException,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    prepared: list[Any],
) -> None:
    async def body(_options: Options) -> None:
        raise error

    monkeypatch.setattr(process, "run", body)
    assert process.main([]) == 1
    found = [(each.levelname, f"{each.getMessage()}: {each.error}") for each in caplog.records]  # type: ignore[attr-defined]
    assert found == [("ERROR", each) for each in told]


@pytest.mark.parametrize(
    "error", [ValueError("bug"), ExceptionGroup("all", [OSError("in use"), ValueError("bug")])]
)
def test_a_bug_is_not_hidden(
    error: Exception, monkeypatch: pytest.MonkeyPatch, prepared: list[Any]
) -> None:
    async def body(_options: Options) -> None:
        raise error

    monkeypatch.setattr(process, "run", body)
    with pytest.raises((ValueError, ExceptionGroup)) as found:
        process.main([])
    # Since Python 3.12 contextlib.suppress raises a group of the same errors.
    assert getattr(found.value, "exceptions", found.value) == getattr(error, "exceptions", error)


class Connected:
    """Gives clients in memory in place of those of API servers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    @asynccontextmanager
    async def connect(self, **how: Any) -> AsyncIterator[Kube]:
        self.asked.append({key: value for key, value in how.items() if key != "metrics"})
        server = ApiServer()
        server.host = "https://karmada"
        yield server.kube


@pytest.mark.parametrize("admission", [None, QueueAdmission.NONE])
async def test_it_serves_its_health_its_metrics_and_how_hyperjobs_are_judged(
    admission: QueueAdmission | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clients = Connected()
    monkeypatch.setattr(process, "Kube", clients)
    options = Options(
        kubeconfig="config",
        queue_admission=admission,
        members=MemberAccess.OFF,
        leader_elect=False,
        metrics_bind_address="127.0.0.1:0",
        health_probe_bind_address="127.0.0.1:0",
        debug_bind_address="127.0.0.1:0",
    )
    task = asyncio.create_task(run(options))

    def said() -> dict[str, Any]:
        texts = {each.getMessage(): vars(each) for each in caplog.records}
        return texts.get("Controller started", {}) if "Caches are complete" in texts else {}

    try:
        await until(said)
        record = said()
        assert record["server"] == "https://karmada"
        assert record["queueAdmission"] == ("auto" if admission is None else "none")
        async with aiohttp.ClientSession() as session:
            for where, path, code in (
                ("health", "readyz", 200),
                ("health", "healthz", 200),
                ("metrics", "metrics", 200),
                ("debug", "debug/memory", 200),
            ):
                async with session.get(f"http://{record[where]}/{path}") as answer:
                    assert (path, answer.status) == (path, code)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    agent = process.USER_AGENT
    assert clients.asked == [{"kubeconfig": "config", "user_agent": agent}]


@pytest.mark.parametrize(
    ("fields", "client", "asked"),
    [
        ({"members": MemberAccess.OFF, "members_kubeconfig": "reader"}, False, []),
        ({"members": MemberAccess.PODS, "kubeconfig": "own"}, True, ["own"]),
        (
            {"members": MemberAccess.LOGS, "kubeconfig": "own", "members_kubeconfig": "reader"},
            True,
            ["reader"],
        ),
    ],
)
async def test_members_are_read_by_the_account_that_the_options_name(
    fields: dict[str, Any], client: bool, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = Connected()
    monkeypatch.setattr(process, "Kube", clients)
    async with process._members_client(Options(**fields)) as found:
        assert (found is not None) == client
    assert [each["kubeconfig"] for each in clients.asked] == asked


async def test_the_lease_has_the_names_and_times_of_the_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: dict[str, Any] = {}
    left: list[int] = []

    def elector(*names: Any, **how: Any) -> None:
        made.update(how, names=names[1:])

    monkeypatch.setattr(leadership, "LeaderElector", elector)
    monkeypatch.setattr(os, "_exit", left.append)
    options = Options(queue_admission=QueueAdmission.BUILTIN, leader_elect_lease_duration=60)
    manager = Manager(ApiServer().kube, options)
    manager.leadership._elector()
    assert made["names"] == ("karmada-system", "hyperjob-controller", manager.identity)
    assert (made["lease_seconds"], made["renew_seconds"]) == (60, 40)
    assert made["noted"]() == {
        "training.volcano.sh/controller-version": __version__,
        "training.volcano.sh/queue-admission": "builtin",
        "training.volcano.sh/controller-settings": (
            '{"namespace":null,"cluster_status_lag":30.0,"cluster_lost_timeout":300.0,'
            '"gang_timeout":300.0,"usage_half_life_time":86400.0,"unschedulable_timeout":30.0,"start_timeout":900.0,'
            '"tenant_messages":"names","members":"nodes","devices":""}'
        ),
    }
    assert published(made["noted"]()) == Options(queue_admission=QueueAdmission.BUILTIN)
    made["overdue"]()
    assert left == [1]


async def test_caches_that_cannot_be_filled_are_named_with_the_error_until_they_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(managers, "_REPORT_SECONDS", 0.001)
    server = ApiServer()
    server.fails = lambda _verb, resource, _name: (
        refusal(403, "Forbidden") if resource == HYPERJOBS else None
    )

    def waits() -> set[tuple[str, str]]:
        return {
            (each.resource, each.error)  # type: ignore[attr-defined]
            for each in caplog.records
            if each.getMessage() == "Waiting for a resource that cannot be listed"
        }

    async def body() -> None:
        async with running(server):
            pass

    task: asyncio.Task[None] = asyncio.create_task(body())
    try:
        await until(lambda: any("no answer yet" not in error for _, error in waits()))
        named = {resource for resource, error in waits() if error != "no answer yet"}
        assert named == {"hyperjobs.training.volcano.sh"}
        server.fails = lambda _verb, _resource, _name: None
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    told = [each for each in caplog.records if each.getMessage() == "Caches are complete"]
    assert [each.hyperjobs for each in told] == [0]  # type: ignore[attr-defined]
