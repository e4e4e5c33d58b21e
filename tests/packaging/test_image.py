"""The Dockerfile holds what pod security asks for, and its steps make a tree that works.

No container engine is needed: the steps are replayed in a directory.
"""

import fnmatch
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import hyperjob
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("hyperjob", "hyperjob-webhook", "hyperjob-controller", "hyperjob-certs")


@dataclass(frozen=True)
class Step:
    word: str
    rest: str

    @property
    def words(self) -> list[str]:
        """Give the words of the exec form."""
        found = json.loads(self.rest)
        assert isinstance(found, list)
        return [str(word) for word in found]


def stages() -> list[list[Step]]:
    """Read the Dockerfile: each stage with its FROM."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    found: list[list[Step]] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        found[-1].append(Step(word, rest.strip()))
    return found


def steps(word: str) -> list[Step]:
    return [step for stage in stages() for step in stage if step.word == word]


def variables(stage: list[Step]) -> dict[str, str]:
    """Read what a stage puts into its environment."""
    pairs = (
        word.split("=", 1) for step in stage if step.word == "ENV" for word in step.rest.split()
    )
    return dict(pairs)


def sources() -> list[str]:
    return [
        source
        for step in steps("COPY")
        if not step.rest.startswith("--from")
        for source in step.rest.split()[:-1]
    ]


def base() -> str:
    """Return the image that both other stages begin with."""
    first, *others = (step.rest for step in steps("FROM"))
    assert [each.partition(" AS ")[0] for each in others] == ["base", "base"]
    return first.removesuffix(" AS base")


def test_the_base_is_one_release_of_a_slim_python_by_digest() -> None:
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", base())


def pin(directory: Path, answer: str) -> subprocess.CompletedProcess[str]:
    """Pin the Dockerfile of a directory with a docker that knows one digest."""
    docker = directory / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" > {directory}/asked\necho "{answer}"\n')
    docker.chmod(0o755)
    return ran(
        ROOT / "requirements/base.sh",
        directory / "Dockerfile",
        env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"},
    )


def test_the_base_is_pinned_by_the_digest_that_its_tag_has_now(tmp_path: Path) -> None:
    tag = base().partition("@")[0]
    dockerfile = tmp_path / "Dockerfile"
    before = (ROOT / "Dockerfile").read_text()
    dockerfile.write_text(before)
    for letter in "ab":
        digest = "sha256:" + letter * 64
        assert pin(tmp_path, digest).returncode == 0
        assert (tmp_path / "asked").read_text().split()[-1] == tag
        assert dockerfile.read_text() == before.replace(base(), f"{tag}@{digest}")
    refused = pin(tmp_path, "manifest unknown")
    assert refused.returncode == 1
    assert f"{tag} has no digest" in refused.stderr
    assert f"{tag}@sha256:{'b' * 64}" in dockerfile.read_text()


def test_the_base_of_a_build_may_be_named_by_digest(tmp_path: Path) -> None:
    other = "python:3.13.9-slim-bookworm@sha256:" + "c" * 64
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat > {tmp_path}/Dockerfile\n')
    engine.chmod(0o755)
    for named, expected in (([], base()), ([f"BASE={other}"], other)):
        command = ["make", "image", f"IMAGE_TOOL={engine}", f"PYTHON={sys.executable}", *named]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
        assert "--file - " in (tmp_path / "asked").read_text()
        given = (ROOT / "Dockerfile").read_text().replace(base(), expected)
        assert (tmp_path / "Dockerfile").read_text() == given


def test_it_runs_as_a_numbered_user_without_rights_and_without_a_shell() -> None:
    final = stages()[-1]
    (user,) = [step.rest for step in final if step.word == "USER"]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user), "kubelet proves only a number non-root"
    assert [step.words for step in final if step.word == "ENTRYPOINT"] == [["hyperjob"]]
    assert all(step.words for step in [*steps("RUN"), *steps("CMD")])
    assert not [step for step in final if step.word in ("ADD", "EXPOSE", "VOLUME")]
    words = [step.word for step in final]
    assert "RUN" not in words[words.index("USER") :]
    # Its number is in no list of users: who asks for a home directory would find none.
    assert variables(final)["HOME"] == "/"


def test_everything_that_is_installed_is_locked_with_hashes() -> None:
    installs, offline = [], False
    for step in stages()[1]:
        offline = offline or "PIP_NO_INDEX=1" in step.rest
        if step.word == "RUN" and "install" in step.words:
            installs.append(step.words)
            assert offline or "--require-hashes" in step.words, step.words
    assert offline
    assert "PIP_NO_CACHE_DIR=1" in [word for s in steps("ENV") for word in s.rest.split()]
    for name in re.findall(r"requirements/\w+\.txt", str(installs)):
        pinned = re.findall(
            r"^[\w.-]+==\S+.*(?:\n +--hash.*)+", (ROOT / name).read_text(), re.MULTILINE
        )
        names = re.findall(r"^[\w.-]+==", (ROOT / name).read_text(), re.MULTILINE)
        assert len(pinned) == len(names) > 1


def test_it_says_what_it_is() -> None:
    labels = " ".join(step.rest for step in steps("LABEL"))
    for name in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{name}=" in labels
    assert f"VERSION={hyperjob.__version__}" in [step.rest for step in steps("ARG")]


@pytest.mark.parametrize("source", sources())
def test_what_it_copies_is_there_and_is_sent(source: str) -> None:
    assert (ROOT / source).exists()
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    sent = True
    for rule in rules:
        if fnmatch.fnmatch(source.split("/", maxsplit=1)[0], rule.lstrip("!")):
            sent = rule.startswith("!")
    assert sent


def test_what_the_wheel_needs_is_copied() -> None:
    hatch = (ROOT / "pyproject.toml").read_text().partition("[tool.hatch.build")[2]
    needed = re.findall(r'"(\w+)"', hatch.partition("[tool.ruff]")[0].split("packages = ")[1])
    folders = {name for name in needed if (ROOT / name).is_dir()}
    assert folders
    assert folders <= set(sources())


def test_nothing_of_the_embedded_control_plane_is_copied_or_installed() -> None:
    assert not [source for source in sources() if source.startswith("sandbox")]
    assert "sandbox" not in (ROOT / ".dockerignore").read_text()
    assert "sandbox" not in (ROOT / "requirements/runtime.txt").read_text()


@pytest.mark.scenario
@pytest.mark.timeout(600)
def test_its_steps_make_a_tree_that_works_and_writes_nothing(tmp_path: Path) -> None:
    base, source, installed = tmp_path / "base", tmp_path / "src", tmp_path / "opt"
    subprocess.run([sys.executable, "-m", "venv", base], check=True, timeout=120)
    source.mkdir()
    for name in sources():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(ROOT / name)
    places = {
        "/opt/hyperjob": str(installed),
        "/src": str(source),
        "/usr/local": str(base),
        "python": str(base / "bin/python"),
    }
    for stage in stages():
        environment = dict(os.environ)
        for step in stage:
            if step.word == "ENV":
                environment |= {k: v for k, v in variables([step]).items() if k.startswith("P")}
                environment["PATH"] = os.environ["PATH"]
            if step.word == "RUN":
                done = ran(
                    *[led(word, places) for word in step.words],
                    cwd=source,
                    env=environment,
                    timeout=400,
                )
                assert done.returncode == 0, f"{step.words}\n{done.stderr}"
    before = tree(installed)
    for command in COMMANDS:
        done = ran(
            installed / "bin" / command,
            "--help",
            cwd="/",
            env={**variables(stages()[-1]), "PATH": os.environ["PATH"]},
        )
        assert done.returncode == 0, done.stderr
        assert "usage" in done.stdout.lower()
    assert tree(installed) == before
    (listed,) = (path for path in installed.rglob("hyperjob-*.dist-info") if path.is_dir())
    packages = listed.parent
    assert not list(packages.glob("hyperjob_sandbox*"))
    assert not any(path.name.startswith(("pip", "hatchling")) for path in packages.iterdir())
    assert not list(base.rglob("site-packages/pip"))
    compiled = packages.rglob("*.pyc")
    for name in (
        "hyperjob/cli",
        "hyperjob_webhook",
        "hyperjob_engine/placement",
        "aiohttp",
        "kubernetes/aio",
    ):
        assert list(packages.glob(f"{name}/__pycache__/__init__.*.pyc")), name
    # Without a time in it, which would make each build another image.
    assert {path.read_bytes()[4] for path in compiled} == {1}
    assert not list(packages.glob("kubernetes/**/models/__pycache__"))


def led(word: str, places: dict[str, str]) -> str:
    """Lead a word of the image into the places of a replay."""
    for place, found in places.items():
        if word == place or word.startswith(f"{place}/"):
            return found + word.removeprefix(place)
    return word


def tree(root: Path) -> set[tuple[str, float]]:
    return {(str(path), path.lstat().st_mtime) for path in root.rglob("*")}


@pytest.mark.scenario
@pytest.mark.timeout(700)
def test_the_list_of_what_it_holds_is_the_lock_and_the_same_every_time(tmp_path: Path) -> None:
    made = []
    for name in ("first", "again"):
        places = [f"SBOM_VENV={tmp_path / 'venv'}", f"DIST={tmp_path / name}"]
        done = ran("make", "sbom", f"PYTHON={sys.executable}", *places, cwd=ROOT, timeout=300)
        assert done.returncode == 0, done.stderr
        made.append((tmp_path / name / "hyperjob.cdx.json").read_text())
    assert made[0] == made[1]
    found = {(one["name"], one["version"]) for one in json.loads(made[0])["components"]}
    lock = (ROOT / "requirements/runtime.txt").read_text()
    assert found == set(re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE))
