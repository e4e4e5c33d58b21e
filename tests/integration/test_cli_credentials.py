"""`hyperjob credentials`: what it keeps works."""

import base64
import json
import time
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hyperjob.cli import main
from hyperjob_controller.insight.measures import Renewals
from tests.support.controlplane import ControlPlane

pytestmark = pytest.mark.scenario

ACCOUNTS = "karmada-system"


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, ["credentials", *words])
    assert done.exit_code == code, done.output
    return done.output


def renew(plane: ControlPlane, namespace: str, *more: str, code: int = 0) -> str:
    return run(
        *("renew", f"--karmada-kubeconfig=/nowhere:{plane.kubeconfig}"),
        *(f"--host-kubeconfig={plane.kubeconfig}", f"--namespace={namespace}"),
        *("--account=robot=robot-karmada", *more),
        code=code,
    )


def create_accounts(plane: ControlPlane, *names: str) -> None:
    plane.kubectl("create", "namespace", ACCOUNTS, check=False)  # it may be there
    for name in names:
        plane.kubectl("create", "serviceaccount", name, "-n", ACCOUNTS)


def test_it_keeps_a_kubeconfig_that_names_its_account(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    create_accounts(control_plane, "robot")
    told = renew(control_plane, namespace)
    assert "robot: the token in secret/robot-karmada expires at" in told
    read = control_plane.kubectl("get", "secret", "robot-karmada", "-n", namespace, "-o", "json")
    data = json.loads(read.stdout)["data"]
    for name, text in data.items():
        (tmp_path / name).write_bytes(base64.b64decode(text))
    config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    assert config["users"][0]["user"] == {"tokenFile": "token"}
    mine = ControlPlane(tmp_path / "kubeconfig", real=control_plane.real)
    asked = mine.kubectl("auth", "whoami", "-o", "json")
    user = json.loads(asked.stdout)["status"]["userInfo"]["username"]
    assert user == f"system:serviceaccount:{ACCOUNTS}:robot"

    control_plane.kubectl("delete", "serviceaccount", "robot", "-n", ACCOUNTS)
    host = (f"--host-kubeconfig={control_plane.kubeconfig}", f"--namespace={namespace}")
    assert run("delete", *host, "robot-karmada", "other").splitlines() == [
        "secret/robot-karmada deleted",
        "secret/other not found",
    ]
    assert run("delete", *host, "robot-karmada") == "secret/robot-karmada not found\n"


def test_an_account_that_is_missing_is_named_with_the_next_step(
    control_plane: ControlPlane, namespace: str
) -> None:
    said = renew(control_plane, namespace, code=1)
    assert f"service account {ACCOUNTS}/robot does not exist" in said
    assert "hyperjob install --service-accounts" in said
    assert "must be ACCOUNT=SECRET" in renew(control_plane, namespace, "--account=x", code=2)


def test_the_controllers_secret_records_the_renewal_of_every_token(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    create_accounts(control_plane, "hyperjob-controller", "hyperjob-certs")
    flags = (f"--karmada-kubeconfig={control_plane.kubeconfig}", f"--namespace={namespace}")
    flags += (f"--host-kubeconfig={control_plane.kubeconfig}",)
    accounts = ("--account=hyperjob-controller=main", "--account=hyperjob-certs=certs")

    def recorded() -> dict[str, float]:
        """Return what the metrics of a controller beside the Secret's files show."""
        read = control_plane.kubectl("get", "secret", "main", "-n", namespace, "-o", "json")
        file = tmp_path / "renewals.json"
        file.write_bytes(base64.b64decode(json.loads(read.stdout)["data"]["renewals.json"]))
        return {
            f"{sample.labels['account']} {family.name.split('_')[2]}": sample.value
            for family in Renewals(file).collect()
            for sample in family.samples
        }

    before = time.time()
    run("renew", *flags, *accounts, "--days=1")
    first = recorded()
    for name in ("hyperjob-controller", "hyperjob-certs"):
        assert before - 1 <= first[f"{name} renewed"] <= time.time()
        assert first[f"{name} expiry"] == pytest.approx(before + 86400, abs=60)

    # One that fails keeps its last times, and no other from its renewal.
    control_plane.kubectl("delete", "serviceaccount", "hyperjob-certs", "-n", ACCOUNTS)
    said = run("renew", *flags, *reversed(accounts), "--days=2", code=1)
    assert f"service account {ACCOUNTS}/hyperjob-certs does not exist" in said
    second = recorded()
    assert second["hyperjob-certs expiry"] == first["hyperjob-certs expiry"]
    assert second["hyperjob-controller expiry"] == pytest.approx(before + 2 * 86400, abs=60)
    run("renew", *flags, accounts[0])
    assert set(recorded()) == {"hyperjob-controller renewed", "hyperjob-controller expiry"}
    control_plane.kubectl("delete", "serviceaccount", "hyperjob-controller", "-n", ACCOUNTS)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a": 1, "b": {"renewed": "x", "expires": 3}, "c": {"expires": true}}']
)
def test_a_record_of_another_form_shows_nothing(text: str, tmp_path: Path) -> None:
    file = tmp_path / "renewals.json"
    assert not [sample for family in Renewals(file).collect() for sample in family.samples]
    file.write_text(text)
    assert not [sample for family in Renewals(file).collect() for sample in family.samples]
