"""What a container of the SDK runs first, in processes without hyperjob and without an index."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hyperjob.sdk import SourceError, trainer
from hyperjob.sdk.folder import names_of, requirements_of
from hyperjob.sdk.program import Machine
from tests.support.processes import ran
from tests.support.wheels import wheel

pytestmark = pytest.mark.long


def run(
    hyperjob: dict, tmp_path: Path, python: str = sys.executable
) -> subprocess.CompletedProcess:
    """Run the container of a HyperJob as a kubelet would, with its variables alone."""
    group = hyperjob["spec"]["replicatedJobs"][0]
    container = group["templateSpec"]["tasks"][0]["template"]["spec"]["containers"][0]
    env = {each["name"]: each.get("value", "") for each in container["env"]}
    words = [word.replace("$$", "$") for word in container["command"]]
    temporary = tmp_path / "tmp"
    temporary.mkdir(exist_ok=True)
    return ran(
        python,
        *words[1:],
        env={key: value.replace("$$", "$") for key, value in env.items()}
        | {
            "PATH": f"{Path(python).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "TMPDIR": str(temporary),
        },
        cwd=tmp_path,
        timeout=300,  # pip takes long on a busy machine
    )


def project(folder: Path) -> Path:
    for name, text in {
        "package/__init__.py": "",
        "package/parts.py": "text = 'from a relative import'\n",
        "package/train.py": "import sys\nfrom .parts import text\nprint(text, *sys.argv[1:])\n",
        "tools/script.py": "import os\nprint(sorted(os.listdir()))\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_module_runs_with_its_relative_imports(tmp_path: Path) -> None:
    made = trainer("-m package.train", args=["--lr", 0.1], workdir=project(tmp_path / "project"))
    assert run(made, tmp_path).stdout == "from a relative import --lr 0.1\n"
    assert made["metadata"]["name"].startswith("train-")


def test_a_script_starts_in_the_workdir(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    made = trainer(folder / "tools" / "script.py", workdir=folder)
    assert run(made, tmp_path).stdout == "['package', 'tools']\n"


def test_a_function_imports_modules_of_the_workdir(tmp_path: Path) -> None:
    def train() -> None:
        import package.parts

        print(package.parts.text)

    made = trainer(train, workdir=project(tmp_path / "project"))
    assert run(made, tmp_path).stdout == "from a relative import\n"


def test_progress_travels_with_a_program_that_imports_it(tmp_path: Path) -> None:
    def train() -> None:
        from hyperjob.sdk import progress

        progress(step=1, steps=1)

    def other() -> None:
        from hyperjob.sdk import Client

        print(Client)

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    found = run(trainer(train), tmp_path, python)
    assert found.stdout == '{"hyperjob": {"step": 1, "steps": 1}}\n', found.stderr
    assert "only hyperjob.sdk.progress" in run(trainer(other), tmp_path, python).stderr
    script = tmp_path / "scripts" / "train.py"
    script.parent.mkdir()
    script.write_text("from hyperjob.sdk import progress\nprogress(step=1)\n")
    assert run(trainer(script), tmp_path, python).stdout == '{"hyperjob": {"step": 1}}\n'


@pytest.mark.parametrize("has_pip", [True, False])
def test_packages_are_installed_once_beside_those_of_the_image(
    tmp_path: Path, has_pip: bool
) -> None:
    def train() -> None:
        import subprocess

        import tiny

        import hyperjob_core

        print(tiny.text, hyperjob_core.__name__)
        print(subprocess.check_output(["python", "-c", "import tiny; print(tiny.text)"]).decode())

    wheels = tmp_path / "wheels"
    wheel(wheels, "tiny", "text = 'installed'\n")
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    made = trainer(train, packages=["tiny==1.0"], env=pip)
    python = sys.executable
    if not has_pip:
        command = [sys.executable, "-m", "venv", "--without-pip", tmp_path / "image"]
        subprocess.run(command, check=True)
        python = str(tmp_path / "image" / "bin" / "python")
        site = next((tmp_path / "image").glob("lib/*/site-packages"))
        (site / "hyperjob_core.py").touch()
    found = run(made, tmp_path, python)
    assert found.stdout == "installed hyperjob_core\ninstalled\n\n", found.stderr
    wheel(wheels, "tiny", "text = 'installed again'\n")
    assert run(made, tmp_path, python).stdout == found.stdout, "from the cache"
    wrong = run(trainer(train, packages=["tiny==2.0"], env=pip), tmp_path, python)
    assert wrong.returncode != 0
    assert "tiny==2.0" in wrong.stderr


def test_a_folder_that_is_too_large_stays_a_folder_on_this_machine(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    (folder / "weights.bin").write_bytes(os.urandom(200_000))
    with pytest.raises(SourceError, match="a HyperJob can contain at most 96 KiB"):
        trainer("-m package.train", workdir=folder, include=["weights.bin"])
    (tmp_path / "snapshots").mkdir()
    machine = Machine(snapshots=tmp_path / "snapshots", cache=tmp_path / "cache", images={})
    made = trainer("-m package.train", workdir=folder, include=["weights.bin"], _machine=machine)
    (folder / "package" / "train.py").write_text("raise SystemExit('changed after submission')")
    assert run(made, tmp_path).stdout == "from a relative import\n"


def nothing() -> None:
    """Train nothing."""


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a folder": ("folder", {}, "folder is a folder: name its script, such as 'folder/run.py'"),
    "no script": ("none.py", {}, "none.py: no such file"),
    "no module": ("-m none", {}, "has no module none: workdir is the folder above its package"),
    "an option": ("-c pass", {}, "expected a script, or '-m package.module'"),
    "a script elsewhere": ("train.py", {"workdir": "folder"}, "is not in workdir='folder'"),
    "a workdir that is a file": ("train.py", {"workdir": "train.py"}, "is no folder"),
    "a package as text": ("train.py", {"packages": "torch"}, r"expected a list such as \['torch'"),
    **{
        f"a package that is {each!r}": ("train.py", {"packages": [each]}, message)
        for each, message in {
            "--index-url https://me:pw@x/": "has a password in its address",
            "x @ git+https://token@x/y": "has a password in its address",
            "./mine": "is no requirement .*: put a folder of this machine into the",
            "-e .": "is no requirement such as",
            "--find-links /etc": "is no requirement such as",
            "--find-links https://x/": "is no requirement such as",
            "a==1 --global-option=x": "is no requirement such as",
            "a==1\n--find-links /etc": "is no requirement such as",
            "a --hash=sha256:00\n--find-links=/etc": "is no requirement such as",
            "https://x/y.whl": "is no requirement such as",
            "x @ file:///etc/passwd": "no address that begins with https://",
            "x @ http://x/y.whl": "no address that begins with https://",
            "x @ git+https://x/y": "no address that begins with https://",
            "x @ https:///y": "no address that begins with https://",
            "--index-url file:///etc": "no address that begins with https://",
            "--extra-index-url=http://x/": "no address that begins with https://",
        }.items()
    },
    "files without a folder": (nothing, {"include": ["a.txt"]}, "a function has no folder"),
    "no requirements file": ("train.py", {"packages": "no.txt"}, "no.txt: No such file"),
    "a project without packages": ("train.py", {"packages": "a.toml"}, "no project.dependencies"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_travel_says_why(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("folder/run.py").touch()
    Path("train.py").touch()
    Path("a.toml").write_text("[project]\nname = 'x'\n")
    train, options, message = REFUSED[name]
    with pytest.raises(SourceError, match=message):
        trainer(train, **options)


def test_requirements_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("numpy>=2  # arrays\n\n# nothing\n")
    (tmp_path / "requirements.txt").write_text(
        "-r base.txt\n--extra-index-url https://packages.example/simple\nTorch_Vision==1 \\\n"
        "  --hash=sha256:00\n"
    )
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = ['a>1', 'b[c]']\n")
    found = requirements_of(tmp_path / "requirements.txt")
    assert found == (
        "numpy>=2",
        "--extra-index-url https://packages.example/simple",
        "Torch_Vision==1 --hash=sha256:00",
    )
    assert names_of(found) == {"numpy", "torch-vision"}
    assert requirements_of(str(tmp_path / "pyproject.toml")) == ("a>1", "b[c]")
    (tmp_path / "endless.txt").write_text("-r endless.txt\n")
    with pytest.raises(SourceError, match="include each other"):
        requirements_of(tmp_path / "endless.txt")
