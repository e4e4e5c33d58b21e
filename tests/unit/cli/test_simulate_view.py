"""The texts and values of reports of `hyperjob simulate`."""

import csv
from typing import Any

import pytest

from hyperjob_sandbox.simulate.measure import (
    Forecasts,
    QueueReport,
    SimulationReport,
    Spread,
    spread,
)
from hyperjob_sandbox.simulate.policies import POLICIES
from hyperjob_sandbox_cli.simulate import view
from tests.unit.simulate.scenarios import clusters

NONE = spread(())
FORECASTS = Forecasts(ahead=NONE, late=NONE, error=NONE)


def numbers(count: int, value: float, most: float) -> Spread:
    return Spread(count=count, mean=value, p50=value + 1, p95=value + 2, p99=value + 3, max=most)


def report(**fields: Any) -> SimulationReport:
    given: dict[str, Any] = {
        "policy": "hyperjob",
        "jobs": 5,
        "completed": 5,
        "failed": 0,
        "never_started": 0,
        "unfinished": 0,
        "stuck": {},
        "window": 7200.0,
        "end": 90_000.0,
        "use": 0.5,
        "goodput": 0.25,
        "clusters": {"east": 0.125},
        "wait": numbers(5, 10, 50),
        "completion": numbers(5, 3600, 7200),
        "slowdown": numbers(4, 1.5, 250.4),
        "queues": {"gold": QueueReport(share=0.75, used=0.6, wait=numbers(3, 20, 59))},
        "sizes": {"2-8": numbers(2, 30, 58)},
        "unfair": 0.03,
        "splinters": 0.04,
        "idle": 0.05,
        "stops": {},
        "lost": 0.0,
        "forecasts": FORECASTS,
        "series": {},
    }
    return SimulationReport(**{**given, **fields})


def text(found: SimulationReport) -> list[str]:
    return [line.plain.rstrip() for line in view.one(found)]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (59.4, "59s"),
        (60, "1m"),
        (89, "1m"),
        (3569, "59m"),
        (3570, "1h00m"),
        (2 * 3600 + 5 * 60, "2h05m"),
        (48 * 3600 - 31, "47h59m"),
        (48 * 3600 - 29, "2d00h"),
        (50 * 3600, "2d02h"),
        (100 * 3600 + 1799, "4d04h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, shown: str) -> None:
    assert view.length(seconds) == shown


def test_the_size_of_a_cluster_is_its_number_of_accelerators() -> None:
    assert view.sizes(clusters(2, 1)) == {"c0": 16, "c1": 8}


def test_values_have_json_names_and_six_digits() -> None:
    found = view.value(
        report(use=1 / 3, never_started=2, series={"in_use": {"east": (0.1234567, 1)}})
    )
    assert (found["use"], found["neverStarted"], found["jobs"]) == (0.333333, 2, 5)
    assert found["series"] == {"inUse": {"east": [0.123457, 1]}}
    assert found["queues"]["gold"]["wait"]["p50"] == 21
    assert found["forecasts"]["error"]["count"] == 0


def test_csv_has_a_row_for_each_report_and_all_columns_of_both() -> None:
    two = report(
        policy="fifo", stops={"node": 2}, series={"free": {"all": (1,)}}, stuck={"a/b": "x"}
    )
    header, *rows = csv.reader(view.csv_of([report(), two]).splitlines())
    assert header[:2] == ["policy", "jobs"]
    assert {"wait.p50", "queues.gold.wait.max", "sizes.2-8.mean", "stops.node"} <= {*header}
    assert not [name for name in header if name.startswith(("series", "stuck"))]
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert [each["policy"] for each in found] == ["hyperjob", "fifo"]
    assert [each["stops.node"] for each in found] == ["", "2"]
    assert found[0]["queues.gold.share"] == "0.75"


def test_a_report_names_its_policy_and_describes_use_and_stops() -> None:
    lines = text(report())
    assert lines[0] == f"Policy hyperjob: {POLICIES['hyperjob'][0]}"
    assert lines[1] == "5 of 5 jobs completed."
    assert lines[2] == (
        "Jobs arrive for 2h00m; the last ends after 25h00m. While jobs arrive, 50.0% of the"
        " accelerators are in use (25.0% do work that is kept), 5.0% are free while jobs wait, 4.0%"
        " on nodes in use."
    )
    assert lines[3] == (
        "No job was stopped; 0 accelerator-hours of work were repeated. Queues used 3.0% beyond"
        " their share while other queues waited."
    )
    assert lines[4] == ""
    stopped = text(report(stops={"preempted": 2, "node": 1}, lost=2 * 3600.0 * 8))
    assert stopped[3].startswith(
        "Stopped: 2 by preempted, 1 by node; 16 accelerator-hours of work were repeated."
    )


def test_a_report_has_tables_of_times_of_clusters_and_of_queues() -> None:
    rows = [line.split("  ") for line in text(report())[5:] if line]
    found = [[cell.strip() for cell in row if cell] for row in rows]
    assert found == [
        ["JOBS", "MEAN", "P50", "P95", "P99", "MAX"],
        ["wait", "5", "10s", "11s", "12s", "13s", "50s"],
        ["completion", "5", "1h00m", "1h00m", "1h00m", "1h00m", "2h00m"],
        ["slowdown", "4", "1.50", "2.50", "3.50", "4.50", "250"],
        ["wait, 2-8 accelerators", "2", "30s", "31s", "32s", "33s", "58s"],
        ["wait, queue gold", "3", "20s", "21s", "22s", "23s", "59s"],
        ["CLUSTER", "IN USE"],
        ["east", "12.5%"],
        ["QUEUE", "SHARE", "USED"],
        ["gold", "75.0%", "60.0%"],
    ]


def test_jobs_that_did_not_complete_are_counted_and_named_with_their_message() -> None:
    lines = text(
        report(
            completed=1,
            failed=1,
            never_started=2,
            unfinished=1,
            stuck={"ml/a": "no room", "ml/b": ""},
        )
    )
    assert lines[1] == (
        "1 of 5 jobs completed, 1 failed, 2 never started, 1 started and never ended."
    )
    assert lines[2] == "  ml/a: no room"
    assert "ml/b" not in "\n".join(lines)


@pytest.mark.parametrize(("late", "shown"), [(120, "2m late"), (-180, "3m early")])
def test_a_report_says_how_good_forecasts_of_starts_were(late: float, shown: str) -> None:
    forecasts = Forecasts(
        ahead=numbers(3, 599, 0), late=numbers(3, late - 2, 0), error=numbers(3, 58, 0)
    )
    lines = text(report(forecasts=forecasts))
    assert lines[4] == (
        "A start was forecast for 3 of 5 jobs, at the median 10m ahead; half of them start within"
        f" 59s of it, 95% within 1m, and 95% at most {shown}."
    )
    assert lines[5] == ""


def test_policies_are_compared_in_a_table_with_a_row_each() -> None:
    stuck = report(policy="fifo", never_started=1, stops={"node": 2, "pod": 1}, lost=7200.0)
    lines = [line.plain.rstrip() for line in view.side_by_side([report(), stuck])]
    header, first, second, empty, *words = lines
    columns = header.replace("WAIT MEAN", "MEAN").replace("SLOWDOWN P50", "SLOWDOWN")
    names = columns.replace("NEVER STARTED", "NEVER").replace("ENDS AFTER", "ENDS").split()
    assert list(zip(names, first.replace(" h ", "h ").split(), strict=True)) == [
        ("POLICY", "hyperjob"),
        ("USE", "50.0%"),
        ("KEPT", "25.0%"),
        ("MEAN", "10s"),
        ("P50", "11s"),
        ("P95", "12s"),
        ("P99", "13s"),
        ("SLOWDOWN", "2.50"),
        ("P95", "3.50"),
        ("UNFAIR", "3.0%"),
        ("STOPS", "0"),
        ("LOST", "0h"),
        ("NEVER", "0"),
        ("STUCK", "0"),
        ("ENDS", "25h00m"),
    ]
    assert second.replace(" h ", "h ").split()[-5:] == ["3", "2h", "1", "0", "never"]
    assert empty == ""
    assert " ".join(" ".join(words).split()) == " ".join(
        f"{policy}: {POLICIES[policy][0]}" for policy in ("hyperjob", "fifo")
    )
