"""`hyperjob simulate` as a user runs it: files, comparisons, exit codes."""

import csv
import io
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hyperjob.cli import main

CLUSTERS = """
clusters:
  - {name: east, nodes: [{count: 2, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}]}
  - {name: west, nodes: [{count: 1, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}]}
queues:
  - {name: research, weight: 1}
"""
HYPERJOB = """
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata:
  name: large
  annotations:
    simulation.training.volcano.sh/arrival: 10m
    simulation.training.volcano.sh/duration: 1h
spec:
  replicatedJobs:
    - name: trainer
      splitPolicy: {mode: auto, accelerators: 24, acceleratorType: nvidia.com/gpu}
      templateSpec:
        queue: research
        tasks:
          - name: worker
            replicas: 3
            template:
              spec:
                containers:
                  - name: main
                    image: train
                    resources: {requests: {nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: 8}}
"""


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments])


@pytest.fixture
def clusters(tmp_path: Path) -> str:
    path = tmp_path / "clusters.yaml"
    path.write_text(CLUSTERS)
    return str(path)


def test_a_hyperjob_of_a_file_runs_at_its_time_across_clusters(
    clusters: str, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(HYPERJOB)
    result = simulate("--clusters", clusters, "-f", str(path), "-o", "json")
    assert result.exit_code == 0, result.output
    (report,) = json.loads(result.stdout)["policies"]
    assert (report["jobs"], report["completed"]) == (1, 1)
    assert report["end"] == pytest.approx(600 + 3600, abs=60)
    assert report["queues"]["research"]["wait"]["count"] == 1


def test_a_group_of_nodes_has_labels_and_a_speed_of_its_own(tmp_path: Path) -> None:
    large = "count: 3, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}"
    slow = f"{{name: a100, labels: {{gpu: a100}}, relativeSpeed: 0.25, {large}}}"
    both = f"[{{name: h100, {large}}}, {slow}]"
    paths = tmp_path / "clusters.yaml", tmp_path / "jobs.yaml"
    paths[0].write_text(f"clusters: [{{name: east, relativeSpeed: 0.5, nodes: {both}}}]")
    job = HYPERJOB.replace("queue: research", "queue: default")
    pods = "              spec:\n"
    selects = job.replace(pods, f"{pods}                nodeSelector: {{gpu: a100}}\n")
    for text, hours in ((job, 2), (selects, 4)):
        paths[1].write_text(text)
        result = simulate("--clusters", str(paths[0]), "-f", str(paths[1]), "-o", "json")
        assert result.exit_code == 0, result.output
        (report,) = json.loads(result.stdout)["policies"]
        assert report["end"] == pytest.approx(600 + 3600 * hours, abs=60), text


def test_generated_urgent_jobs_use_the_priority_class_of_a_file(
    clusters: str, tmp_path: Path
) -> None:
    classes, shares = tmp_path / "classes.yaml", tmp_path / "scenario.yaml"
    classes.write_text(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, "
        "metadata: {name: urgent}, value: 7}"
    )
    shares.write_text("{urgent: 0.5}")
    given = ("--clusters", clusters, "-f", str(classes), "--scenario", str(shares))
    result = simulate(*given, "--jobs", "20", "--days", "1", "--load", "0.2", "-o", "json")
    assert result.exit_code == 0, result.output
    (report,) = json.loads(result.stdout)["policies"]
    assert (report["jobs"], report["completed"]) == (20, 20)


def test_policies_run_side_by_side(clusters: str, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("submit,duration,gpus,queue\n0,1h,24,research\n60,30m,8,research\n")
    given = ("--clusters", clusters, "--trace", str(trace), "--policy", "hyperjob,one-cluster")
    result = simulate(*given)
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line}
    assert lines["hyperjob"][-1] != "never"
    assert lines["one-cluster"][-1] == "never", "no cluster alone has 24"
    as_csv = simulate(*given, "-o", "csv")
    ours, other = csv.DictReader(io.StringIO(as_csv.stdout))
    assert (ours["policy"], ours["jobs"], ours["neverStarted"]) == ("hyperjob", "2", "0")
    assert (other["policy"], other["neverStarted"]) == ("one-cluster", "1")
    assert float(ours["queues.research.wait.p50"]) >= 0
    assert simulate(*given, "-o", "csv").stdout == as_csv.stdout, "equal arguments, equal bytes"


@pytest.mark.skipif(find_spec("matplotlib") is not None, reason="matplotlib is installed")
def test_a_picture_without_matplotlib_is_refused_before_the_simulation(tmp_path: Path) -> None:
    result = simulate("--jobs", "1000000", "--picture", str(tmp_path / "out.png"))
    assert result.exit_code == 2
    assert "--picture needs matplotlib: pip install matplotlib" in result.stderr


def test_a_job_that_can_never_start_ends_in_code_4(clusters: str, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("submit,duration,gpus\n0,1h,800\n")
    result = simulate("--clusters", clusters, "--trace", str(trace))
    assert result.exit_code == 4
    assert "1 never started" in result.stdout
    assert "  default/job-" in result.stdout
    assert "800 nvidia.com/gpu" in result.stdout, "what its status said last"
    assert "HyperJob changed" not in result.stderr, "warnings are those of simulated HyperJobs"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "best"), "--policy: 'best' is not one of hyperjob, "),
        (("--scenario", "nowhere.yaml"), "nowhere.yaml: No such file or directory"),
        (("--trace", "nowhere.csv"), "nowhere.csv: No such file or directory"),
        (("--clusters", "nowhere.yaml"), "nowhere.yaml: No such file or directory"),
    ],
)
def test_what_is_wrong_ends_in_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = simulate(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_hyperjob_without_a_duration_is_refused_with_its_line(
    clusters: str, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(HYPERJOB.replace("    simulation.training.volcano.sh/duration: 1h\n", ""))
    result = simulate("--clusters", clusters, "-f", str(path))
    assert result.exit_code == 2
    assert "line 2: annotation simulation.training.volcano.sh/duration is missing" in result.stderr
