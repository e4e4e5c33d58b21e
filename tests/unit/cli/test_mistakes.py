"""Mistakes that people make: each ends with its message, a remedy and an exit code."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from hyperjob.cli import main
from tests.support.kubeconfigs import UNREACHABLE

CLUSTERS = Path(__file__).parents[3] / "examples/clusters.yaml"
GOOD = """\
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata: {name: llm, namespace: ml}
spec:
  replicatedJobs:
  - name: trainer
    replicas: 2
    templateSpec:
      tasks:
      - name: worker
        replicas: 4
        template:
          spec:
            containers:
            - name: main
              image: training:v1
              resources:
                requests:
                  nvidia.com/gpu: 1
"""
ALLOWED = 0
REFUSED, FAILED = 1, 1
USAGE = 2
NEVER = 4


@dataclass(frozen=True)
class InFile:
    """A text of the good file, and the text that a person writes in its place."""

    right: str
    wrong: str
    code: int
    message: str
    remedy: str


@dataclass(frozen=True)
class Typed:
    """A command line; FILE, NOWHERE and CLUSTERS stand for paths."""

    words: Sequence[str]
    code: int
    message: str
    remedy: str


SPEC = "spec:\n"
GROUP = "    replicas: 2\n"
TEMPLATE = "    templateSpec:\n"
AUTO = "    splitPolicy: {mode: auto, acceleratorType: nvidia.com/gpu, accelerators: 8}\n"
CONTAINER = "              image: training:v1\n"
GPU = "nvidia.com/gpu: 1"

IN_FILE = {
    "kind in the wrong case": InFile(
        "kind: HyperJob",
        "kind: Hyperjob",
        REFUSED,
        'kind: Unsupported value: "Hyperjob"',
        'supported values: "HyperJob"',
    ),
    "another version": InFile(
        "v1alpha1",
        "v1",
        REFUSED,
        'apiVersion: Unsupported value: "training.volcano.sh/v1"',
        'supported values: "training.volcano.sh/v1alpha1"',
    ),
    "another group": InFile(
        "volcano.sh",
        "volcano.io",
        REFUSED,
        "apiVersion: Unsupported value",
        'supported values: "training.volcano.sh/v1alpha1"',
    ),
    "a misspelt field": InFile(
        "replicatedJobs:",
        "replicatdJobs:",
        REFUSED,
        "spec.replicatdJobs: Forbidden: unknown field",
        'did you mean "replicatedJobs"?',
    ),
    "an invented field": InFile(
        GROUP,
        f"{GROUP}    gpus: 8\n",
        REFUSED,
        "gpus: Forbidden: unknown field",
        "correct the name or the place of the field, or remove it",
    ),
    "no name": InFile(
        "name: llm, ", "", REFUSED, "metadata.name: Required value", "add metadata.name"
    ),
    "a name with capitals": InFile(
        "name: llm,",
        "name: LLM_1,",
        REFUSED,
        'metadata.name: Invalid value: "LLM_1"',
        "remedy: use llm-1",
    ),
    "a group's name with capitals": InFile(
        "name: trainer",
        "name: My_Trainer",
        REFUSED,
        'name: Invalid value: "My_Trainer"',
        "remedy: use my-trainer",
    ),
    "a number as text": InFile(
        "replicas: 2", 'replicas: "2"', REFUSED, "must be of type integer", "write 2 without quotes"
    ),
    "no replicas": InFile(
        "replicas: 2", "replicas: 0", REFUSED, "greater than or equal to 1", "use a larger number"
    ),
    "no image": InFile(
        "image:", "imag:", REFUSED, "imag: Forbidden: unknown field", 'did you mean "image"?'
    ),
    "half a GPU": InFile(
        GPU, "nvidia.com/gpu: 0.5", REFUSED, "must be an integer", "request whole devices"
    ),
    "half a GPU, quoted": InFile(
        GPU, 'nvidia.com/gpu: "0.5"', REFUSED, "must be an integer", "request whole devices"
    ),
    "gigabytes": InFile(
        GPU, f"{GPU}\n                  memory: 64GB", REFUSED, 'Invalid value: "64GB"', "64Gi"
    ),
    "a misspelt resource": InFile(
        GPU, "memroy: 1Gi", REFUSED, 'Invalid value: "memroy"', 'did you mean "memory"?'
    ),
    "a device without its domain": InFile(
        GPU, "gpu: 1", ALLOWED, "`gpu` has no domain", "use the name that the device plugin"
    ),
    "limits unlike requests": InFile(
        GPU,
        "nvidia.com/gpu: 2\n                limits: {nvidia.com/gpu: 1}",
        REFUSED,
        "must be equal to nvidia.com/gpu limit of 1",
        "make both the same, or leave one out",
    ),
    "more available than there are pods": InFile(
        "        replicas: 4\n",
        "        replicas: 4\n        minAvailable: 5\n",
        REFUSED,
        "minAvailable: Invalid value: 5",
        "lower minAvailable, raise replicas",
    ),
    "more available than there are sub-jobs": InFile(
        SPEC,
        f"{SPEC}  minAvailable: 3\n",
        REFUSED,
        "the number of sub-jobs (2)",
        "lower minAvailable, or raise the replicas",
    ),
    "a misspelt plugin": InFile(
        SPEC,
        f"{SPEC}  plugins: {{pytroch: []}}\n",
        REFUSED,
        'Unsupported value: "pytroch"',
        'did you mean "pytorch"?',
    ),
    "a misspelt argument of a plugin": InFile(
        SPEC,
        f"{SPEC}  plugins: {{pytorch: [--mater=x]}}\n",
        REFUSED,
        "unknown argument `--mater`",
        'did you mean "--master"?',
    ),
    "a split without a size": InFile(
        GROUP,
        "    splitPolicy: {mode: auto}\n",
        REFUSED,
        "accelerators: Required value",
        "set both accelerators and acceleratorType",
    ),
    "replicas beside an automatic split": InFile(
        GROUP,
        f"{AUTO}{GROUP}",
        REFUSED,
        "replicas: Forbidden",
        "remove replicas, or use mode static",
    ),
    "a dependency that does not exist": InFile(
        GROUP,
        f"    dependsOn: [{{name: data, status: Ready}}]\n{GROUP}",
        REFUSED,
        "must be the name of an earlier replicatedJob",
        "or correct the name",
    ),
    "a dependency on itself": InFile(
        GROUP,
        f"    dependsOn: [{{name: trainer, status: Ready}}]\n{GROUP}",
        REFUSED,
        "must not depend on itself",
        "remove the dependency",
    ),
    "a mount without its volume": InFile(
        CONTAINER,
        f"{CONTAINER}              volumeMounts: [{{name: data, mountPath: /data}}]\n",
        REFUSED,
        'Not found: "data"',
        "add the volume to `volumes` of the pod",
    ),
    "an invented action": InFile(
        SPEC,
        f"{SPEC}  failurePolicy: {{rules: [{{action: Restart}}]}}\n",
        REFUSED,
        'Unsupported value: "Restart"',
        'did you mean "RestartJob"?',
    ),
    "an invented event": InFile(
        TEMPLATE,
        f"{TEMPLATE}      policies: [{{event: PodFail, action: RestartJob}}]\n",
        REFUSED,
        'Unsupported value: "PodFail"',
        'did you mean "PodFailed"?',
    ),
    "a restart policy in the wrong case": InFile(
        "            containers:",
        "            restartPolicy: never\n            containers:",
        REFUSED,
        'restartPolicy: Unsupported value: "never"',
        'did you mean "Never"?',
    ),
    "required clusters without names": InFile(
        GROUP,
        f"    clusterPolicy: Required\n{GROUP}",
        REFUSED,
        "clusterNames: Required value",
        "list the clusters, or use clusterPolicy Preferred",
    ),
    "a tab": InFile(
        GROUP, "\treplicas: 2\n", USAGE, "error: FILE: line 7", "found character '\\t'"
    ),
}

TYPED = {
    "a device that no cluster has": Typed(
        ["plan", "-f", "FILE(nvidia.com/gpus: 1)", "--clusters", "CLUSTERS"],
        NEVER,
        "no cluster has nvidia.com/gpus",
        "did you mean nvidia.com/gpu?",
    ),
    "a pod larger than a node": Typed(
        ["plan", "-f", "FILE(nvidia.com/gpu: 16)", "--clusters", "CLUSTERS"],
        NEVER,
        "no node has 16 nvidia.com/gpu",
        "make its pods smaller",
    ),
    "no HyperJob in the file": Typed(
        ["lint", "CLUSTERS"], REFUSED, "error: CLUSTERS: contains no HyperJob", "--allow-none"
    ),
    "a file that does not exist": Typed(
        ["lint", "NOWHERE"], USAGE, "error: NOWHERE", "No such file or directory"
    ),
    "a command of other tools": Typed(
        ["list"], USAGE, "error: No such command 'list'", "use: hyperjob get"
    ),
    "a misspelt command": Typed(
        ["restrat", "llm"], USAGE, "error: No such command 'restrat'", "did you mean 'restart'?"
    ),
    "a misspelt flag": Typed(
        ["get", "--all-namespace"], USAGE, "error: No such option", "--all-namespaces"
    ),
    "a form of kubectl": Typed(
        ["get", "-o", "jsonpath={.a}"], USAGE, "'jsonpath={.a}' is of kubectl alone", "get hj -o"
    ),
    "another kind": Typed(
        ["why", "pod/x"], USAGE, "'pod/x' is not the name of a HyperJob", "hj/NAME"
    ),
    "a misspelt phase": Typed(
        ["wait", "llm", "--for=phase=Runing"], USAGE, "got 'Runing'", "must be one of Pending"
    ),
    "a goal without its kind": Typed(
        ["wait", "llm", "--for=Completed"], USAGE, "'Completed'", "give phase=PHASE"
    ),
    "a duration with a blank": Typed(
        ["wait", "llm", "--for=delete", "--timeout=5 min"], USAGE, "'5 min' is not a duration", "5m"
    ),
    "a move of nothing": Typed(
        ["migrate", "llm"], USAGE, "give the sub-jobs to move", "--from CLUSTER"
    ),
    "a kubeconfig that does not exist": Typed(
        ["get", "--kubeconfig", "NOWHERE"],
        FAILED,
        "kubeconfig NOWHERE: no such file",
        "give a kubeconfig that exists",
    ),
    "a context that does not exist": Typed(
        ["get", "--context", "b"], FAILED, "no context 'b'", "it has a"
    ),
    "a server that does not answer": Typed(
        ["get"], FAILED, "Unable to connect to the server", "http://127.0.0.1:1: Connection refused"
    ),
}


@pytest.fixture(autouse=True)
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(UNREACHABLE, encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))


def test_the_table_starts_from_a_file_without_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(GOOD, encoding="utf-8")
    assert CliRunner().invoke(main, ["lint", str(tmp_path / "job.yaml")]).exit_code == ALLOWED


@pytest.mark.parametrize("mistake", IN_FILE.values(), ids=list(IN_FILE))
def test_a_mistake_in_a_file_is_told_with_its_remedy(mistake: InFile, tmp_path: Path) -> None:
    assert mistake.right in GOOD
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace(mistake.right, mistake.wrong, 1), encoding="utf-8")
    done = CliRunner().invoke(main, ["lint", str(file)])
    said = done.output.replace(str(file), "FILE")
    assert (done.exit_code, mistake.message in said, mistake.remedy in said) == (
        *(mistake.code, True, True),
    ), said


@pytest.mark.parametrize("mistake", TYPED.values(), ids=list(TYPED))
def test_a_mistake_on_the_command_line_is_told_with_its_remedy(
    mistake: Typed, tmp_path: Path
) -> None:
    paths = {"CLUSTERS": str(CLUSTERS), "NOWHERE": str(tmp_path / "nowhere")}
    words = []
    for word in mistake.words:
        if word.startswith("FILE("):
            file = tmp_path / "job.yaml"
            file.write_text(GOOD.replace(GPU, word[5:-1]), encoding="utf-8")
            word = str(file)
        words.append(paths.get(word, word))
    done = CliRunner().invoke(main, words)
    said = done.output
    for name, path in paths.items():
        said = said.replace(path, name)
    assert (done.exit_code, mistake.message in said, mistake.remedy in said) == (
        *(mistake.code, True, True),
    ), said
