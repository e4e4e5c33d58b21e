"""The webhook process: what keeps it from starting, whom it trusts, readiness, and its end."""

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from hyperjob_certs.x509 import issue_ca, issue_serving
from hyperjob_rules.configuration import MUTATE_HYPERJOB, VALIDATE_HYPERJOB
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_webhook import __main__ as process
from hyperjob_webhook.__main__ import CannotStart, _certificate, known_from, main
from hyperjob_webhook.options import Options
from tests.support.kubeconfigs import write_kubeconfig

END = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EXPIRED = "the served certificate expired at 2026-01-02T03:04:00+00:00"


@pytest.mark.parametrize(
    ("expired", "problem", "said"),
    [
        (False, "", None),
        (False, "no key", "still serving the old one, because no key"),
        (True, "", EXPIRED),
        (True, "no key", f"{EXPIRED}; no key"),
    ],
)
def test_a_certificate_is_no_trouble_until_no_caller_takes_it(expired, problem, said):
    facts = SimpleNamespace(not_after=END)
    found = _certificate(SimpleNamespace(expired=expired, problem=problem, facts=facts))
    assert (found if found is None else str(found)) == said


@pytest.fixture(scope="module")
def authority():
    return issue_ca(common_name="ca", lifetime=timedelta(days=2), now=datetime.now(UTC))


@pytest.fixture
def options(tmp_path: Path, authority: Any) -> Options:
    now = datetime.now(UTC)
    pair = issue_serving(authority, names=["127.0.0.1"], lifetime=timedelta(days=1), now=now)
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    return Options(
        tls_cert_file=tmp_path / "tls.crt",
        tls_private_key_file=tmp_path / "tls.key",
        bind_address="127.0.0.1",
        secure_port=0,
        health_probe_bind_address="127.0.0.1:0",
        shutdown_delay=0.0,
    )


def test_users_who_may_open_gates_are_added_to_what_is_known(options: Options):
    for users in ("", " , "):
        assert known_from(replace(options, controller_users=users)) is NOTHING_KNOWN
    known = known_from(replace(options, controller_users=" a ,b, "))
    assert known == Context(controllers=frozenset({"a", "b"}))
    assert known_from(replace(options, max_grace_period=7)) == Context(max_grace_seconds=7)


async def test_objects_are_watched_where_a_kubeconfig_is_given_alone(
    options: Options, tmp_path: Path
):
    async with AsyncExitStack() as stack:
        assert await process._look_around(stack, options, NOTHING_KNOWN) is None
        wrong = replace(options, kubeconfig=str(tmp_path / "none"))
        with pytest.raises(CannotStart, match=r"none: no such file; give a kubeconfig"):
            await process._look_around(stack, wrong, NOTHING_KNOWN)


@pytest.mark.parametrize(
    ("client_ca", "files"),
    [
        (None, "--tls-cert-file and --tls-private-key-file"),
        ("ca.crt", "--tls-cert-file, --tls-private-key-file and --client-ca-file"),
    ],
)
def test_without_a_certificate_the_process_ends_with_1_and_names_the_files(
    client_ca, files, tmp_path: Path, capsys, monkeypatch
):
    asked = []
    monkeypatch.setattr(process.logs, "setup", lambda **given: asked.append(given))
    flags = ["--tls-cert-file", "none.crt", "--tls-private-key-file", "none.key"]
    if client_ca is not None:
        (tmp_path / client_ca).write_text("x")
        flags += ["--client-ca-file", str(tmp_path / client_ca)]
    assert main([*flags, "--log-format=text"]) == 1
    assert asked == [{"format": "text", "level": "info"}]
    said = capsys.readouterr().err
    assert said.startswith("error: no certificate to serve: ")
    assert said.endswith(f"; check {files}, or run `hyperjob-certs issue`\n")


@pytest.mark.parametrize("flag", ["--secure-port", "--health-probe-bind-address"])
def test_a_port_that_is_taken_is_named_with_the_flag_that_chooses_another(
    flag, options: Options, monkeypatch
):
    monkeypatch.setattr(gc, "freeze", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        if flag == "--secure-port":
            options = replace(options, secure_port=port)
        else:
            options = replace(options, health_probe_bind_address=f"127.0.0.1:{port}")
        expected = f"cannot listen on 127.0.0.1:{port}: address already in use; choose another"
        with pytest.raises(CannotStart, match=f"^{expected} address with {flag}$"):
            asyncio.run(process._run(options))


class Lines(logging.Handler):
    """Keeps the records of the webhook's log, each as soon as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.records: asyncio.Queue[logging.LogRecord] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.put_nowait(record)

    async def next(self) -> logging.LogRecord:
        async with asyncio.timeout(60):
            return await self.records.get()


@pytest.fixture
def lines(monkeypatch):
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(process, "collect_rarely", lambda: None)
    handler, log = Lines(), logging.getLogger("hyperjob_webhook")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)


async def test_metrics_with_a_certificate_have_an_address_by_https_alone(
    options: Options, authority: Any, lines: Lines, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "host")))
    trust = ssl.create_default_context(cadata=authority.certificate.decode())
    protected = replace(
        options, metrics_cert_dir=tmp_path, metrics_bind_address="localhost:0",
    )  # fmt: skip
    running = asyncio.create_task(process._run(protected))
    said: Any = await lines.next()
    port = said.metrics.rpartition(":")[2]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        url = f"https://127.0.0.1:{port}/metrics"
        async with session.get(url) as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        async with session.get(url, headers={"Authorization": "Bearer t"}) as answer:
            assert answer.status == 503, "no API server to ask"
    signal.raise_signal(signal.SIGTERM)
    await running


async def test_metrics_that_cannot_be_protected_end_the_start(options: Options, tmp_path: Path):
    wrong = replace(options, metrics_cert_dir=tmp_path / "none", metrics_bind_address="[::1]:0")
    async with AsyncExitStack() as stack:
        with pytest.raises(CannotStart, match=r"--metrics-cert-dir: .*none"):
            await process._protection(stack, wrong)


def test_no_kubernetes_client_is_loaded():
    script = "import sys, hyperjob_webhook.__main__; print([m for m in sys.modules if 'kube' in m])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_serves_until_its_signal_and_drains(
    number, options: Options, authority: Any, lines: Lines
):
    trust = ssl.create_default_context(cadata=authority.certificate.decode())
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "DELETE"}}  # fmt: skip
    running = asyncio.create_task(process._run(options))
    serving = await lines.next()
    assert serving.getMessage() == "serving"
    said: Any = serving
    assert datetime.fromisoformat(said.notAfter) > datetime.now(UTC)
    assert said.health == said.metrics
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:

        async def seen(path: str) -> tuple[int, str]:
            async with session.get(f"http://{said.health}{path}") as answer:
                return answer.status, await answer.text()

        assert await seen("/readyz?verbose") == (
            200,
            "[+]ping ok\n[+]certificate ok\n[+]shutdown ok\nreadyz check passed\n",
        )
        assert await seen("/healthz") == (200, "ok")
        url = f"https://{said.address}{VALIDATE_HYPERJOB}"
        async with session.post(url, json=body) as answer:
            assert (await answer.json())["response"]["allowed"]
        decided: Any = await lines.next()
        assert (decided.getMessage(), decided.operation) == ("admission decision", "DELETE")
        end = datetime.fromisoformat(said.notAfter).timestamp()
        _, metrics = await seen("/metrics")
        total = "controller_runtime_webhook_requests_total"
        assert f'{total}{{code="200",webhook="{VALIDATE_HYPERJOB}"}} 1.0' in metrics
        (shown,) = [
            line.split()[1]
            for line in metrics.splitlines()
            if line.startswith("hyperjob_certificate_expiry_timestamp_seconds ")
        ]
        assert float(shown) == end
        os.kill(os.getpid(), number)
        draining: Any = await lines.next()
        assert (draining.getMessage(), draining.delay) == ("draining", 0.0)
    assert (await lines.next()).getMessage() == "stopped"
    async with asyncio.timeout(60):
        await running


async def test_while_it_drains_a_process_serves_on_and_is_not_ready(
    options: Options, authority: Any, lines: Lines
):
    gone = asyncio.Event()

    async def delay(seconds: float) -> None:
        assert seconds == 7.0
        await gone.wait()

    options = replace(options, shutdown_delay=7.0, log_format="text")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(process, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": delay}))
        running = asyncio.create_task(process._run(options))
        said: Any = await lines.next()
        os.kill(os.getpid(), signal.SIGTERM)
        assert (await lines.next()).getMessage() == "draining"
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{said.health}/readyz") as answer:
                text = await answer.text()
                assert answer.status == 500
            assert "[-]shutdown failed: the webhook is shutting down\n" in text
        trust = ssl.create_default_context(cadata=authority.certificate.decode())
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            url = f"https://{said.address}{MUTATE_HYPERJOB}"
            async with session.post(url, data=b"") as answer:
                assert answer.status == 415
        gone.set()
        assert (await lines.next()).getMessage() == "request refused"
        assert (await lines.next()).getMessage() == "stopped"
        async with asyncio.timeout(60):
            await running
