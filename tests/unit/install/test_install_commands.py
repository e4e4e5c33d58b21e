"""`hyperjob install`, `uninstall` and `credentials` as commands, on an API server in memory."""

import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hyperjob.cli import main
from hyperjob_certs.x509 import issue_ca
from hyperjob_core.kube import config
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CRDS,
    HYPERJOBS,
    RESOURCE_BINDINGS,
    RESOURCE_INTERPRETERS,
    SECRETS,
)
from hyperjob_install import credentials
from hyperjob_install.manifest import manifest
from hyperjob_install.settings import Settings
from tests.support.apiserver import refusal
from tests.unit.install.observations import ca_pem
from tests.unit.install.servers import InstallServer

Run = Callable[..., Result]
SKIP = ("--skip", "webhooks")
HOOK = Settings(url="https://hook")


@pytest.fixture
def server() -> InstallServer:
    made = InstallServer()
    needed = (CLUSTER_PROPAGATION_POLICIES, RESOURCE_BINDINGS, RESOURCE_INTERPRETERS)
    made.groups = [each.group for each in needed]
    return made


@pytest.fixture
def run(server: InstallServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    server.serve(monkeypatch)
    return lambda *words: CliRunner().invoke(main, list(words), env={"COLUMNS": "300"})


def test_an_installation_prints_its_changes_and_the_next_step(
    run: Run, server: InstallServer
) -> None:
    dry = run("install", *SKIP, "--dry-run")
    assert (dry.exit_code, server.calls) == (0, [])
    assert "Next:" not in dry.stdout
    done = run("install", *SKIP)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "Next: hyperjob preflight"
    assert server.items(CRDS) != []
    again = run("install", *SKIP, "-o", "json")
    assert json.loads(again.stdout)["changes"] != []
    assert "created" not in again.stdout


def test_an_installation_without_an_address_of_the_webhook_is_wrong_usage(
    run: Run, server: InstallServer
) -> None:
    found = run("install")
    assert found.exit_code == 2
    assert "give either --webhook-url or --webhook-service" in found.stderr
    assert server.calls == []


def test_settings_of_the_last_run_stay_and_changes_are_said_before_the_first_write(
    run: Run, server: InstallServer
) -> None:
    assert run("install", *SKIP, "--with", "ui", "--members", "pods").exit_code == 0
    found = run("install", *SKIP, "--with", "tenancy", "--without", "ui")
    lines = [line for line in found.stdout.splitlines() if line.startswith("changes of this")]
    assert lines == ["changes of this installation: with: ui -> tenancy"]
    as_json = run("install", *SKIP, "--members", "off", "-o", "json")
    assert as_json.stderr == "changes of this installation: members: pods -> off\n"
    json.loads(as_json.stdout)
    (record,) = server.items(CONFIG_MAPS)
    assert record["data"]["with"] == "tenancy"
    assert record["data"]["members"] == "off"


def test_another_helm_release_is_not_taken_over_unless_it_is_allowed(
    run: Run, server: InstallServer
) -> None:
    server.install(manifest(replace(HOOK, release="a/one")))
    found = run("install", *SKIP, "--release", "a/two")
    assert found.exit_code == 1
    assert "the Helm release a/one has installed HyperJob in this Karmada" in found.stderr
    assert server.calls == []
    assert run("install", *SKIP, "--release", "a/two", "--allow", "conflicts").exit_code == 0


def test_problems_end_the_command_before_the_first_write(run: Run, server: InstallServer) -> None:
    server.refuses_dry_run["hyperjob-controller"] = refusal(403, "Forbidden", "no rights")
    found = run("install", *SKIP)
    assert found.exit_code == 1
    assert "no object was changed, because of these problems:" in found.stderr
    assert "clusterrole.rbac.authorization.k8s.io/hyperjob-controller: no rights" in found.stderr
    assert server.calls == []
    as_json = run("install", *SKIP, "-o", "json")
    assert json.loads(as_json.stdout)["problems"] != []


def test_a_write_that_is_refused_comes_after_the_changes_that_were_made(
    run: Run, server: InstallServer
) -> None:
    server.fails = lambda verb, resource, _name: (
        refusal(403, "Forbidden", "no") if verb == "apply" and resource is CLUSTER_ROLES else None
    )
    found = run("install", *SKIP)
    assert found.exit_code == 1
    assert "hyperjobs.training.volcano.sh" in found.stdout
    assert "Next:" not in found.stdout
    assert "the objects before it are applied: run the command again" in found.stderr
    as_json = run("install", *SKIP, "-o", "json")
    assert "run the command again" in json.loads(as_json.stdout)["error"]


def test_an_authority_beside_an_expired_one_is_written(
    run: Run, server: InstallServer, tmp_path: Path
) -> None:
    file = tmp_path / "ca.crt"
    now = datetime.now(UTC)
    valid = issue_ca(common_name="x", lifetime=timedelta(days=9), now=now).certificate
    file.write_bytes(ca_pem(-1) + valid)
    found = run(
        "install", "--webhook-url", "https://h", "--ca-file", str(file), "--dry-run", "-o", "json"
    )
    assert found.exit_code == 0, found.output
    assert "hyperjob-mutating" in found.stdout


def test_hyperjobs_are_not_left_without_a_controller_unless_it_is_forced(
    run: Run, server: InstallServer
) -> None:
    server.install(manifest(HOOK))
    server.put(HYPERJOBS, {"metadata": {"name": "h", "namespace": "n"}})
    kept = run("uninstall")
    assert kept.exit_code == 1
    assert "1 HyperJob exists: n/h; delete them first" in kept.stderr
    assert "--force leaves them without webhooks" in kept.stderr
    gone = run("uninstall", "--delete-crds")
    assert "--force deletes all of them, and their vcjobs in the members" in gone.stderr
    assert server.calls == []
    assert run("uninstall", "--force").exit_code == 0
    assert server.items(CLUSTER_ROLES) == []
    assert server.items(CRDS) != []


def test_an_uninstall_deletes_definitions_where_it_is_asked_to(
    run: Run, server: InstallServer
) -> None:
    server.install(manifest(HOOK))
    dry = run("uninstall", "--delete-crds", "--dry-run")
    assert (dry.exit_code, server.calls) == (0, [])
    done = run("uninstall", "--delete-crds")
    assert done.exit_code == 0, done.output
    assert server.items(CRDS) == []


def test_an_uninstall_of_one_release_leaves_another(run: Run, server: InstallServer) -> None:
    server.install(manifest(replace(HOOK, release="a/one")))
    found = run("uninstall", "--release", "a/two")
    assert found.exit_code == 0
    assert "the Helm release a/one has installed HyperJob" in found.stderr
    assert server.calls == []
    assert run("uninstall", "--release", "a/one").exit_code == 0
    assert server.items(CLUSTER_ROLES) == []


def test_tokens_are_renewed_for_each_account_and_secrets_deleted(
    run: Run, server: InstallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load(_given: str) -> Connection:
        return Connection(server="https://karmada")

    monkeypatch.setattr(config, "load", load)
    monkeypatch.setattr(credentials, "HttpTransport", lambda _connection, user_agent: server)
    words = ["credentials", "renew", "--karmada-kubeconfig", "k", "-n", "host"]
    pairs = ["--account", "hyperjob-certs=certs", "--account", "hyperjob-ui=ui"]
    found = run(*words, *pairs, "--days", "2")
    assert found.stdout.splitlines() == [
        "hyperjob-certs: the token in secret/certs expires at 2027-01-02T00:00:00+00:00",
        "hyperjob-ui: the token in secret/ui expires at 2027-01-02T00:00:00+00:00",
    ]
    assert [each["spec"]["expirationSeconds"] for each in server.tokens] == [172800] * 2
    certs, page = (server.get(SECRETS, f"host/{name}")["data"] for name in ("certs", "ui"))
    assert (set(certs), set(page)) == (
        {"kubeconfig", "token"},
        {"kubeconfig", "token", "session.key"},
    )
    assert len(b64decode(page["session.key"])) == 32
    run(*words, *pairs)
    again = server.get(SECRETS, "host/ui")["data"]
    assert again["session.key"] == page["session.key"], "a renewal ends no session"
    for pair in ("certs", "=certs", "certs="):
        wrong = run(*words, "--account", pair)
        assert wrong.exit_code == 2
        assert f"--account '{pair}' must be ACCOUNT=SECRET" in wrong.stderr
    gone = run("credentials", "delete", "-n", "host", "certs", "none")
    assert gone.stdout.splitlines() == ["secret/certs deleted", "secret/none not found"]
    server.fails = lambda *_: refusal(403, "Forbidden", "no rights")
    refused = run("credentials", "delete", "-n", "host", "ui")
    assert refused.exit_code == 1
    assert "no rights" in refused.stderr
