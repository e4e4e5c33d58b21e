"""A HyperJob in a notebook and in a terminal: every text is shown as text."""

from dataclasses import replace

import pytest
from rich.console import Console, Group
from rich.progress_bar import ProgressBar

from hyperjob.client.summary import Summary, read
from hyperjob.sdk import view
from hyperjob_core.api.training import TrainingStatus


def summary(message: str) -> Summary:
    return read(
        {
            "metadata": {"name": "h", "namespace": "ns"},
            "spec": {
                "replicatedJobs": [
                    {"name": "g", "replicas": 2, "templateSpec": {"tasks": [{"replicas": 2}]}}
                ]
            },
            "status": {
                "state": {"phase": "Running", "message": message},
                "jobs": [
                    {
                        "name": "h-g-0",
                        "replicatedJob": "g",
                        "cluster": "east",
                        "phase": "Running",
                        "running": 2,
                        "pods": 2,
                        "attempt": 1,
                    },
                    {"name": "h-g-1", "replicatedJob": "g", "phase": "Pending", "message": message},
                ],
            },
        }
    )


def test_a_row_is_a_sub_job_with_its_cluster_phase_attempt_pods_and_message() -> None:
    assert view.rows_of(summary("waits")) == [
        ("h-g-0", "east", "Running", "2", "2/2", ""),
        ("h-g-1", "-", "Pending", "1", "0/0", "waits"),
    ]


@pytest.mark.parametrize("message", ["<script>x</script>", '"&amp;"'])
def test_html_escapes_every_text(message: str) -> None:
    shown = view.html_of(summary(message))
    assert "<b>HyperJob ns/h: Running</b>" in shown
    assert message not in shown
    assert shown.count("<tr>") == 3


def test_a_training_at_its_begin_has_a_bar_in_a_terminal_too() -> None:
    begun = replace(summary("waits"), training=TrainingStatus(steps=9, percent=0))
    shown = view.rich_of(begun)
    assert isinstance(shown, Group)
    assert [each.completed for each in shown.renderables if isinstance(each, ProgressBar)] == [0]


def test_a_terminal_shows_markup_as_text() -> None:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(view.rich_of(summary("[red]waits[/red]")))
    shown = captured.get()
    assert "HyperJob ns/h: Running" in shown
    assert "[red]waits[/red]" in shown
    assert "east" in shown
