"""What the demo prints of HyperJobs and of clusters."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from hyperjob.cli import main
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


@pytest.mark.parametrize("width", [40, 80])
def test_every_line_that_is_cut_shows_an_ellipsis(width: int) -> None:
    jobs = [
        {
            "name": "llm-t-0",
            "replicatedJob": "t",
            "phase": "Pending",
            "message": "no cluster has room for this sub-job " * 5,
        }
    ]
    waits = hyperjob(state={"phase": "Pending", "message": "no cluster has room " * 9}, jobs=jobs)
    shown = text(view.screen([waits], [cluster()], "3 s"), width=width).splitlines()
    assert all(len(line) <= width for line in shown)
    whole = text(view.screen([waits], [cluster()], "3 s"), width=500).splitlines()
    assert len(shown) == len(whole)
    for line, full in zip(shown, whole, strict=True):
        if line.split() != full.split():
            assert line.rstrip().endswith("…"), line


def test_what_to_try_names_programs_and_examples_that_are_there() -> None:
    examples = ROOT / "examples"
    told = view.what_to_try(Path("/k/karmada.kubeconfig"), Path("/v/bin"), examples)
    assert "export KUBECONFIG=/k/karmada.kubeconfig\n" in told
    assert "export PATH=/v/bin:$PATH\n" in told
    files = [Path(word) for word in told.split() if word.endswith(".yaml")]
    assert len(files) == 2
    assert [file for file in files if not file.exists()] == []


def test_the_first_example_to_try_has_one_sub_job_on_the_cluster_on_which_it_fails() -> None:
    examples = ROOT / "examples"
    told = view.what_to_try(Path("/k/karmada.kubeconfig"), Path("/v/bin"), examples)
    files = [word for word in told.split() if word.endswith(".yaml")]
    clusters = str(examples / "clusters.yaml")
    words = ["plan", *(f"-f{file}" for file in files), "--clusters", clusters, "-o", "json"]
    recovers, later = json.loads(CliRunner().invoke(main, words).output)["items"]
    assert [job["cluster"] for job in recovers["jobs"]] == ["gpu-east", "gpu-west"]
    assert later["verdict"] == "Fits"


def test_a_low_terminal_cuts_the_trees_and_keeps_the_table_and_the_clusters() -> None:
    shown = text(view.screen([RUNNING], [cluster()], "3 s")).splitlines()
    assert shown[0] == "3 s"
    titles = [line.split()[0] for line in shown if line.startswith(("HYPERJOB", "CLUSTER"))]
    assert titles == ["HYPERJOB", "CLUSTER"]
    assert shown[-1].split() == ["└─", "on", "west"]


def test_the_first_that_waits_for_others_of_its_queue_is_worth_explaining() -> None:
    state = {"phase": "Queued", "reason": "QueueLimitReached"}
    waiting, full = hyperjob(state=state), hyperjob(state=state | {"reason": "Other"})
    assert view.waiting_in_line([RUNNING, full, waiting]) is waiting
    assert view.waiting_in_line([RUNNING, full]) is None


def test_a_transition_is_one_line() -> None:
    assert view.transition(RUNNING) == "ml/llm Running 2/2 on east,west: 2 of 2 sub-jobs run"


def test_a_cluster_shows_what_is_allocated_and_allocating_of_accelerators_only() -> None:
    _, row = text(view.cluster_table([cluster()], [])).splitlines()
    assert row.split() == ["east", GPU, "40/128", "########................"]


def test_a_cluster_without_summary_has_no_bar() -> None:
    assert text(view.cluster_table([{"metadata": {"name": "new"}}], [])).split()[0] == "CLUSTER"


@pytest.mark.parametrize(
    ("used", "total", "filled"), [(0, 8, 0), (1, 999, 1), (4, 8, 12), (9, 8, 24)]
)
def test_a_bar_differs_without_colour(used: int, total: int, filled: int) -> None:
    assert view.bar(used, total).plain == "#" * filled + "." * (24 - filled)
