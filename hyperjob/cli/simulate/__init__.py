"""`hyperjob simulate`: simulate a workload on clusters, queues and policies, in virtual time."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from hyperjob.cli.files import file_option, manifests_option
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.kubectl.progress import progress
from hyperjob.cli.simulate import view
from hyperjob.simulate import readers
from hyperjob.simulate.generate import SHAPES, Demand, Estimates, generate
from hyperjob.simulate.history import History
from hyperjob.simulate.jobs import Style, submission
from hyperjob.simulate.measure import SimulationReport, measure
from hyperjob.simulate.page import page
from hyperjob.simulate.policies import OURS, POLICIES
from hyperjob.simulate.sites import missing_queues, queue, shares_of, urgent_class
from hyperjob.simulate.workload import Failures, Scenario, WorkloadError

_TABLE = "table"
_F = TypeVar("_F", bound=Callable[..., Any])


def _hours(name: str, text: str, *, default: float = 0.0) -> Callable[[_F], _F]:
    return click.option(name, type=click.FloatRange(0), default=default, metavar="HOURS", help=text)


@click.command()
@file_option(
    "--clusters",
    text="Clusters file of `hyperjob sandbox`; the command reads clusters, queues and"
    " lostClusters.  [default: four clusters of 8 to 32 nodes with eight GPUs each]",
)
@manifests_option(
    "File or folder with Queues, PriorityClasses, and HyperJobs with the annotations"
    " simulation.training.volcano.sh/arrival and /duration. May be given more than once."
)
@file_option(
    "--trace",
    text="Jobs from a CSV with the columns submit, duration, gpus (and name, queue, namespace,"
    " priority, estimate), or from a file of a public trace.",
)
@click.option(
    "--format",
    "form_of_trace",
    type=click.Choice(["auto", *readers.FORMS]),
    default="auto",
    show_default=True,
    help="Format of the trace.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Read only the first N jobs of the trace."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Generate N jobs.  [default: 500, where neither -f nor --trace gives any]",
)
@click.option(
    "--days", type=click.FloatRange(0.01, 3650), default=7.0, show_default=True,
    help="Days in which generated jobs arrive.",
)  # fmt: skip
@click.option(
    "--load", type=click.FloatRange(0.01, 10), default=0.85, show_default=True,
    help="Work of generated jobs, as a part of the clusters' capacity in these days.",
)  # fmt: skip
@click.option(
    "--shape",
    type=click.Choice(list(SHAPES)),
    default="llm",
    show_default=True,
    help="Distribution of the sizes and durations of generated jobs.",
)
@click.option(
    "--queue",
    "queues",
    metavar="NAME=SHARE",
    multiple=True,
    help="Share of the generated jobs that go to a queue. May be given more than once.",
)
@click.option(
    "--urgent", type=click.FloatRange(0, 1), default=0.0, metavar="SHARE",
    help="Share of generated jobs with a high priority.",
)  # fmt: skip
@click.option(
    "--estimates", type=click.FloatRange(0, 1), default=0.0, metavar="SHARE",
    help="Share of generated jobs with a runningEstimate.",
)  # fmt: skip
@click.option(
    "--estimate-error", type=click.FloatRange(1, 100), default=1.0, metavar="FACTOR",
    help="Largest factor by which estimates are too long or too short.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@_hours("--pod-mtbf", "Mean time between failures of a busy node's pods; 0 is no failures.")
@_hours("--node-mtbf", "Mean time between failures of a node; 0 is no failures.")
@_hours("--node-repair", "Time until a failed node is back.", default=4.0)
@_hours("--cluster-mtbf", "Mean time between failures of a whole cluster; 0 is no failures.")
@_hours("--cluster-repair", "Time until a failed cluster is back.", default=2.0)
@click.option(
    "--checkpoint", type=click.FloatRange(0), default=30.0, show_default=True, metavar="MINUTES",
    help="Time between checkpoints: a stop loses the work since the last checkpoint.",
)  # fmt: skip
@click.option(
    "--max-domains", type=click.IntRange(1), default=4, show_default=True,
    help="Maximum number of clusters of a generated or traced job.",
)  # fmt: skip
@click.option(
    "--policy",
    type=click.Choice(list(POLICIES)),
    default=OURS,
    show_default=True,
    help="Policy to simulate.",
)
@click.option(
    "--compare",
    metavar="POLICIES",
    help="Policies to compare on the same workload, separated by commas, or all.",
)
@file_option(
    "--html",
    text="Also write a self-contained HTML page with plots.",
    writable=True,
)
@out.output(_TABLE, out.JSON, out.YAML)
def simulate(
    clusters: Path | None,
    files: Sequence[str],
    trace: Path | None,
    form_of_trace: str,
    limit: int | None,
    jobs: int | None,
    queues: Sequence[str],
    policy: str,
    compare: str | None,
    html: Path | None,
    form: str,
    **numbers: Any,  # noqa: ANN401 - the numeric options, by name
) -> None:
    """Simulate a workload on clusters with the controller's own decisions, in virtual time.

    The command runs the controller's own code against clusters in memory, and makes no request to
    an API server. Equal arguments give equal output.

    Exit code 0: all jobs ended; 2: a file or an argument is wrong; 4: under the simulated policy
    some jobs can never start or end. With --compare, the first policy decides the exit code.

    Example: hyperjob simulate --jobs 300 --days 3 --load 0.95 --compare hyperjob,fifo,one-cluster
    """
    # The import is slow, and --help does not need the engine.
    from hyperjob.simulate.engine import simulate as play

    try:
        scenario = _scenario(
            clusters, files, trace, form_of_trace, limit, jobs, _shares(queues), numbers
        )
    except WorkloadError as error:
        raise FailureError(str(error), code=Code.USAGE) from None
    chosen = _policies(compare) if compare else [policy]
    reports: list[SimulationReport] = []
    histories: list[History] = []
    shares = shares_of(scenario)
    with progress(shown=True) as tell:
        for name in chosen:

            def report_progress(ended: int, total: int, seconds: float, name: str = name) -> None:
                tell(f"{name}: day {seconds / 86400:.1f}, {ended} of {total} jobs have ended")

            history = play(scenario, policy=name, progress=report_progress)
            reports.append(measure(history, policy=name, shares=shares))
            histories.append(history)
    if html is not None:
        _write(html, page(reports, histories))
    _print(reports, form)
    first = reports[0]
    sys.exit(Code.NEVER if first.never_started + first.unfinished else Code.OK)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FailureError(f"{path}: {error.strerror or error}") from None


def _print(reports: Sequence[SimulationReport], form: str) -> None:
    if form in (out.JSON, out.YAML):
        out.dump({"policies": [view.value(report) for report in reports]}, form)
    elif len(reports) == 1:
        out.say(view.one(reports[0]))
    else:
        out.say(view.side_by_side(reports))


def _policies(text: str) -> list[str]:
    names = list(POLICIES) if text == "all" else [each.strip() for each in text.split(",")]
    for name in names:
        if name not in POLICIES:
            known = ", ".join(POLICIES)
            raise FailureError(f"--compare: {name!r} is not one of {known}", code=Code.USAGE)
    return list(dict.fromkeys(names))


def _shares(pairs: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for pair in pairs:
        name, _, share = pair.partition("=")
        try:
            found[name] = float(share) if share else 1.0
        except ValueError:
            found[name] = 0.0
        if not name or found[name] <= 0:
            raise FailureError(f"--queue: {pair!r} must be NAME=SHARE", code=Code.USAGE)
    return found


def _scenario(
    clusters: Path | None,
    files: Sequence[str],
    trace: Path | None,
    form_of_trace: str,
    limit: int | None,
    number: int | None,
    shares: dict[str, float],
    numbers: dict[str, Any],
) -> Scenario:
    # The import is slow, and --help does not need the sources.
    from hyperjob.cli.simulate.sources import Files, sites_of

    sites, described, outages = sites_of(clusters)
    given = Files(files)
    by_name = {each["metadata"]["name"]: each for each in (*described, *given.queues)}
    queues = list(by_name.values())
    found = list(given.jobs)
    style = Style(max_domains=numbers["max_domains"])
    if trace is not None:
        found += [submission(job, style) for job in readers.read(trace, form=form_of_trace)[:limit]]
    scenario = Scenario(
        sites=sites,
        queues=queues,
        jobs=found,
        priority_classes=given.classes,
        outages=outages,
        seed=numbers["seed"],
        checkpoint=numbers["checkpoint"] * 60,
        failures=Failures(
            pod=numbers["pod_mtbf"],
            node=numbers["node_mtbf"],
            node_repair=numbers["node_repair"],
            cluster=numbers["cluster_mtbf"],
            cluster_repair=numbers["cluster_repair"],
        ),
    )
    if number is not None or not found:
        scenario = _generated(scenario, number or 500, shares, style, numbers)
    names = [job.key for job in scenario.jobs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkloadError(f"two HyperJobs have the name {twice}")
    missing = missing_queues(scenario.queues, (job.queue for job in scenario.jobs))
    if missing and queues:
        out.remark(f"Queues without a Queue object get weight 1: {', '.join(missing)}")
    return replace(scenario, queues=[*scenario.queues, *map(queue, missing)])


def _generated(
    scenario: Scenario,
    number: int,
    shares: dict[str, float],
    style: Style,
    numbers: dict[str, Any],
) -> Scenario:
    sizes = view.sizes(scenario.sites)
    known = {each["metadata"]["name"]: 1.0 for each in scenario.queues}
    demand = Demand(
        jobs=number,
        days=numbers["days"],
        load=numbers["load"],
        shape=numbers["shape"],
        queues=shares or known or {"default": 1.0},
        urgent=numbers["urgent"],
        estimates=Estimates(share=numbers["estimates"], error=numbers["estimate_error"]),
    )
    largest = sum(sorted(sizes.values())[-numbers["max_domains"] :])
    jobs = generate(demand, accelerators=sum(sizes.values()), largest=largest, seed=numbers["seed"])
    classes = [*scenario.priority_classes, *([urgent_class()] if numbers["urgent"] else [])]
    made = [submission(job, style) for job in jobs]
    return replace(scenario, jobs=[*scenario.jobs, *made], priority_classes=classes)
