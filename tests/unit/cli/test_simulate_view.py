"""The texts and values of reports of `hyperjob simulate`."""

import csv
from typing import Any

from hyperjob_sandbox.simulate.measure import (
    Forecasts,
    QueueReport,
    SimulationReport,
    Spread,
    spread,
)
from hyperjob_sandbox.simulate.policies import POLICIES
from hyperjob_sandbox_cli.simulate import view

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
