"""What `hyperjob-certs` may do to webhook configurations, decided by a real kube-apiserver."""

import json
from base64 import b64decode, b64encode

import pytest

from hyperjob_install.manifest import certs_guard
from hyperjob_install.rbac import rbac
from hyperjob_install.settings import Settings
from hyperjob_rules.configuration import configurations
from tests.support.envtest import ASSETS, NEEDS_KUBE_APISERVER, kube_apiserver
from tests.support.processes import wait_for
from tests.support.stack import issue_certificates, kubectl

pytestmark = NEEDS_KUBE_APISERVER

ACCOUNTS = "hyperjob-accounts"
CERTS_USER = f"system:serviceaccount:{ACCOUNTS}:hyperjob-certs"
REFUSED = "may change only caBundle"

CHANGES = {
    "another address": lambda hook: hook["clientConfig"].update(url="https://evil.example/x"),
    "no failure": lambda hook: hook.update(failurePolicy="Ignore"),
    "another rule": lambda hook: hook["rules"][0].update(operations=["DELETE"]),
    "no condition": lambda hook: hook.pop("matchConditions"),
    "a selector": lambda hook: hook.update(objectSelector={"matchLabels": {"never": "there"}}),
}


@pytest.fixture(scope="module")
def admin(tmp_path_factory):
    with kube_apiserver(ASSETS, tmp_path_factory.mktemp("k")) as admin:
        rights = rbac(Settings(service_accounts=True), namespace=ACCOUNTS)
        for item in [*rights, *certs_guard(CERTS_USER)]:
            kubectl(admin, "apply", "--server-side", "-f", "-", stdin=json.dumps(item.object))
        for one in configurations(url="https://webhook.example"):
            kubectl(admin, "apply", "-f", "-", stdin=json.dumps(one))
        wait_for(
            lambda: REFUSED in replaced(admin, read(admin, 0), CHANGES["no failure"]).stderr,
            what="the policy to be in force",
        )
        yield admin


def read(admin, index):
    kind = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")[index]
    name = ("hyperjob-mutating", "hyperjob-validating")[index]
    return json.loads(kubectl(admin, "get", kind, name, "-o", "json").stdout)


def replaced(admin, live, change):
    change(live["webhooks"][0])
    words = ["replace", f"--as={CERTS_USER}", "--dry-run=server", "-f", "-"]
    return kubectl(admin, *words, stdin=json.dumps(live), check=False)


@pytest.mark.parametrize("index", [0, 1], ids=["mutating", "validating"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_it_changes_no_rule(admin, index, change):
    done = replaced(admin, read(admin, index), change)
    assert done.returncode
    assert REFUSED in done.stderr


@pytest.mark.parametrize("index", [0, 1], ids=["mutating", "validating"])
def test_it_adds_no_webhook(admin, index):
    live = read(admin, index)
    live["webhooks"].append({**live["webhooks"][0], "name": "more.example.com"})
    assert REFUSED in replaced(admin, live, lambda _: None).stderr


@pytest.mark.parametrize("index", [0, 1], ids=["mutating", "validating"])
def test_it_changes_authorities(admin, index, tmp_path):
    authority = issue_certificates(tmp_path).authority.read_bytes()
    bundle = b64encode(authority).decode()
    live = read(admin, index)
    done = replaced(admin, live, lambda hook: hook["clientConfig"].update(caBundle=bundle))
    assert done.returncode == 0, done.stderr


def token(admin, account, *, namespace=ACCOUNTS, duration="72h"):
    words = ["create", "token", account, f"--namespace={namespace}", f"--duration={duration}"]
    return kubectl(admin, *words, f"--as={CERTS_USER}", check=False)


def claims(text):
    body = text.split(".")[1]
    return json.loads(b64decode(body + "=" * (-len(body) % 4), altchars=b"-_"))


@pytest.mark.parametrize("account", ["hyperjob-certs", "hyperjob-controller", "hyperjob-webhook"])
def test_it_renews_the_tokens_of_hyperjob_its_own_among_them(admin, account):
    """Without its own an administrator would have to make one every three days."""
    done = token(admin, account)
    assert done.returncode == 0, done.stderr
    found = claims(done.stdout)
    assert found["sub"] == f"system:serviceaccount:{ACCOUNTS}:{account}"
    assert found["exp"] - found["iat"] == 72 * 3600


@pytest.mark.parametrize(
    ("account", "namespace"),
    [("default", ACCOUNTS), ("default", "kube-system"), ("hyperjob-controller", "default")],
)
def test_it_makes_no_token_of_any_other_account(admin, account, namespace):
    done = token(admin, account, namespace=namespace)
    assert done.returncode
    assert "forbidden" in done.stderr.lower()


def test_it_neither_makes_accounts_nor_reads_secrets_nor_gives_rights(admin):
    for words in (
        ["create", "serviceaccounts"],
        ["get", "secrets"],
        ["list", "secrets"],
        ["create", "rolebindings"],
        ["create", "clusterrolebindings"],
        ["escalate", "clusterroles"],
        ["impersonate", "users"],
        ["create", "validatingadmissionpolicybindings"],
        ["delete", "validatingadmissionpolicies"],
        ["create", "mutatingwebhookconfigurations"],
        ["delete", "validatingwebhookconfigurations"],
    ):
        done = kubectl(
            admin, "auth", "can-i", *words, "-n", ACCOUNTS, f"--as={CERTS_USER}", check=False
        )
        assert done.stdout.strip().startswith("no"), (words, done.stdout, done.stderr)


def test_a_deleted_account_ends_its_tokens(admin):
    """What is done about a stolen token."""
    kubectl(admin, "create", "serviceaccount", "stolen", "-n", ACCOUNTS)
    made = kubectl(admin, "create", "token", "stolen", "-n", ACCOUNTS, "--duration=72h").stdout
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": made.strip()},
    }

    def authenticated():
        done = kubectl(admin, "create", "-o", "json", "-f", "-", stdin=json.dumps(review))
        return bool(json.loads(done.stdout)["status"].get("authenticated"))

    assert authenticated()
    kubectl(admin, "delete", "serviceaccount", "stolen", "-n", ACCOUNTS)
    wait_for(lambda: not authenticated(), what="the token to be refused")
