"""Reports as tables, as values and as CSV. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from hyperjob.table import Row, indented, table
from hyperjob_sandbox.simulate.measure import SimulationReport, Spread, percent
from hyperjob_sandbox.simulate.nodes import Nodes
from hyperjob_sandbox.simulate.policies import POLICIES
from hyperjob_sandbox.simulate.workload import Site

_DIGITS = 6


def sizes(sites: Iterable[Site]) -> dict[str, int]:
    """Return the number of accelerators of each cluster."""
    return {site.name: Nodes(site.nodes).accelerators for site in sites}


def value(report: SimulationReport) -> dict[str, Any]:
    """Return a report as JSON values: times in seconds, shares between 0 and 1, rounded."""
    found: dict[str, Any] = _rounded(asdict(report))
    return found


def csv_of(reports: Iterable[SimulationReport]) -> str:
    """Return reports as CSV, a row for each: the numbers of `value` with a path of names."""
    rows = [_flat(value(report)) for report in reports]
    text = io.StringIO()
    # Queues and causes of stops may differ between policies.
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(item: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested objects by their paths; lists and texts of jobs are left out."""
    found: dict[str, Any] = {}
    for name, each in item.items():
        if isinstance(each, dict) and name not in ("series", "stuck"):
            found |= _flat(each, f"{prefix}{name}.")
        elif not isinstance(each, dict):
            found[prefix + name] = each
    return found


def _rounded(item: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(item, float):
        return round(item, _DIGITS)
    if isinstance(item, dict):
        return {_camel(str(key)): _rounded(each) for key, each in item.items()}
    if isinstance(item, list | tuple):
        return [_rounded(each) for each in item]
    return item


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.title() for each in rest)


def one(report: SimulationReport) -> list[Text]:
    """Return one report as text and tables."""
    words, _ = POLICIES[report.policy]
    lines = [
        Text.assemble((f"Policy {report.policy}", "bold"), f": {words}"),
        Text(_jobs_text(report)),
        *(Text(f"  {name}: {message}") for name, message in report.stuck.items() if message),
        Text(
            f"Jobs arrive for {length(report.window)}; the last ends after {length(report.end)}."
            f" While jobs arrive, {percent(report.use)} of the accelerators are in use"
            f" ({percent(report.goodput)} do work that is kept), {percent(report.idle)} are free"
            f" while jobs wait, {percent(report.splinters)} on nodes in use."
        ),
        Text(_stops_text(report)),
        Text(),
    ]
    if report.forecasts.error.count:
        lines.insert(-1, Text(_forecasts_text(report)))
    header = ("", "JOBS", "MEAN", "P50", "P95", "P99", "MAX")
    rows: list[Row] = [
        _row("wait", report.wait),
        _row("completion", report.completion),
        ("slowdown", str(report.slowdown.count), *map(_factor, _numbers(report.slowdown))),
        *(_row(f"wait, {name} accelerators", each) for name, each in report.sizes.items()),
        *(_row(f"wait, queue {name}", each.wait) for name, each in report.queues.items()),
    ]
    lines += table(header, rows)
    lines.append(Text())
    places: list[Row] = [(name, percent(used)) for name, used in report.clusters.items()]
    lines += table(("CLUSTER", "IN USE"), places)
    lines.append(Text())
    shares: list[Row] = [
        (name, percent(each.share), percent(each.used)) for name, each in report.queues.items()
    ]
    lines += table(("QUEUE", "SHARE", "USED"), shares)
    return lines


def side_by_side(reports: Sequence[SimulationReport]) -> list[Text]:
    """Return several reports as one table, with a row for each."""
    header = (
        *("POLICY", "USE", "KEPT", "WAIT MEAN", "P50", "P95", "P99", "SLOWDOWN P50", "P95"),
        *("UNFAIR", "STOPS", "LOST", "NEVER STARTED", "STUCK", "ENDS AFTER"),
    )
    rows: list[Row] = [
        (
            report.policy,
            percent(report.use),
            percent(report.goodput),
            length(report.wait.mean),
            length(report.wait.p50),
            length(report.wait.p95),
            length(report.wait.p99),
            _factor(report.slowdown.p50),
            _factor(report.slowdown.p95),
            percent(report.unfair),
            str(sum(report.stops.values())),
            f"{report.lost / 3600:.0f} h",
            str(report.never_started),
            str(report.unfinished),
            length(report.end) if not report.never_started + report.unfinished else "never",
        )
        for report in reports
    ]
    lines = table(header, rows)
    lines.append(Text())
    lines += indented([Text(f"{each.policy}: {POLICIES[each.policy][0]}") for each in reports], 0)
    return lines


def _jobs_text(report: SimulationReport) -> str:
    parts = [f"{report.completed} of {report.jobs} jobs completed"]
    if report.failed:
        parts.append(f"{report.failed} failed")
    if report.never_started:
        parts.append(f"{report.never_started} never started")
    if report.unfinished:
        parts.append(f"{report.unfinished} started and never ended")
    return f"{', '.join(parts)}."


def _stops_text(report: SimulationReport) -> str:
    stops = ", ".join(f"{number} by {cause}" for cause, number in report.stops.items())
    text = f"Stopped: {stops}" if stops else "No job was stopped"
    return (
        f"{text}; {report.lost / 3600:.0f} accelerator-hours of work were repeated."
        f" Queues used {percent(report.unfair)} beyond their share while other queues waited."
    )


def _forecasts_text(report: SimulationReport) -> str:
    found, jobs = report.forecasts, report.jobs
    return (
        f"A start was forecast for {found.error.count} of {jobs} jobs, at the median"
        f" {length(found.ahead.p50)} ahead; half of them start within {length(found.error.p50)} of"
        f" it, 95% within {length(found.error.p95)}, and 95% at most {_late(found.late.p95)}."
    )


def _late(seconds: float) -> str:
    return f"{length(seconds)} late" if seconds >= 0 else f"{length(-seconds)} early"


def _row(name: str, found: Spread) -> Row:
    return (name, str(found.count), *map(length, _numbers(found)))


def _numbers(found: Spread) -> tuple[float, ...]:
    return found.mean, found.p50, found.p95, found.p99, found.max


def _factor(number: float) -> str:
    """Return a slowdown with two decimals, from 100 on with none."""
    return f"{number:.2f}" if number < 100 else f"{number:.0f}"


def length(seconds: float) -> str:
    """Return a duration in its two largest units."""
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h{minutes:02d}m"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days}d{hours:02d}h"
