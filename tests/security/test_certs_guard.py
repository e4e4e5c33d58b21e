"""What `hyperjob-certs` may do to webhook configurations, decided by a real kube-apiserver."""

import json
import os
from base64 import b64encode
from pathlib import Path

import pytest

from hyperjob.install.guard import certs_guard
from hyperjob.install.rbac import rbac
from tests.support.envtest import kube_apiserver
from tests.support.processes import wait_for
from tests.support.stack import issue_certificates, kubectl
from webhook.configuration import configurations

ASSETS = os.environ.get("KUBEBUILDER_ASSETS")

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no kube-apiserver"),
]

CHANGES = {
    "another address": lambda hook: hook["clientConfig"].update(url="https://evil.example/x"),
    "no failure": lambda hook: hook.update(failurePolicy="Ignore"),
    "another rule": lambda hook: hook["rules"][0].update(operations=["DELETE"]),
    "no condition": lambda hook: hook.pop("matchConditions"),
    "a selector": lambda hook: hook.update(objectSelector={"matchLabels": {"never": "there"}}),
}


@pytest.fixture(scope="module")
def admin(tmp_path_factory):
    with kube_apiserver(Path(ASSETS), tmp_path_factory.mktemp("k")) as admin:
        rights = rbac(
            controller_user="hyperjob-controller",
            certs_user="hyperjob-certs",
            webhook_user="hyperjob-webhook",
            lease_namespace="karmada-system",
        )
        for item in [*rights, *certs_guard("hyperjob-certs")]:
            kubectl(admin, "apply", "--server-side", "-f", "-", stdin=json.dumps(item.object))
        for one in configurations(url="https://webhook.example"):
            kubectl(admin, "apply", "-f", "-", stdin=json.dumps(one))
        wait_for(
            lambda: replaced(admin, read(admin, 0), CHANGES["no failure"]).returncode,
            what="the policy to be in force",
        )
        yield admin


def read(admin, index):
    kind = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")[index]
    name = ("hyperjob-mutating", "hyperjob-validating")[index]
    return json.loads(kubectl(admin, "get", kind, name, "-o", "json").stdout)


def replaced(admin, live, change):
    change(live["webhooks"][0])
    words = ["replace", "--as=hyperjob-certs", "--dry-run=server", "-f", "-"]
    return kubectl(admin, *words, stdin=json.dumps(live), check=False)


@pytest.mark.parametrize("index", [0, 1], ids=["mutating", "validating"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_it_changes_no_rule(admin, index, change):
    done = replaced(admin, read(admin, index), change)
    assert done.returncode
    assert "may change only caBundle" in done.stderr


@pytest.mark.parametrize("index", [0, 1], ids=["mutating", "validating"])
def test_it_adds_no_webhook(admin, index):
    live = read(admin, index)
    live["webhooks"].append({**live["webhooks"][0], "name": "more.example.com"})
    assert "may change only caBundle" in replaced(admin, live, lambda _: None).stderr


@pytest.mark.parametrize("index", [0, 1], ids=["mutating", "validating"])
def test_it_changes_authorities(admin, index, tmp_path):
    authority = issue_certificates(tmp_path).authority.read_bytes()
    bundle = b64encode(authority).decode()
    live = read(admin, index)
    done = replaced(admin, live, lambda hook: hook["clientConfig"].update(caBundle=bundle))
    assert done.returncode == 0, done.stderr
