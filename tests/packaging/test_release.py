"""Between the tag and the registries nothing is done by hand, and nothing runs unpinned."""

import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import hyperjob
from hatch_build import absolute
from release.__main__ import PLACES, PLATFORMS, chart, check, krew, main, notes
from tests.support.helm import run, unpack
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text()) for path in ROOT.glob(".github/workflows/*.yaml")
}
RELEASE = WORKFLOWS["release.yaml"]["jobs"]
OF_THE_RUNNER = {"docker", "echo", "gh", "git", "helm", "kubectl", "sudo"}
TAG = f"v{hyperjob.__version__}"
REPOSITORY = "https://forge.example/team/hyperjob"
DIGEST = "sha256:" + "d" * 64


def steps(jobs: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in jobs.values() for step in job.get("steps", [])]


def test_a_job_has_the_rights_of_its_steps_alone() -> None:
    top = {name: workflow["permissions"] for name, workflow in WORKFLOWS.items()}
    reading = {"contents": "read"}
    assert top == {"checks.yaml": reading, "kind.yaml": reading, "release.yaml": {}}
    proof = {"id-token": "write", "attestations": "write"}
    assert {name: job["permissions"] for name, job in RELEASE.items()} == {
        "checks": reading,
        "wheels": reading | proof,
        "plugin": reading | proof,
        "image": reading | {"packages": "write"},
        "publish": {"contents": "write", "packages": "write"} | proof,
        "pypi": reading | {"id-token": "write"},
    }
    kept = [step for step in steps(RELEASE) if "actions/checkout" in step.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in kept)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_each_command_is_a_target_of_make_a_script_of_the_tree_or_a_tool_of_the_runner(
    name: str,
) -> None:
    targets = set(re.findall(r"^([\w/$().-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in steps(WORKFLOWS[name]["jobs"]):
        # A value that comes from outside reaches a shell as a variable alone.
        assert "${{" not in step.get("run", "")
        for line in re.split(r"\n| && ", step.get("run", "").strip()):
            words = [word for word in line.split() if not re.match(r"[A-Z0-9_]+=", word)]
            if words and words[0] == "make":
                named = {word for word in words[1:] if re.fullmatch(r"\.?[a-z][\w./-]*", word)}
                made = {word.replace(".venv/", "$(VENV)/") for word in named - {"notes.md"}}
                assert made, line
                assert made <= targets, line
            elif words and "/" in words[0]:
                assert os.access(ROOT / words[0], os.X_OK), line
            elif words:
                assert words[0] in OF_THE_RUNNER, line


def test_the_checks_run_on_each_python_that_is_supported_and_that_of_the_image_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [re.search(r"Python :: (3\.\d+)$", each) for each in project["classifiers"]]
    supported = [each[1] for each in named if each]
    matrix = WORKFLOWS["checks.yaml"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == supported
    assert project["requires-python"] == f">={supported[0]}"
    shipped = re.search(r"^FROM python:(3\.\d+)\.", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert shipped
    assert shipped[1] in supported
    setups = [step for step in steps(RELEASE) if "setup-python" in step.get("uses", "")]
    assert {step["with"]["python-version"] for step in setups} == {shipped[1]}


def test_what_is_pinned_is_also_renewed() -> None:
    renewed = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert {one["package-ecosystem"] for one in renewed} == {"pip", "github-actions", "docker"}
    # Dependabot reads literal images: an ARG in FROM hides the base from it.
    bases = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert [base for base in bases if "$" in base] == []


def test_the_version_of_a_tag_is_the_same_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in [*PLACES, "CHANGELOG.md"]:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    changes = tmp_path / "CHANGELOG.md"
    text = changes.read_text()
    changes.write_text(text.replace("## [Unreleased]", f"## [{TAG[1:]}] - 2030-01-01", 1))
    check(TAG, tmp_path)
    assert notes(TAG, tmp_path).startswith("### ")
    with pytest.raises(ValueError, match=r"the tag 9\.9\.9") as found:
        check("v9.9.9", tmp_path)
    places = {line.split()[0] for line in str(found.value).split("\nerror: ")}
    assert places == {*PLACES, "CHANGELOG.md"}
    assert main(["check", "9.9"]) == 1
    assert "the tag '9.9' is not v and a version" in capsys.readouterr().err


def test_the_chart_of_a_release_installs_the_image_of_that_release(tmp_path: Path) -> None:
    folder = chart(f"registry.example/team/hyperjob@{DIGEST}", tmp_path)
    rendered = run(unpack("helm3", tmp_path), "template", folder).stdout
    images = set(re.findall(r"image: \"?([^\s\"]+)", rendered))
    assert images == {f"registry.example/team/hyperjob@{DIGEST}"}
    with pytest.raises(ValueError, match="is not REPOSITORY@sha256:DIGEST"):
        chart("registry.example/team/hyperjob:0.1.0", tmp_path)


def test_the_manifest_of_the_plugin_has_what_krew_asks_for(tmp_path: Path) -> None:
    sums = {}
    for platform in PLATFORMS:
        archive = tmp_path / f"kubectl-hyperjob-{platform}.tar.gz"
        archive.write_text(platform)
        sums[f"{REPOSITORY}/releases/download/{TAG}/{archive.name}"] = hashlib.sha256(
            platform.encode()
        ).hexdigest()
    found = yaml.safe_load(krew(TAG, f"{REPOSITORY}/", tmp_path))
    spec = found["spec"]
    assert (found["apiVersion"], found["kind"], found["metadata"]) == (
        "krew.googlecontainertools.github.com/v1alpha2",
        "Plugin",
        {"name": "hyperjob"},
    )
    assert spec.keys() <= {
        *("version", "homepage", "shortDescription", "description", "caveats", "platforms")
    }
    assert re.fullmatch(r"v\d+\.\d+\.\d+(-[\w.]+)?", spec["version"])
    assert len(spec["shortDescription"]) <= 50
    assert {each["uri"]: each["sha256"] for each in spec["platforms"]} == sums
    for each in spec["platforms"]:
        assert each.keys() == {"selector", "uri", "sha256", "bin"}
        labels = each["selector"]["matchLabels"]
        assert f"-{labels['os']}-{labels['arch']}." in each["uri"]
        assert each["bin"] == "kubectl-hyperjob"


def test_what_is_signed_is_what_was_pushed(tmp_path: Path) -> None:
    """Run the scripts of a release with tools that note their words and print digests."""
    said = tmp_path / "said"
    packed = 'case "$1" in package) touch "$4/hyperjob-0.1.0.tgz";; *) echo "Digest: $CHART"; esac'
    inspected = 'case "$*" in *inspect*) echo "$IMAGE"; esac'
    tools = {"docker": inspected, "helm": packed, "cosign": "true"}
    for name, body in tools.items():
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {said}\n{body}\n')
        (tmp_path / name).chmod(0o755)
    output = tmp_path / "output"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "IMAGE": DIGEST,
        "CHART": "sha256:" + "c" * 64,
        "GITHUB_OUTPUT": str(output),
    }
    repository = "registry.example/team/hyperjob"
    images, dist = tmp_path / "images", tmp_path / "dist"
    images.mkdir()
    dist.mkdir()
    for architecture in ("amd64", "arm64"):
        (images / f"image-{architecture}.txt").write_text(f"sha256:{architecture}")
    script([ROOT / "release/push.sh", repository, TAG, images, dist], environment)
    script([ROOT / "release/sign.sh", dist], environment)
    words = said.read_text()
    assert f"--tag {repository}:0.1.0 {repository}@sha256:amd64 {repository}@sha256:arm64" in words
    chart_digest = environment["CHART"]
    signed = re.findall(r"^cosign sign --yes (.*)", words, re.MULTILINE)
    assert signed == [f"{repository}@{DIGEST}", f"{repository}/charts/hyperjob@{chart_digest}"]
    assert output.read_text() == f"image={repository}\ndigest={DIGEST}\n"
    files = {"SHA256SUMS", "digests.txt", "hyperjob-0.1.0.tgz"}
    assert {each.name for each in dist.iterdir()} == files
    assert set(re.findall(r"sign-blob --yes --bundle \S+\.sigstore\.json (.*)", words)) == files
    broken = script(
        [ROOT / "release/push.sh", repository, TAG, images, dist],
        {**environment, "CHART": "none"},
        code=1,
    )
    assert "image or chart has no digest" in broken.stderr


def script(
    command: list[Path | str], environment: dict[str, str], code: int = 0
) -> subprocess.CompletedProcess[str]:
    done = ran(*command, env=environment)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(
    ("text", "folder", "expected"),
    [
        ("[a](docs/x.md#y)", "", f"[a]({REPOSITORY}/blob/{TAG}/docs/x.md#y)"),
        ("![a](docs/x.svg)", "", f"![a]({REPOSITORY}/raw/{TAG}/docs/x.svg)"),
        ("[a](../docs/x.md)", "sandbox", f"[a]({REPOSITORY}/blob/{TAG}/docs/x.md)"),
        ("[a](https://b.example) [c](#d)", "", "[a](https://b.example) [c](#d)"),
    ],
)
def test_the_page_of_a_package_leads_to_the_files_of_its_release(
    text: str, folder: str, expected: str
) -> None:
    assert absolute(text, REPOSITORY, TAG, folder) == expected
