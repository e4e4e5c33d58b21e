"""Mistakes that people make: each ends with its message, a remedy and an exit code."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from hyperjob.cli import main
from tests.support.kubeconfigs import write_kubeconfig
from tests.unit.cli.test_lint import GOOD

CLUSTERS = Path(__file__).parents[3] / "examples/clusters.yaml"
FAILED = 1
USAGE = 2
NEVER = 4


@dataclass(frozen=True)
class Typed:
    """A command line; FILE, NOWHERE and CLUSTERS stand for paths."""

    words: Sequence[str]
    code: int
    message: str
    remedy: str


GPU = "nvidia.com/gpu: 1"
ELSEWHERE = "clusterPolicy: Required\n    clusterNames: [gpu-eest]"


TYPED = {
    "a device that no cluster has": Typed(
        ["plan", "-f", "FILE(nvidia.com/gpus: 1)", "--clusters", "CLUSTERS"],
        NEVER,
        "no cluster has nvidia.com/gpus",
        "did you mean nvidia.com/gpu?",
    ),
    "a device by its everyday name": Typed(
        ["plan", "-f", "FILE(gpu: 8)", "--clusters", "CLUSTERS"],
        NEVER,
        "no cluster has gpu; the clusters have ",
        "nvidia.com/gpu",
    ),
    "a misspelt cluster": Typed(
        ["plan", "-f", f"FILE({GPU}\n    {ELSEWHERE})", "--clusters", "CLUSTERS"],
        NEVER,
        "cluster gpu-eest does not exist",
        "did you mean gpu-east?",
    ),
    "a pod larger than a node": Typed(
        ["plan", "-f", "FILE(nvidia.com/gpu: 16)", "--clusters", "CLUSTERS"],
        NEVER,
        "no node has 16 nvidia.com/gpu",
        "make its pods smaller",
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
    "a misspelt phase": Typed(
        ["wait", "llm", "--for=phase=Runing"], USAGE, "got 'Runing'", "must be one of Pending"
    ),
    "a goal without its kind": Typed(
        ["wait", "llm", "--for=Completed"], USAGE, "'Completed'", "give phase=PHASE"
    ),
    "a duration with a blank": Typed(
        ["wait", "llm", "--for=delete", "--timeout=5 min"], USAGE, "'5 min' is not a duration", "5m"
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
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "config", name="a")))


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
