"""The kind scripts with stand-ins for docker, kind, kubectl, Helm and the network."""

import re
import shlex
from pathlib import Path

import pytest

from e2e.support.settings import from_environment
from tests.support.kindmachine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def starting(calls: list[str], *words: str) -> list[str]:
    return [call for call in calls if call.startswith(words)]


def test_it_goes_through_and_ends_with_the_line(machine: Machine) -> None:
    code, output, calls = machine.run("up.sh", VOLCANO_GLOBAL="1")
    assert code == 0, output
    out = machine.out
    assert output.splitlines()[-1].split() == [
        f"HYPERJOB_E2E_KUBECONFIG={out}/karmada.kubeconfig",
        f"HYPERJOB_E2E_MEMBERS=member1={out}/member1.kubeconfig,member2={out}/member2.kubeconfig",
        "HYPERJOB_E2E_ACCELERATOR=nvidia.com/gpu",
        "HYPERJOB_E2E_LOST_TIMEOUT=10",
        "make",
        "e2e",
    ]
    patched = [call for call in calls if " patch node/" in call]
    assert len(patched) == 4, "each worker of each member"
    assert (out / "karmada.kubeconfig").read_text() == "karmada\n"
    for name in ("controller-manager", "webhook-manager"):
        text = (out / f"volcano-global/{name}.yaml").read_text()
        assert text == f"image: volcanosh/volcano-global-{name}:v0.3.0\n"
    assert (out / "volcano-global/secret.yaml").read_text() == "secret of kubeconfig\n"
    assert (out / "hyperjob-member1.yaml").read_text().count("- role: worker\n") == 4
    for path in out.glob("**/*karmada*config"):
        assert path.stat().st_mode & 0o077 == 0, (
            "only its owner reads an administrator's kubeconfig"
        )


ORDER = (
    "kind create cluster --name hj-host --image node:x",
    "kind create cluster --name hj-a",
    "kubectl .* patch node/.*vendor.io/npu.*3",
    "karmadactl init",
    "kubectl .*volcano/v1.98.0/installer/volcano-development.yaml",
    "karmadactl join a ",
    "karmadactl join b ",
    "kubectl .* wait clusters.cluster.karmada.io --all --for condition=Ready --timeout 77s",
    "kubectl .*crd/bases/batch.volcano.sh_jobs.yaml",
    "kubectl .*crd/bases/scheduling.volcano.sh_queues.yaml",
)
GLOBAL = (
    "kubectl .* apply --filename .*/volcano-global/secret.yaml",
    "kubectl .*/volcano-global/controller-manager.yaml",
    "kubectl .* apply --filename .*/volcano-global/webhooks.yaml",
    "kubectl .* apply --filename .*/volcano-global/all-queue-propagation.yaml",
    "kubectl .*conflictResolution.:.Overwrite",
)
RELEASE = (
    "docker build",
    "kind load docker-image registry:5000/hj:1",
    "helm upgrade --install hyperjob .*image.repository=registry:5000/hj --set image.tag=1",
    "kubectl .*e2e/kind/default-queue.yaml",
    "kubectl .*status.state.=Open",
)


@pytest.mark.parametrize("volcano_global", ["0", "1"])
def test_commands_with_the_settings_come_in_the_order_that_they_need(
    machine: Machine, volcano_global: str
) -> None:
    changed = {"PREFIX": "hj", "MEMBERS": "a b", "WAIT": "77", "NODE_IMAGE": "node:x"}
    changed |= {"ACCELERATOR": "vendor.io/npu", "ACCELERATORS": "3", "VOLCANO_VERSION": "v1.98.0"}
    changed |= {"HYPERJOB_IMAGE": "registry:5000/hj:1", "VOLCANO_GLOBAL": volcano_global}
    code, output, calls = machine.run("up.sh", **changed)
    assert code == 0, output
    assert ("volcano-global" in output) == (volcano_global == "1")
    admission = "volcano-global" if volcano_global == "1" else "none"
    assert f"controller.queueAdmission={admission}" in output
    assert "interpreter" not in output  # Karmada's own would be in the way of ours
    rest = iter(calls)
    for words in (*ORDER, *(GLOBAL if volcano_global == "1" else ()), *RELEASE):
        assert any(re.match(words, call) for call in rest), f"{words!r} is missing, or too early"
    *variables, make, e2e = shlex.split(output.splitlines()[-1])
    assert (make, e2e) == ("make", "e2e")
    read = from_environment(dict(each.split("=", 1) for each in variables))
    assert (read.accelerator, list(read.members)) == ("vendor.io/npu", ["a", "b"])
    assert read.kubeconfig
    assert read.kubeconfig.exists()
    made = " ".join(starting(calls, "kind create"))
    assert all(f"--kubeconfig {path}" in made for path in read.members.values())


def test_down_leaves_nothing(machine: Machine) -> None:
    machine.run("up.sh", VOLCANO_GLOBAL="1")
    code, output, calls = machine.run("down.sh")
    assert code == 0, output
    assert len(starting(calls, "kind delete cluster")) == 3
    assert list(machine.out.iterdir()) == []
