"""A second `hyperjob install` repeats the first; wrong authorities and addresses are refused."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from click.testing import CliRunner, Result

from hyperjob.cli import main
from tests.integration.test_install import findings, leading, webhook
from tests.support.controlplane import ControlPlane, control_plane
from tests.support.embedded import crd_files
from tests.support.processes import free_port

pytestmark = pytest.mark.scenario

Run = Callable[..., Result]
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


def test_a_change_needs_its_option_and_is_printed_before_it_is_written(
    plane: ControlPlane, run: Run
) -> None:
    run("install", "--service-accounts", "--with", "tenancy", "--skip", "webhooks")
    tried = run("install", "--user-prefix", "team:", "--skip", "webhooks", "--dry-run").stdout
    assert (
        "changes of this installation: accounts: ServiceAccounts hyperjob-* in namespace"
        " karmada-system -> users team:*"
    ) in tried
    assert subjects(plane) == {"ServiceAccount/hyperjob-controller"}
    off = run("install", "--without", "tenancy", "--skip", "webhooks").stdout
    assert "changes of this installation: tenancy: on -> off" in off
    assert "7 deleted" in off
    said = run("install", "--skip", "rbac", "--skip", "webhooks").stdout
    assert "changes of this installation: skipped parts: none -> rbac" in said
    back = run("install", "--skip", "none", "--skip", "webhooks").stdout
    assert "changes of this installation: skipped parts: rbac -> none" in back
    assert "give either --webhook-url or --webhook-service" in run("install", code=2).stderr


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


@pytest.mark.parametrize(
    "lost", [("mutating",), ("validating",), ("mutating", "validating")], ids=" and ".join
)
def test_the_remedy_for_lost_webhook_configurations_works_as_it_is_printed(
    lost: tuple[str, ...], plane: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    port = free_port()
    address = ("--webhook-url", f"https://127.0.0.1:{port}", "--ca-file", str(tmp_path / "ca.crt"))
    with webhook(authority, port, tmp_path):
        run("install", *address)
        (tmp_path / "ca.crt").unlink()
        for kind in lost:
            plane.kubectl("delete", f"{kind}webhookconfiguration", f"hyperjob-{kind}")
        found = remedy(run("preflight", "-o", "json", code=1), "webhook-answers")
        assert found["status"] == "failed"
        assert "webhook configurations are missing" in found["message"]
        done = CliRunner().invoke(main, shlex.split(found["remedy"])[1:])
        assert done.exit_code == 0, done.output
        for check in ("webhook-ca", "webhook-answers"):
            assert remedy(run("preflight", "-o", "json", code=1), check)["status"] == "ok"


def test_the_remedy_for_a_definition_of_another_works_as_it_is_printed(
    plane: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    port = free_port()
    (crd,) = [path for path in crd_files() if path.name.endswith("hyperjobs.yaml")]
    definition = yaml.safe_load(crd.read_text())
    (version,) = definition["spec"]["versions"]
    del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["quorum"]
    address = ("--webhook-url", f"https://127.0.0.1:{port}", "--ca-file", str(tmp_path / "ca.crt"))
    with webhook(authority, port, tmp_path):
        run("install", *address)
        plane.kubectl("delete", "crd", "hyperjobs.training.volcano.sh")
        plane.kubectl("create", "-f", "-", stdin=json.dumps(definition))
        plane.kubectl("wait", "--for=condition=Established", "-f", str(crd), "--timeout=30s")
        found = remedy(run("preflight", "-o", "json", code=1), "hyperjob-definition")
        assert "is older than this release and lacks spec.quorum" in found["message"]
        done = CliRunner().invoke(main, shlex.split(found["remedy"])[1:])
        assert done.exit_code == 0, done.output
        found = remedy(run("preflight", "-o", "json", code=1), "hyperjob-definition")
        assert found["status"] == "ok"


WRONG = {
    "another authority": ("https://127.0.0.1:{port}", "does not trust the webhook's certificate"),
    "a port where nothing listens": ("https://127.0.0.1:1", "does not reach the webhook at https"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_authority_or_port_is_refused_before_it_is_registered(
    case: str, plane: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    url, expected = WRONG[case]
    other = tmp_path / "other.crt"
    trustme.CA().cert_pem.write_to_path(other)
    port = free_port()
    ca = other if "{port}" in url else tmp_path / "ca.crt"
    with webhook(authority, port, tmp_path):
        refused = run(
            *("install", "--webhook-url", url.format(port=port), "--ca-file", str(ca)), code=1
        )
        said = " ".join(refused.stderr.split())
        assert expected in said
        assert "the webhook configurations are unchanged" in said
        assert not listed(plane, "mutatingwebhookconfiguration")
        # The record has the address already; a right authority is all that is missing.
        right = ("--webhook-url", f"https://127.0.0.1:{port}")
        run("install", *right, "--ca-file", str(tmp_path / "ca.crt"))
        assert listed(plane, "mutatingwebhookconfiguration") == [
            "mutatingwebhookconfiguration.admissionregistration.k8s.io/hyperjob-mutating"
        ]


def test_preflight_compares_the_served_chain_with_the_authorities(
    plane: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    port = free_port()
    with webhook(authority, port, tmp_path):
        run(
            *("install", "--webhook-url", f"https://127.0.0.1:{port}"),
            *("--ca-file", str(tmp_path / "ca.crt")),
        )
        assert remedy(run("preflight", "-o", "json", code=1), "webhook-ca")["status"] == "ok"
    with webhook(trustme.CA(), port, tmp_path):
        found = remedy(run("preflight", "-o", "json", code=1), "webhook-ca")
    assert found["status"] == "failed"
    assert "caBundle does not verify the certificate chain" in found["message"]
    assert found["remedy"] == (
        f"hyperjob-certs inject --kubeconfig {plane.kubeconfig} --ca-file ca.crt"
    )
