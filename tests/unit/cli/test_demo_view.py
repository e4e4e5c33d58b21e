"""What the demo prints of a HyperJob and of clusters."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hyperjob.cli.demo import view

ROOT = Path(__file__).parents[3]


def hyperjob(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "llm", "namespace": "ml"}, "status": status}


RUNNING = hyperjob(
    state={"phase": "Running", "message": "2 of 2 sub-jobs run"},
    jobsReady="2/2",
    jobs=[
        {"name": "llm-t-0", "replicatedJob": "t", "cluster": "east", "phase": "Running"},
        {"name": "llm-t-1", "replicatedJob": "t", "cluster": "west", "phase": "Running"},
    ],
    replicatedJobsStatus=[{"name": "t", "running": 256}],
)


def text(renderable: Any, *, width: int = 200) -> str:
    console = Console(width=width, record=True, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def lines(hyperjob: dict[str, Any]) -> str:
    return "\n".join(line.plain for line in view.hyperjob_tree(hyperjob))


def test_a_hyperjob_without_status_is_pending() -> None:
    item = view.row({"metadata": {"name": "new"}})
    assert (item.name, item.phase, item.clusters, item.finished) == (
        "default/new",
        "Pending",
        "",
        False,
    )


def test_a_running_hyperjob_names_its_clusters_and_pods() -> None:
    item = view.row(RUNNING)
    assert (item.jobs, item.running_pods, item.clusters) == ("2/2", 256, "east,west")


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


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Completed", True), ("Failed", True), ("Degraded", False), ("Queued", False)],
)
def test_only_completed_and_failed_are_ends(phase: str, finished: bool) -> None:
    assert view.row(hyperjob(state={"phase": phase})).finished is finished


def test_the_tree_shows_every_sub_job_with_cluster_and_reason() -> None:
    waiting = hyperjob(
        state={"phase": "Pending"},
        jobs=[
            {
                "name": "llm-t-0",
                "replicatedJob": "t",
                "phase": "Pending",
                "pods": 8,
                "message": "8 nvidia.com/gpu are missing on east",
            }
        ],
        replicatedJobsStatus=[{"name": "t"}],
    )
    shown = lines(waiting)
    assert "llm-t-0  Pending  on no cluster yet  8 nvidia.com/gpu are missing on east" in shown
    assert "t  8 pods" in shown


def test_the_tree_counts_pods_by_state() -> None:
    assert "256 running" in lines(RUNNING)


def test_a_low_terminal_cuts_the_trees_and_keeps_the_table_and_the_clusters() -> None:
    shown = text(view.screen([RUNNING], [], "3 s")).splitlines()
    assert shown[0] == "3 s"
    titles = [line.split()[0] for line in shown if line.startswith(("HYPERJOB", "CLUSTER"))]
    assert titles == ["HYPERJOB", "CLUSTER"]
    assert shown[-1].split() == ["└─", "llm-t-1", "Running", "on", "west"]


def test_the_first_that_waits_for_others_of_its_queue_is_worth_explaining() -> None:
    state = {"phase": "Queued", "reason": "QueueLimitReached"}
    waiting, full = hyperjob(state=state), hyperjob(state=state | {"reason": "Other"})
    assert view.waiting_in_line([RUNNING, full, waiting]) is waiting
    assert view.waiting_in_line([RUNNING, full]) is None


def test_a_transition_is_one_line() -> None:
    assert view.transition(RUNNING) == "ml/llm Running 2/2 on east,west: 2 of 2 sub-jobs run"


def test_usage_is_what_is_allocated_and_allocating_of_accelerators_only() -> None:
    cluster = {
        "metadata": {"name": "east"},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "resourceSummary": {
                "allocatable": {"cpu": "64", "nvidia.com/gpu": "128"},
                "allocated": {"cpu": "3", "nvidia.com/gpu": "32"},
                "allocating": {"nvidia.com/gpu": "8"},
            },
        },
    }
    assert view.usages([cluster]) == [view.Usage("east", "nvidia.com/gpu", 40, 128, ready=True)]


def test_a_cluster_without_summary_has_no_usage() -> None:
    assert view.usages([{"metadata": {"name": "new"}}]) == []
    assert "CLUSTER" in text(view.cluster_table([]))
