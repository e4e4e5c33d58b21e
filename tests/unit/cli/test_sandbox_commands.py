"""`hyperjob preflight` and `hyperjob sandbox` as commands: exit codes, announcements, signals."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hyperjob.cli import main
from hyperjob.cli import preflight as command
from hyperjob.cli.kubectl.access import Access
from hyperjob.client.restored import Report
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import ConfigError
from hyperjob_install.preflight import Finding, PreflightReport
from hyperjob_install.preflight.finding import failed, ok
from hyperjob_sandbox import outages
from hyperjob_sandbox_cli.sandbox import _announce, _ending_event, _until_signal
from tests.support.apiserver import ApiServer

FINE = Finding("api-server", ok("it answers"))
BAD = Finding("karmada", failed("it is old", remedy="hyperjob install"))
CHECKS = {
    "all is well": (PreflightReport((FINE,)), 0),
    "a check fails": (PreflightReport((FINE, BAD)), 1),
    "no answer": (PreflightReport((BAD,), reached=False), 2),
}


@pytest.mark.parametrize(("report", "code"), CHECKS.values(), ids=CHECKS.keys())
def test_preflight_ends_with_the_code_of_its_report(
    report: PreflightReport, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ApiServer()

    async def look(_kube: Kube, *, now: Any) -> PreflightReport:
        return report

    async def compared(_kube: Kube) -> Report:
        return Report(())

    server.serve(monkeypatch)
    monkeypatch.setattr(command, "look_over", look)
    monkeypatch.setattr(command.restored, "report", compared)
    found = CliRunner().invoke(main, ["preflight"])
    assert found.exit_code == code
    for each in report.findings:
        assert each.check in found.stdout
    assert ("members-agree" in found.stdout) is report.reached
    as_json = CliRunner().invoke(main, ["preflight", "-o", "json"])
    assert as_json.exit_code == code
    assert json.loads(as_json.stdout)["checks"][0]["check"] == report.findings[0].check


def test_preflight_without_a_kubeconfig_ends_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def connect(**_more: Any) -> AsyncIterator[Kube]:
        raise ConfigError("no kubeconfig")
        yield

    monkeypatch.setattr(Kube, "connect", connect)
    found = CliRunner().invoke(main, ["preflight"])
    assert (found.exit_code, "no kubeconfig" in found.stderr) == (2, True)


@pytest.mark.parametrize(("verb", "lost", "text"), [
    ("lose", True, "cluster east is lost: kubectl get clusters\n"),
    ("restore", False, "cluster east comes back: kubectl get clusters\n"),
])  # fmt: skip
def test_a_cluster_is_lost_and_comes_back(
    verb: str, lost: bool, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    server = ApiServer()

    async def lose(kube: Kube, cluster: str, *, lost: bool) -> None:
        asked.append((kube, cluster, lost))

    server.serve(monkeypatch, Access)
    monkeypatch.setattr(outages, "lose", lose)
    found = CliRunner().invoke(main, ["sandbox", verb, "east"])
    assert (found.exit_code, found.stdout) == (0, text)
    assert asked == [(server.kube, "east", lost)]


def test_a_sandbox_announces_the_kubeconfigs_of_karmada_and_of_each_member(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _announce(Path("/d"), ["east", "west"], "table")
    said = capsys.readouterr().out
    assert "export KUBECONFIG=/d/karmada.kubeconfig\n" in said
    assert f"  {'east':24} /d/east.kubeconfig\n" in said
    _announce(Path("/d"), ["east", "west"], "json")
    assert json.loads(capsys.readouterr().out) == {
        "kubeconfig": "/d/karmada.kubeconfig",
        "members": {"east": "/d/east.kubeconfig", "west": "/d/west.kubeconfig"},
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_a_sandbox_without_an_error(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in signal.Signals if each > 0}
    ended = []

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    loop = asyncio.get_running_loop()
    try:
        stop = _ending_event()
        waiting = asyncio.create_task(_until_signal(lasting(), stop))
        await asyncio.sleep(0)
        os.kill(os.getpid(), number)
        async with asyncio.timeout(30):
            await waiting
    finally:
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(each)
            signal.signal(each, before[each])
    assert ended == [True]


async def test_what_fails_before_a_signal_ends_a_sandbox_with_its_error() -> None:
    async def failing() -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        await _until_signal(failing(), asyncio.Event())
