"""A second `hyperjob install` repeats the first; wrong authorities and addresses are refused."""

import base64
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from click.testing import CliRunner, Result

from hyperjob.cli import main
from hyperjob_certs.__main__ import main as certificates
from tests.integration.test_install import findings, leading, serving_webhook, webhook
from tests.support.controlplane import ControlPlane, control_plane
from tests.support.embedded import crd_files
from tests.support.processes import free_port

pytestmark = pytest.mark.scenario

Run = Callable[..., Result]
Damage = Callable[[ControlPlane], None]
ACCOUNT = "system:serviceaccount:karmada-system:hyperjob-controller"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run an API server on which Roles decide."""
    with control_plane(tmp_path_factory.mktemp("plane"), rbac=True) as plane:
        # A real server without controllers would never finish deleting it.
        plane.kubectl("create", "namespace", "karmada-system")
        yield plane


@pytest.fixture
def run(plane: ControlPlane) -> Iterator[Run]:
    """Run a command of the installer; the installation is removed at the end."""

    def invoke(command: str, *arguments: str, code: int = 0) -> Result:
        server = ["--kubeconfig", str(plane.kubeconfig)]
        result = CliRunner().invoke(main, [command, *server, *arguments])
        assert result.exit_code == code, result.output
        return result

    yield invoke
    invoke("uninstall", "--force")


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.crt")
    return made


def subjects(plane: ControlPlane) -> set[str]:
    """Return the names of the subjects of the controller's binding."""
    found = plane.kubectl("get", "clusterrolebinding", "hyperjob-controller", "-o", "json")
    return {f"{each['kind']}/{each['name']}" for each in json.loads(found.stdout)["subjects"]}


def listed(plane: ControlPlane, kind: str) -> list[str]:
    return plane.kubectl("get", kind, "-o", "name").stdout.split()


def test_without_options_an_installation_is_repeated(
    plane: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    port = free_port()
    address = ("--webhook-url", f"https://127.0.0.1:{port}", "--ca-file", str(tmp_path / "ca.crt"))
    parts = ("--with", "tenancy", "--members", "nodes")
    with webhook(authority, port, tmp_path):
        run("install", "--service-accounts", *parts, *address)
    assert subjects(plane) == {"ServiceAccount/hyperjob-controller"}
    policies = listed(plane, "validatingadmissionpolicy")

    assert run("install").stdout.startswith("Nothing to change")
    assert run("install", *address).stdout.startswith("Nothing to change")
    assert run("install", "--skip", "webhooks").stdout.startswith("Nothing to change")
    assert run("install").stdout.startswith("Nothing to change")
    assert listed(plane, "validatingadmissionpolicy") == policies


def remedy(result: Result, check: str) -> dict[str, Any]:
    return findings(result)[check]


def test_preflight_prints_the_command_that_gives_the_controller_its_rights_back(
    plane: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    with webhook(authority, port, tmp_path):
        run(
            *("install", "--service-accounts", "--with", "tenancy", "--webhook-url", url),
            *("--ca-file", str(tmp_path / "ca.crt")),
        )
    lease = leading()
    user = f"{ACCOUNT}\nsystem:serviceaccounts\nsystem:authenticated"
    lease["metadata"]["annotations"]["training.volcano.sh/controller-user"] = user
    plane.kubectl("create", "-f", "-", stdin=json.dumps(lease))
    before = remedy(run("preflight", "-o", "json", code=1), "controller-rights")
    assert before["status"] == "ok"

    run("install", "--user-prefix", "hyperjob-")
    after = remedy(run("preflight", "-o", "json", code=1), "controller-rights")
    assert after["status"] == "failed"
    assert f"the controller's user {ACCOUNT} may not list hyperjobs" in after["message"]
    command = after["remedy"]
    assert "--service-accounts --with tenancy" in command
    assert CliRunner().invoke(main, command.split()[1:]).exit_code == 0
    again = remedy(run("preflight", "-o", "json", code=1), "controller-rights")
    assert again["status"] == "ok"


def remove(*what: str) -> Damage:
    return lambda plane: plane.kubectl("delete", *what) and None


def create(*objects: dict[str, Any]) -> Damage:
    def damage(plane: ControlPlane) -> None:
        for each in objects:
            plane.kubectl("create", "-f", "-", stdin=json.dumps(each))

    return damage


def replace_definition(plane: ControlPlane) -> None:
    """Let another field manager's older definition replace ours, and let more be missing."""
    (crd,) = [path for path in crd_files() if path.name.endswith("hyperjobs.yaml")]
    definition = yaml.safe_load(crd.read_text())
    (version,) = definition["spec"]["versions"]
    del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["quorum"]
    plane.kubectl("replace", "-f", "-", stdin=json.dumps(definition))
    plane.kubectl("delete", "queue", "default")


def inject_another_authority(plane: ControlPlane) -> None:
    bundle = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    for kind in ("mutating", "validating"):
        name = f"{kind}webhookconfiguration/hyperjob-{kind}"
        path = "/webhooks/{}/clientConfig/caBundle"
        hooks = json.loads(plane.kubectl("get", name, "-o", "json").stdout)["webhooks"]
        patch = [
            {"op": "replace", "path": path.format(at), "value": bundle} for at in range(len(hooks))
        ]
        plane.kubectl("patch", name, "--type=json", "-p", json.dumps(patch))


def interpreter(name: str, operation: str, kind: str = "Queue") -> dict[str, Any]:
    group = {"Queue": "scheduling.volcano.sh/v1beta1", "Job": "batch.volcano.sh/v1alpha1"}[kind]
    return {
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": name},
        "spec": {
            "target": {"apiVersion": group, "kind": kind},
            "customizations": {operation: {"luaScript": "function f() end"}},
        },
    }


GONE = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "gone"},
    "webhooks": [
        {
            "name": "gone.example.org",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [
                {
                    "apiGroups": ["batch.volcano.sh"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE"],
                    "resources": ["jobs"],
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
MUTATING = ("mutatingwebhookconfiguration", "hyperjob-mutating")
DAMAGES: dict[str, tuple[Damage, dict[str, str]]] = {
    "the mutating webhook is gone": (remove(*MUTATING), {"webhook-answers": "are missing"}),
    "another authority": (inject_another_authority, {"webhook-answers": "does not verify"}),
    "a definition of another": (
        replace_definition,
        {"default-queue": "does not exist", "hyperjob-definition": "lacks spec.quorum"},
    ),
    "Volcano Global's customization": (
        create(interpreter("queue-configuration", "statusAggregation")),
        {"interpreters": "conflict with HyperJob's"},
    ),
    "a webhook without a process": (create(GONE), {"vcjobs": "no process answers a webhook"}),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_remedy_works_as_it_is_printed(
    case: str, plane: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    damage, said = DAMAGES[case]
    port = free_port()
    address = ("--webhook-url", f"https://127.0.0.1:{port}", "--ca-file", str(tmp_path / "ca.crt"))
    programs = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with webhook(authority, port, tmp_path):
        run("install", "--with", "tenancy", *address)
        damage(plane)
        found = findings(run("preflight", "-o", "json", code=1))
        assert {check: text in found[check]["message"] for check, text in said.items()} == (
            dict.fromkeys(said, True)
        ), found
        # The first alone: it repairs the others too, or stands for them.
        command = found[next(iter(said))]["remedy"].rpartition(" uninstalled: ")[2]
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=programs, capture_output=True, text=True
        )
        assert done.returncode == 0, (command, done.stderr + done.stdout)
        found = findings(run("preflight", "-o", "json", code=1))
        repaired = {check: found[check]["message"] for check in said}
        assert not [text for check, text in said.items() if text in repaired[check]], repaired


def test_a_certificate_gets_the_name_that_the_api_server_calls_as_it_is_printed(
    plane: ControlPlane, run: Run, tmp_path: Path
) -> None:
    port = free_port()
    for name in ("host.config", "karmada.config"):
        shutil.copy(plane.kubeconfig, tmp_path / name)
    secret = ("--secret=karmada-system/hyperjob-webhook-tls", f"--kubeconfig={plane.kubeconfig}")

    def files() -> None:
        """Write the files of the Secret as a kubelet does."""
        text = plane.kubectl(
            *("get", "secret", "hyperjob-webhook-tls", "-n", "karmada-system", "-o", "json")
        ).stdout
        for name, data in json.loads(text)["data"].items():
            (tmp_path / name).write_bytes(base64.b64decode(data))

    assert certificates(["issue", *secret, "--name=127.0.0.1"]) == 0
    files()
    address = ("--webhook-url", f"https://127.0.0.1:{port}", "--ca-file", str(tmp_path / "ca.crt"))
    with serving_webhook(port, tmp_path):
        run("install", *address)
    assert certificates(["rotate", *secret, "--name=other.example"]) == 0
    files()
    with serving_webhook(port, tmp_path):
        found = findings(run("preflight", "-o", "json", code=1))["webhook-answers"]
    assert "lacks the name under which the API server calls the webhook" in found["message"]
    with contextlib.chdir(tmp_path):
        assert certificates(shlex.split(found["remedy"])[1:]) == 0
    files()
    with serving_webhook(port, tmp_path):
        found = findings(run("preflight", "-o", "json", code=1))
    assert found["webhook-answers"]["status"] == "ok"
    plane.kubectl("delete", "secret", "hyperjob-webhook-tls", "-n", "karmada-system")


def test_a_wrong_authority_is_refused_before_it_is_registered(
    plane: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    other = tmp_path / "other.crt"
    trustme.CA().cert_pem.write_to_path(other)
    port = free_port()
    with webhook(authority, port, tmp_path):
        address = ("--webhook-url", f"https://127.0.0.1:{port}", "--ca-file", str(other))
        said = " ".join(run("install", *address, code=1).stderr.split())
        assert "does not trust the webhook's certificate" in said
        assert "the webhook configurations are unchanged" in said
        assert not listed(plane, "mutatingwebhookconfiguration")
        # The record has the address already; a right authority is all that is missing.
        right = ("--webhook-url", f"https://127.0.0.1:{port}")
        run("install", *right, "--ca-file", str(tmp_path / "ca.crt"))
        assert listed(plane, "mutatingwebhookconfiguration") == [
            "mutatingwebhookconfiguration.admissionregistration.k8s.io/hyperjob-mutating"
        ]
