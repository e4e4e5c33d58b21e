"""`hyperjob demo`, as `make demo` runs it, brings the documents' HyperJobs to their end."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.controlplane import ROOT
from tests.support.processes import ran, running, wait_for
from tests.support.stack import kubectl

HYPERJOB = [sys.executable, "-m", "hyperjob"]

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.skipif(
        "KUBEBUILDER_ASSETS" in os.environ, reason="the demo brings its own control plane"
    ),
]


@pytest.mark.timeout(240)
def test_every_example_completes_and_use_case_one_stands_on_two_clusters(tmp_path: Path) -> None:
    done = ran(
        *HYPERJOB, "demo", "-o", "json", "--speed", "4", "--directory", tmp_path, timeout=230
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    by_name = {each["name"]: each for each in result["hyperjobs"]}
    assert {name: each["phase"] for name, each in by_name.items()} == {
        "default/llm-training": "Completed",
        "default/ascend-heterogeneous-training": "Completed",
        "default/tuning-a": "Completed",
        "default/tuning-b": "Completed",
        "ml/torchrun-gang": "Completed",
        "ml/mpi-gang": "Completed",
    }
    assert by_name["default/llm-training"]["clusters"] == ["gpu-east", "gpu-west"]
    assert len(by_name["default/ascend-heterogeneous-training"]["clusters"]) == 2


@pytest.mark.timeout(240)
def test_a_training_runs_for_real_and_its_logs_are_shown(tmp_path: Path) -> None:
    done = ran(
        *HYPERJOB, "demo", "--pods", "processes", "--no-keep", "--directory", tmp_path, timeout=230
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"\[(.+)/training-trainer-.*\] rank (\d) found y = 3\.0", done.stdout)
    assert sorted(rank for _, rank in found) == ["0", "1", "2", "3"]
    assert len({cluster for cluster, _ in found}) == 2


@pytest.mark.timeout(240)
def test_preflight_is_content_with_it_and_sigterm_ends_every_part_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, temporary = tmp_path / "demo.log", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    command = [*HYPERJOB, "demo", "--keep", "--speed", "4"]
    with running([*command, "-f", ROOT / "examples/queue.yaml"], log=log) as demo:
        wait_for(
            lambda: "Ctrl-C stops them" in log.read_text(),
            what="the end of its HyperJobs",
            process=demo,
            log=log,
            timeout=180,
        )
        assert "The web page of these clusters: " in log.read_text()
        (karmada,) = temporary.glob("*/karmada.kubeconfig")
        preflight = ran(*HYPERJOB, "preflight", "--kubeconfig", karmada)
        assert preflight.returncode == 0, preflight.stdout + preflight.stderr
        misspelt = yaml.safe_load((ROOT / "examples/llm-training.yaml").read_text())
        misspelt["metadata"]["name"] = "misspelt"
        misspelt["spec"]["replicatedJobs"][0]["clusterNames"] = ["gpu-wset"]
        create = ("create", "--dry-run=server", "-f", "-")
        applied = kubectl(karmada, *create, stdin=yaml.safe_dump(misspelt), check=False)
        assert 'did you mean "gpu-west"' in applied.stderr, applied
        told = log.read_text()
        assert "$ kubectl hyperjob why tuning-b -n default" in told
        assert "queue research uses 32 of its capability of 48 huawei.com/Ascend910C" in told
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(30) == 130
    assert list(temporary.iterdir()) == []
    left = ran("ps", "-eo", "args", check=True).stdout.splitlines()
    assert [line for line in left if str(tmp_path) in line] == []


def test_a_clusters_file_with_a_wrong_field_is_refused_by_name(tmp_path: Path) -> None:
    clusters = tmp_path / "clusters.yaml"
    clusters.write_text("clusters: [{name: a, nods: []}]\n")
    done = ran(*HYPERJOB, "sandbox", "up", "--clusters", clusters)
    assert done.returncode == 1
    assert "clusters[0].nods" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_readme_shows_the_first_example() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert [yaml.safe_load(block) for block in blocks] == [
        yaml.safe_load((ROOT / "examples/llm-training.yaml").read_text())
    ]
