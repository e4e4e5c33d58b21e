"""What the demo prints of HyperJobs and of clusters."""

from pathlib import Path
from typing import Any

from rich.console import Console

from hyperjob.client.summary import Summary, read
from hyperjob_sandbox_cli.demo import view

ROOT = Path(__file__).parents[3]
GPU = "nvidia.com/gpu"


def hyperjob(**status: Any) -> Summary:
    return read({"metadata": {"name": "llm", "namespace": "ml"}, "status": status})


RUNNING = hyperjob(
    state={"phase": "Running", "message": "2 of 2 sub-jobs run"},
    jobsReady="2/2",
    jobs=[
        {"name": "llm-t-0", "replicatedJob": "t", "cluster": "east", "phase": "Running"},
        {"name": "llm-t-1", "replicatedJob": "t", "cluster": "west", "phase": "Running"},
    ],
)


def cluster(name: str = "east", *, used: str = "32") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "resourceSummary": {
                "allocatable": {"cpu": "64", GPU: "128"},
                "allocated": {"cpu": "3", GPU: used},
                "allocating": {GPU: "8"},
            },
        },
    }


def text(renderable: Any, *, width: int = 200) -> str:
    console = Console(width=width, record=True, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_on_a_narrow_terminal_only_the_reason_is_cut() -> None:
    waiting = hyperjob(state={"phase": "Completed", "message": "no room " * 20}, jobsReady="2/2")
    titles, line = text(view.hyperjob_table([waiting]), width=60).splitlines()
    assert titles.split() == ["HYPERJOB", "STATUS", "JOBS", "RUNNING", "WHY"]
    assert line.split()[:4] == ["ml/llm", "Completed", "2/2", "0"]
    assert line.rstrip().endswith("…")


def test_what_to_try_names_programs_and_examples_that_are_there() -> None:
    examples = ROOT / "examples"
    told = view.what_to_try(Path("/k/karmada.kubeconfig"), Path("/v/bin"), examples)
    assert "export KUBECONFIG=/k/karmada.kubeconfig\n" in told
    assert "export PATH=/v/bin:$PATH\n" in told
    files = [Path(word) for word in told.split() if word.endswith(".yaml")]
    assert len(files) == 2
    assert [file for file in files if not file.exists()] == []
