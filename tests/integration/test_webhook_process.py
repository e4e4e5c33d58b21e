"""The webhook as a user runs it: started, probed, asked, ended."""

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from hyperjob_rules.configuration import MUTATE_RESOURCEBINDING
from tests.support.kubeconfigs import write_kubeconfig
from tests.support.stack import issue_certificates
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


def test_no_kubernetes_client_is_loaded():
    script = "import sys, hyperjob_webhook.__main__; print([m for m in sys.modules if 'kube' in m])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


async def test_it_is_ready_and_answers_while_karmada_is_out_of_reach(tmp_path, certificates):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{nobody.getsockname()[1]}"
        (tmp_path / "token").write_text("expired")
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server, user={"tokenFile": "token"})
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
