"""Mutual TLS as docs/install.md describes it, with a real kube-apiserver."""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

from hyperjob_rules.configuration import configurations
from tests.support.envtest import ASSETS, NEEDS_KUBE_APISERVER, kube_apiserver
from tests.support.stack import installed, issue_certificates, kubectl
from tests.support.webhookprocess import webhook_process

ROOT = Path(__file__).parents[2]

pytestmark = NEEDS_KUBE_APISERVER


def documented(kind):
    """Give the example of a kind in the page."""
    page = (ROOT / "docs/install.md").read_text()
    for block in re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        if (found := yaml.safe_load(block)).get("kind") == kind:
            return found
    raise AssertionError(f"no {kind}")


def test_only_an_api_server_with_the_certificate_is_answered(tmp_path):
    client = tmp_path / "client"
    command = [sys.executable, "-m", "hyperjob_certs", "client", "--directory", str(client)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    certificates = issue_certificates(tmp_path / "tls")
    flags = [f"--client-ca-file={client / 'client-ca.crt'}"]
    admission, kubeconfig = tmp_path / "admission.yaml", tmp_path / "webhook.kubeconfig"
    configuration = documented("AdmissionConfiguration")
    for plugin in configuration["plugins"]:
        plugin["configuration"]["kubeConfigFile"] = str(kubeconfig)
    admission.write_text(json.dumps(configuration))
    with webhook_process(tmp_path, certificates, flags=flags) as webhook:
        users = documented("Config")
        users["users"][0]["name"] = f"127.0.0.1:{webhook.port}"
        users["users"][0]["user"] = {
            "client-certificate": str(client / "client.crt"),
            "client-key": str(client / "client.key"),
        }
        kubeconfig.write_text(json.dumps(users))
        for name, more, answered in (
            ("with", [f"--admission-control-config-file={admission}"], True),
            ("without", [], False),
        ):
            with kube_apiserver(ASSETS, tmp_path / name, *more) as admin:
                with installed(admin, [ROOT / "crds/training.volcano.sh_hyperjobs.yaml"]):
                    done = create(admin, webhook.port, certificates.authority.read_bytes())
                said = "must be less than or equal to" if answered else "failed to call webhook"
                assert said in done.stderr


def create(admin, port, authority):
    """Have the API server ask the webhook about a HyperJob that it refuses."""
    for one in configurations(url=f"https://127.0.0.1:{port}", ca_bundle=authority):
        kubectl(admin, "apply", "-f", "-", stdin=json.dumps(one))
    (wrong,) = yaml.safe_load_all((ROOT / "examples/llm-training.yaml").read_text())
    wrong["spec"]["replicatedJobs"][0]["templateSpec"]["minAvailable"] = 10**6
    sent = json.dumps(wrong)
    for _ in range(50):
        # A configuration is in force some moments after it is stored; without it all is admitted.
        done = kubectl(admin, "create", "--dry-run=server", "-f", "-", stdin=sent, check=False)
        if done.returncode:
            return done
    raise AssertionError("the webhook is never called")
