"""Rows of progress within their bound, the page's address, and a table with a bar."""

import io
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob.client.logs.reading import Thinned
from hyperjob.client.summary import read
from hyperjob.sdk import HyperJobError
from hyperjob.sdk.view import JobView, LastRead, drawn, html_of, rich_of

RAW = {
    "metadata": {"namespace": "team", "name": "llm"},
    "status": {
        "state": {"phase": "Running"},
        "training": {
            "step": 250,
            "steps": 1000,
            "percent": 25,
            "progress": "25%",
            "updateTime": "2026-01-01T00:00:00Z",
            "metrics": {"loss": "1.25", "<b>": "1"},
        },
    },
}


@given(st.integers(2, 50), st.integers(0, 2000))
def test_rows_are_bounded_and_evenly_chosen(most: int, number: int) -> None:
    thinned = Thinned[dict](most)
    for step in range(number):
        thinned.add({"step": step})
    steps = [row["step"] for row in thinned.kept]
    assert len(steps) <= most
    if number:
        assert (steps[0], steps[-1]) == (0, number - 1)
        gaps = {after - before for before, after in pairwise(steps[:-1])}
        assert len(gaps) <= 1
    if number < most:
        assert steps == list(range(number))


@pytest.mark.parametrize(
    ("page", "url"),
    [
        ("http://127.0.0.1:80/?token=x", "http://127.0.0.1:80/hyperjobs/team/llm?token=x"),
        ("https://jobs.example.org/", "https://jobs.example.org/hyperjobs/team/llm"),
        ("https://example.org/jobs", "https://example.org/jobs/hyperjobs/team/llm"),
    ],
)
def test_a_hyperjob_has_an_address_on_the_page(page: str, url: str) -> None:
    assert JobView(LastRead(RAW, page)).url == url


def test_without_a_page_the_error_says_how_to_give_one() -> None:
    with pytest.raises(HyperJobError, match="HYPERJOB_PAGE, with the address that `hyperjob ui`"):
        _ = JobView(LastRead(RAW)).url


def test_the_table_has_a_bar_and_the_latest_metrics() -> None:
    from rich.console import Console

    page = html_of(read(RAW))
    assert "width:25%" in page
    assert "step 250 of 1000" in page
    assert "loss 1.25" in page
    assert "<b>" not in page.removeprefix("<p><b>"), "texts are escaped"
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(rich_of(read(RAW)))
    assert "step 250 of 1000" in console.export_text()


def row(step: int, **metrics: float) -> dict[str, float | datetime]:
    return {
        "time": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=step),
        **metrics,
        "step": step,
    }


@pytest.mark.parametrize(
    ("rows", "wanted", "said"),
    [
        ([row(1, loss=1.0)], ["los"], "has reported no metric 'los'; there are loss"),
        ([row(1)], [], "has reported no metrics"),
        ([], ["loss"], "there are none"),
    ],
)
def test_a_metric_that_is_not_there_is_named(
    rows: list[dict[str, float | datetime]], wanted: list[str], said: str
) -> None:
    with pytest.raises(HyperJobError, match=said):
        drawn(rows, wanted, name="llm", axis="step", ax=None)
