"""The wheel holds what a user needs, and works away from the checkout."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import hyperjob
import hyperjob_sandbox
from tests.support.processes import ran
from tests.support.rooms import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
LUA = sorted((ROOT / "install/hyperjob_install/lua").glob("*.lua"))
VOLCANO = sorted((ROOT / "core/hyperjob_core/api/crds").glob("*.yaml"))
REPOSITORY = "https://forge.example/team/hyperjob"
CRDS = sorted((ROOT / "sandbox/hyperjob_sandbox/crds").glob("*.yaml"))


def build(source: Path, out: Path) -> Path:
    release = {"HYPERJOB_REPOSITORY": REPOSITORY, "HYPERJOB_TAG": "v9.9.9"}
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source],
        env=os.environ | release,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def sandbox_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "sandbox", tmp_path_factory.mktemp("sandbox"))


def metadata(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
    return message_from_bytes(archive.read(name))


def test_each_name_at_its_top_level_begins_with_hyperjob(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert top == {*PACKAGES}


def test_it_carries_types_crds_examples_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{p}/py.typed" for p in PACKAGES} <= names
    assert "hyperjob/_data/crds/training.volcano.sh_hyperjobs.yaml" in names
    assert "hyperjob/_data/examples/llm-training.yaml" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_it_carries_what_is_read_from_beside_the_code(wheel: Path) -> None:
    """Lua that Karmada runs, and Volcano's CRDs: no import would miss them."""
    names = set(zipfile.ZipFile(wheel).namelist())
    scripts = {f"hyperjob_install/lua/{path.name}" for path in LUA}
    crds = {f"hyperjob_core/api/crds/{path.name}" for path in VOLCANO}
    assert len(scripts) >= 5
    assert len(crds) == 3
    assert scripts | crds <= names


def test_it_carries_nothing_of_the_embedded_control_plane(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "sandbox" in name]
    required = [
        one for one in metadata(wheel).get_all("Requires-Dist", []) if "extra ==" not in one
    ]
    assert required
    assert not [one for one in required if one.startswith(("hyperjob", "jsonpatch"))]


def test_the_embedded_control_plane_is_a_wheel_of_its_own(wheel: Path, sandbox_wheel: Path) -> None:
    names = set(zipfile.ZipFile(sandbox_wheel).namelist())
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert top == {"hyperjob_sandbox", "hyperjob_sandbox_cli"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    crds = {f"hyperjob_sandbox/crds/{path.name}" for path in CRDS}
    assert crds
    assert {"hyperjob_sandbox/py.typed", *crds} <= names


def test_both_wheels_are_one_release_and_ask_for_each_other(
    wheel: Path, sandbox_wheel: Path
) -> None:
    version = hyperjob.__version__
    assert hyperjob_sandbox.__version__ == version
    product, embedded = metadata(wheel), metadata(sandbox_wheel)
    assert (product["Name"], product["Version"]) == ("hyperjob", version)
    assert (embedded["Name"], embedded["Version"]) == ("hyperjob-sandbox", version)
    assert f"hyperjob=={version}" in embedded.get_all("Requires-Dist", [])
    extra = f"hyperjob-sandbox=={version}; extra == 'sandbox'"
    assert extra in product.get_all("Requires-Dist", [])


@pytest.mark.parametrize("name", ["wheel", "sandbox_wheel"])
def test_the_page_of_a_release_leads_to_its_repository(
    name: str, request: pytest.FixtureRequest
) -> None:
    found = metadata(request.getfixturevalue(name))
    urls = dict(each.split(", ", 1) for each in found.get_all("Project-URL", []))
    assert urls["Source"] == REPOSITORY
    assert urls.keys() >= {"Documentation", "Changelog", "Issues"}
    targets = re.findall(r"\]\(([^)\s]+)\)", str(found.get_payload()))
    assert [each for each in targets if not each.startswith(("https://", "#"))] == []


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
        done = ran(venv / "bin" / command, "--help", cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        assert "usage" in done.stdout.lower()
    completed = ran(venv / "bin" / "kubectl_complete-hyperjob", "mig", env=env)
    assert completed.stdout.startswith("migrate\t"), completed.stderr
    code = "import hyperjob, hyperjob_webhook; print(hyperjob.__file__)"
    where = ran(venv / "bin/python", "-c", code, cwd=tmp_path, env=env, check=True)
    assert where.stdout.startswith(str(venv))
    asked = ran(venv / "bin/hyperjob", "sandbox", "up", cwd=tmp_path, env=env)
    assert asked.returncode == 2
    assert "install the wheel hyperjob_sandbox of this release" in asked.stderr
