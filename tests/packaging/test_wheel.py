"""The wheel holds what a user needs, and works away from the checkout."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LUA = sorted((ROOT / "hyperjob/install/lua").glob("*.lua"))
CRDS = sorted((ROOT / "hyperjob/sandbox/crds").glob("*.yaml"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = out.glob("*.whl")
    return built


def test_its_top_level_is_the_four_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert top == {"hyperjob", "webhook", "controller", "certs"}


def test_it_carries_types_crds_examples_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{p}/py.typed" for p in ("hyperjob", "webhook", "controller", "certs")} <= names
    assert "hyperjob/_data/crds/training.volcano.sh_hyperjobs.yaml" in names
    assert "hyperjob/_data/examples/llm-training.yaml" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_it_carries_what_is_read_from_beside_the_code(wheel: Path) -> None:
    """Lua that Karmada runs, and the CRDs of the sandbox: no import would miss them."""
    names = set(zipfile.ZipFile(wheel).namelist())
    scripts = {f"hyperjob/install/lua/{path.name}" for path in LUA}
    crds = {f"hyperjob/sandbox/crds/{path.name}" for path in CRDS}
    assert len(scripts) >= 5
    assert crds
    assert scripts | crds <= names


@pytest.mark.scenario
def test_its_commands_run_in_an_environment_without_the_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=60)
    subprocess.run(
        [venv / "bin/pip", "install", "--quiet", "--no-deps", "--no-index", wheel],
        check=True,
        timeout=60,
    )
    # Dependencies come from this environment by path, which does not read the checkout's .pth file.
    env = {**os.environ, "PYTHONPATH": sysconfig.get_paths()["purelib"]}
    for command in ("hyperjob", "kubectl-hyperjob", "hyperjob-webhook", "hyperjob-controller"):
        done = subprocess.run(
            [venv / "bin" / command, "--help"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert "usage" in done.stdout.lower()
    completed = subprocess.run(
        [venv / "bin" / "kubectl_complete-hyperjob", "mig"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert completed.stdout.startswith("migrate\t"), completed.stderr
    where = subprocess.run(
        [venv / "bin/python", "-c", "import hyperjob, webhook; print(hyperjob.__file__)"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert where.stdout.startswith(str(venv))
