"""What the kind scripts would run, by settings; nothing is run."""

import itertools
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from e2e.support.settings import from_environment

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "e2e/kind"
SETTINGS = FOLDER / "settings.sh"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
TOGGLES = [
    {"VOLCANO_GLOBAL": volcano_global, "HYPERJOB_E2E_LOCAL": local}
    for volcano_global, local in itertools.product("01", "01")
]
# Each word that a command has to have, in the order of the commands.
BASE = [
    "kind create cluster --name hyperjob-host",
    "kind create cluster --name hyperjob-member1",
    "patch node/WORKER-OF-member1 --subresource=status",
    "karmadactl-v1.18.2 init",
    "volcano/v1.15.1/installer/volcano-development.yaml",
    "karmadactl-v1.18.2 join member1",
    "karmadactl-v1.18.2 join member2",
    "wait clusters.cluster.karmada.io --all --for condition=Ready",
    "crd/bases/batch.volcano.sh_jobs.yaml",
    "crd/bases/scheduling.volcano.sh_queues.yaml",
]
GLOBAL = [
    "apply --filename /out/volcano-global/secret.yaml",
    "/out/volcano-global/controller-manager.yaml",
    "apply --filename /out/volcano-global/webhooks.yaml",
    "apply --filename /out/volcano-global/all-queue-propagation.yaml",
    '\'{"spec":{"conflictResolution":"Overwrite"}}\'',
]
RELEASE = ["docker build", "kind load docker-image hyperjob:e2e", "helm upgrade --install hyperjob"]
LOCAL = ["bin/hyperjob install --kubeconfig /out/karmada.kubeconfig --skip webhooks"]
QUEUE = ["e2e/kind/default-queue.yaml", "'jsonpath={.status.state}=Open'"]


def commands(script: str, **settings: str) -> list[str]:
    """Print what a script would run, on a machine that has nothing but bash."""
    done = subprocess.run(
        ["/bin/bash", FOLDER / script, "--dry-run"],
        env={"PATH": os.defpath, "OUT": "/out", **settings},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def told(lines: list[str]) -> dict[str, str]:
    """Read the line that runs the scenarios."""
    *variables, make, e2e = shlex.split(lines[-1])
    assert (make, e2e) == ("make", "e2e")
    return dict(each.split("=", 1) for each in variables)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_bash_understands_it(script: Path) -> None:
    done = subprocess.run(["/bin/bash", "-n", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("toggles", TOGGLES, ids=lambda each: "-".join(each.values()))
def test_commands_come_in_the_order_that_they_need(toggles: dict[str, str]) -> None:
    lines = commands("up.sh", **toggles)
    expected = (
        BASE
        + (GLOBAL if toggles["VOLCANO_GLOBAL"] == "1" else [])
        + (LOCAL if toggles["HYPERJOB_E2E_LOCAL"] == "1" else RELEASE)
        + QUEUE
    )
    rest = iter(lines)
    for words in expected:
        assert any(words in line for line in rest), f"{words!r} is missing, or comes too early"


@pytest.mark.parametrize("toggles", TOGGLES, ids=lambda each: "-".join(each.values()))
def test_only_what_was_asked_for_is_installed(toggles: dict[str, str]) -> None:
    text = "\n".join(commands("up.sh", **toggles))
    volcano_global, local = (value == "1" for value in toggles.values())
    assert ("volcano-global" in text) == volcano_global
    assert ("helm " in text) == ("docker build" in text) == (not local)
    assert ("bin/hyperjob install" in text) == local
    if not local:
        admission = "volcano-global" if volcano_global else "none"
        assert f"controller.queueAdmission={admission}" in text
    # Their interpreters would be in the way of ours.
    assert "interpreter" not in text


@pytest.mark.parametrize("toggles", TOGGLES, ids=lambda each: "-".join(each.values()))
def test_the_line_names_kubeconfigs_that_were_written(toggles: dict[str, str]) -> None:
    lines = commands("up.sh", **toggles)
    read = from_environment(told(lines))
    assert read.local == (toggles["HYPERJOB_E2E_LOCAL"] == "1")
    assert (read.address == "127.0.0.1") == (not read.local)
    assert list(read.members) == ["member1", "member2"]
    written = {
        match[1]
        for line in lines
        for pattern in (r"kind create cluster .*--kubeconfig (\S+)", r"\+ cp \S+ (\S+)$")
        if (match := re.search(pattern, line))
    }
    assert {str(read.kubeconfig), *map(str, read.members.values())} <= written
    used = {
        path for line in lines for path in re.findall(r"--(?:cluster-)?kubeconfig (/out\S+)", line)
    }
    assert used == written


def test_every_setting_has_a_default_and_can_be_changed() -> None:
    assigned = re.findall(r"^([A-Z_0-9]+)=(.*)$", SETTINGS.read_text(), re.MULTILINE)
    fixed = {"ROOT", "HOST", "HOST_KUBECONFIG", "KARMADA_KUBECONFIG"}
    names = {name for name, _ in assigned} - fixed
    for name, value in assigned:
        assert name in fixed or re.match(rf"\$\{{{name}:-[^}}\s]", value), name
    used = set(re.findall(r"\$\{?([A-Z][A-Z_0-9]+)", "".join(p.read_text() for p in SCRIPTS)))
    local = {"BASH_SOURCE", "KARMADACTL", "VOLCANO"}
    assert used - local == names | fixed


def test_changed_settings_reach_the_commands() -> None:
    changed = {
        "PREFIX": "hj",
        "MEMBERS": "a b c",
        "MEMBER_NODES": "2",
        "ACCELERATOR": "vendor.io/npu",
        "ACCELERATORS": "3",
        "WAIT": "77",
        "NODE_IMAGE": "node:x",
        "KARMADA_VERSION": "v1.99.0",
        "VOLCANO_VERSION": "v1.98.0",
        "VOLCANO_GLOBAL_VERSION": "v0.97.0",
        "HYPERJOB_IMAGE": "registry:5000/hj:1",
        "VOLCANO_GLOBAL": "1",
    }
    lines = commands("up.sh", **changed)
    text = "\n".join(lines)
    for words in (
        "kind create cluster --name hj-c --image node:x",
        "kind_config 2 > /out/hj-c.yaml",
        '"capacity":{"vendor.io/npu":"3"}',
        "--timeout 77s",
        "download/v1.99.0/karmadactl-linux-",
        "volcano/v1.98.0/",
        "volcano-global/v0.97.0/",
        ":latest|\\1:v0.97.0|",
        "--set image.repository=registry:5000/hj --set image.tag=1",
        "--cluster-context kind-hj-a",
    ):
        assert words in text, words
    assert "hyperjob-" not in text.replace(str(ROOT), "")
    assert told(lines)["HYPERJOB_E2E_ACCELERATOR"] == "vendor.io/npu"
    assert list(from_environment(told(lines)).members) == ["a", "b", "c"]


def test_down_takes_away_every_cluster_and_file_that_up_makes() -> None:
    lines = commands("up.sh", VOLCANO_GLOBAL="1")
    made = "\n".join(line for line in lines if line.startswith("+ "))
    gone = "\n".join(commands("down.sh"))
    clusters = set(re.findall(r"kind create cluster --name (\S+)", made))
    assert clusters == set(re.findall(r"kind delete cluster --name (\S+)", gone))
    files = set(re.findall(r"/out/[^/\s']+", made))
    assert files == set(re.findall(r"/out/[^/\s']+", gone))


def test_an_unknown_argument_is_refused() -> None:
    done = subprocess.run(
        ["/bin/bash", FOLDER / "up.sh", "--dryrun"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "unknown argument --dryrun" in done.stderr
