"""The webhook as a user runs it: started, probed, asked, ended."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from hyperjob_rules.configuration import MUTATE_RESOURCEBINDING, VALIDATE_HYPERJOB
from tests.support.processes import wait_for
from tests.support.stack import Certificates, issue_certificates
from tests.support.webhookprocess import RawConnection, webhook_process

pytestmark = pytest.mark.scenario

DATA = Path(__file__).parents[1] / "unit/webhook/data/admission-reviews.jsonl"
BINDING = next(x for x in DATA.read_bytes().splitlines() if b'"kind":"ResourceBinding"' in x)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return issue_certificates(tmp_path_factory.mktemp("tls"))


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


async def test_it_is_ready_answers_counts_logs_and_ends_with_0(tmp_path, certificates):
    with webhook_process(tmp_path, certificates, flags=["--log-level=debug"]) as webhook:
        assert get(f"{webhook.side_door}/healthz") == (200, "ok")
        assert get(f"{webhook.side_door}/readyz") == (200, "ok")
        connection = await RawConnection.open(webhook.port, webhook.client_tls())
        for body, code in ((BINDING, 200), (BINDING, 200), (b"{", 400)):
            status, _, answer = await connection.post(MUTATE_RESOURCEBINDING, body)
            assert status == code, answer
        await connection.close()
        _, metrics = get(f"{webhook.side_door}/metrics")
        name = f'webhook="{MUTATE_RESOURCEBINDING}"'
        total = "controller_runtime_webhook_requests_total"
        assert f'{total}{{code="200",{name}}} 2.0' in metrics
        assert f'{total}{{code="400",{name}}} 1.0' in metrics
        assert "certwatcher_read_certificate_total 1.0" in metrics
        webhook.terminate()
        assert webhook.process.wait(30) == 0
        lines = webhook.lines()
    decisions = [line for line in lines if line["msg"] == "admission decision"]
    assert len(decisions) == 2
    assert decisions[0]["ResourceBinding"]["namespace"] == "default"
    assert decisions[0]["user"] == "system:admin"
    assert [line["msg"] for line in lines if "msg" in line][-2:] == ["draining", "stopped"]


async def test_sigterm_fails_readiness_first_and_finishes_what_is_in_flight(tmp_path, certificates):
    flags = ["--shutdown-delay=3600"]
    with webhook_process(tmp_path, certificates, flags=flags, request_timeout=25) as webhook:
        kept = await RawConnection.open(webhook.port, webhook.client_tls())
        assert (await kept.post(MUTATE_RESOURCEBINDING, BINDING))[0] == 200
        webhook.terminate()
        await asyncio.to_thread(
            wait_for,
            lambda: get(f"{webhook.side_door}/readyz")[0] == 500,
            what="readiness to fail",
        )
        assert "shutting down" in get(f"{webhook.side_door}/readyz?verbose")[1]
        assert get(f"{webhook.side_door}/healthz") == (200, "ok")
        status, headers, _ = await kept.post(MUTATE_RESOURCEBINDING, BINDING)
        assert (status, headers["connection"]) == (200, "close")
        fresh = await RawConnection.open(webhook.port, webhook.client_tls())
        assert (await fresh.post(MUTATE_RESOURCEBINDING, BINDING))[0] == 200
        for connection in (kept, fresh):
            await connection.close()


async def test_sigterm_in_the_middle_of_bodies_loses_none(tmp_path, certificates):
    limits = {"shutdown_grace_seconds": 60, "request_timeout": 25}
    with webhook_process(tmp_path, certificates, **limits) as webhook:
        tls = webhook.client_tls()
        connections = [await RawConnection.open(webhook.port, tls) for _ in range(8)]
        for connection in connections:
            await connection.send_head(MUTATE_RESOURCEBINDING, len(BINDING))
            connection.writer.write(BINDING[:100])
            await connection.writer.drain()
        in_flight = "controller_runtime_webhook_requests_in_flight"
        wanted = f'{in_flight}{{webhook="{MUTATE_RESOURCEBINDING}"}} 8.0'
        await asyncio.to_thread(
            wait_for,
            lambda: wanted in get(f"{webhook.side_door}/metrics")[1],
            what="eight requests in flight",
        )
        webhook.terminate()
        await asyncio.to_thread(
            wait_for, lambda: b'"draining"' in webhook.log.read_bytes(), what="the drain"
        )
        for connection in connections:
            connection.writer.write(BINDING[100:])
            assert (await connection.answer())[0] == 200
            await connection.close()
        assert await asyncio.to_thread(webhook.process.wait, 30) == 0


def spoiled(certificates, directory, spoil):
    copied = Certificates(*(directory / name for name in ("ca.crt", "tls.crt", "tls.key")))
    for source, target in zip(
        (certificates.authority, certificates.certificate, certificates.key),
        (copied.authority, copied.certificate, copied.key),
        strict=True,
    ):
        shutil.copyfile(source, target)
    spoil(copied)
    return copied


def test_no_kubernetes_client_is_loaded():
    script = "import sys, hyperjob_webhook.__main__; print([m for m in sys.modules if 'kube' in m])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_bad_new_certificate_is_said_in_readiness_and_metrics_and_harms_nobody(
    tmp_path, certificates
):
    files = spoiled(certificates, tmp_path, lambda _files: None)
    with webhook_process(tmp_path, files) as webhook:
        files.certificate.write_text("half a certifi")
        wait_for(
            lambda: "cannot be served" in webhook.log.read_text(), what="the bad pair to be seen"
        )
        code, text = get(f"{webhook.side_door}/readyz?verbose")
        assert code == 200
        assert "[+]certificate ok: still serving the old one, because no PEM" in text
        _, metrics = get(f"{webhook.side_door}/metrics")
        errors = float(
            metrics.partition("\ncertwatcher_read_certificate_errors_total ")[2].split()[0]
        )
        assert errors >= 1


async def test_a_flood_of_large_reviews_leaves_the_small_ones_their_time(tmp_path, certificates):
    """Large bodies are judged apart, two at a time: small ones are answered all the while."""
    review = json.loads(BINDING)
    review["request"]["object"]["metadata"]["annotations"]["pad"] = ["x"] * 200_000
    large = json.dumps(review).encode()
    with webhook_process(tmp_path, certificates) as webhook:
        tls = webhook.client_tls()
        floods = [await RawConnection.open(webhook.port, tls) for _ in range(6)]
        small = await RawConnection.open(webhook.port, tls)

        async def flood(connection):
            codes = [(await connection.post(VALIDATE_HYPERJOB, large))[0] for _ in range(3)]
            assert set(codes) <= {400, 504}

        flooding = [asyncio.create_task(flood(one)) for one in floods]
        slowest = 0.0
        while not all(task.done() for task in flooding):
            started = time.perf_counter()
            assert (await small.post(MUTATE_RESOURCEBINDING, BINDING))[0] == 200
            slowest = max(slowest, time.perf_counter() - started)
        await asyncio.gather(*flooding)
        assert slowest < 4.0, "below the time limit of the API server"
        for connection in (*floods, small):
            await connection.close()


async def test_it_is_ready_and_answers_while_karmada_is_out_of_reach(tmp_path, certificates):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        kubeconfig = tmp_path / "kubeconfig"
        server = f"https://127.0.0.1:{nobody.getsockname()[1]}"
        cluster = {"name": "karmada", "cluster": {"server": server}}
        context = {"name": "karmada", "context": {"cluster": "karmada", "user": "webhook"}}
        user = {"name": "webhook", "user": {"tokenFile": "token"}}
        (tmp_path / "token").write_text("expired")
        kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [cluster],
                    "users": [user],
                    "contexts": [context],
                    "current-context": "karmada",
                }
            )
        )
        with webhook_process(
            tmp_path, certificates, flags=[f"--kubeconfig={kubeconfig}"]
        ) as webhook:
            assert get(f"{webhook.side_door}/readyz") == (200, "ok")
            connection = await RawConnection.open(webhook.port, webhook.client_tls())
            status, _, _ = await connection.post(MUTATE_RESOURCEBINDING, BINDING)
            assert status == 200
            await connection.close()
            webhook.terminate()
            assert webhook.process.wait(30) == 0
