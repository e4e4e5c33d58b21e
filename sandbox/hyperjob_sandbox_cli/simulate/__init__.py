"""`hyperjob simulate`: simulate a workload on clusters, queues and policies, in virtual time."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from hyperjob.cli.change import progress
from hyperjob.cli.files import file_option, manifests_option
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.simulate import readers
from hyperjob_sandbox.simulate.generate import Demand, generate
from hyperjob_sandbox.simulate.jobs import JobNumbers, submission
from hyperjob_sandbox.simulate.measure import SimulationReport, measure
from hyperjob_sandbox.simulate.policies import OURS, POLICIES
from hyperjob_sandbox.simulate.sites import missing_queues, queue, shares_of, urgent_class
from hyperjob_sandbox.simulate.workload import Scenario, Submission, WorkloadError
from hyperjob_sandbox_cli.simulate import view
from hyperjob_sandbox_cli.simulate.picture import canvas, draw
from hyperjob_sandbox_cli.simulate.scenario import ScenarioFile, scenario_of

_TABLE = "table"
_CSV = "csv"
_JOBS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedSize:
    """The size of a generated workload; `jobs` None where only other sources decide."""

    jobs: int | None
    days: float
    load: float
    seed: int


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
@file_option(
    "--scenario",
    text="YAML with the shape, queues, estimates and failures of the workload, as in"
    " examples/simulation/scenario.yaml.",
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
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@click.option(
    "--policy",
    "policies",
    metavar="POLICIES",
    default=OURS,
    show_default=True,
    help=f"Policy to simulate; several, separated by commas, or all, are compared on the same"
    f" workload: {', '.join(POLICIES)}.",
)
@file_option(
    "--picture",
    text="Also draw use and waiting over time with matplotlib, as PNG, SVG or PDF by the name.",
    writable=True,
)
@out.output(_TABLE, out.JSON, out.YAML, _CSV)
def simulate(
    clusters: Path | None,
    files: Sequence[str],
    trace: Path | None,
    scenario: Path | None,
    jobs: int | None,
    days: float,
    load: float,
    seed: int,
    policies: str,
    picture: Path | None,
    form: str,
) -> None:
    """Simulate a workload on clusters with the controller's own decisions, in virtual time.

    The command runs the controller's own code against clusters in memory, and makes no request to
    an API server. Equal arguments give equal output.

    Exit code 0: all jobs ended; 2: a file or an argument is wrong; 4: under the simulated policy
    some jobs can never start or end. Of several policies the first decides the exit code.

    Example: hyperjob simulate --jobs 300 --days 3 --load 0.95 --policy hyperjob,fifo,one-cluster
    """
    # The import is slow, and --help does not need the engine.
    from hyperjob_sandbox.simulate.engine import simulate as play

    figure = None if picture is None else canvas()
    try:
        size = GeneratedSize(jobs=jobs, days=days, load=load, seed=seed)
        workload = _scenario(clusters, files, trace, scenario_of(scenario), size)
    except WorkloadError as error:
        raise FailureError(str(error), code=Code.USAGE) from None
    chosen = _policies(policies)
    reports: list[SimulationReport] = []
    shares = shares_of(workload)
    with progress(shown=True) as tell:
        for name in chosen:

            def report_progress(ended: int, total: int, seconds: float, name: str = name) -> None:
                tell(f"{name}: day {seconds / 86400:.1f}, {ended} of {total} jobs have ended")

            history = play(workload, policy=name, progress=report_progress)
            reports.append(measure(history, policy=name, shares=shares))
    if figure is not None and picture is not None:
        draw(figure, reports, picture)
    _print(reports, form)
    first = reports[0]
    sys.exit(Code.NEVER if first.never_started + first.unfinished else Code.OK)


def _print(reports: Sequence[SimulationReport], form: str) -> None:
    if form in (out.JSON, out.YAML):
        out.dump({"policies": [view.value(report) for report in reports]}, form)
    elif form == _CSV:
        click.echo(view.csv_of(reports), nl=False)
    elif len(reports) == 1:
        out.say(view.one(reports[0]))
    else:
        out.say(view.side_by_side(reports))


def _policies(text: str) -> list[str]:
    names = list(POLICIES) if text == "all" else [each.strip() for each in text.split(",")]
    for name in names:
        if name not in POLICIES:
            known = ", ".join(POLICIES)
            raise FailureError(f"--policy: {name!r} is not one of {known}", code=Code.USAGE)
    return list(dict.fromkeys(names))


def _scenario(
    clusters: Path | None,
    files: Sequence[str],
    trace: Path | None,
    given: ScenarioFile,
    size: GeneratedSize,
) -> Scenario:
    """Return the scenario of all files; jobs are generated where they have none, or `size` has.

    A queue of a job without a Queue gets one. Raises WorkloadError and FailureError.
    """
    # The import is slow, and --help does not need the sources.
    from hyperjob_sandbox_cli.simulate.sources import Files, sites_of

    sites, described, outages = sites_of(clusters)
    objects = Files(files)
    queues = _last_by_name([*described, *objects.queues])
    found = list(objects.jobs)
    if trace is not None:
        jobs = readers.read(trace, form=given.trace.format)[: given.trace.limit]
        found += [_submission(job, given) for job in jobs]
    scenario = Scenario(
        sites=sites,
        queues=queues,
        jobs=found,
        priority_classes=list(objects.classes.values()),
        outages=outages,
        seed=size.seed,
        checkpoint=given.checkpoint_minutes * 60,
        half_life=given.usage_half_life_hours * 3600,
        failures=given.failures,
    )
    if size.jobs is not None or not found:
        scenario = _generated(scenario, given, size)
    names = [job.key for job in scenario.jobs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkloadError(f"two HyperJobs have the name {twice}")
    missing = missing_queues(scenario.queues, (job.queue for job in scenario.jobs))
    if missing and queues:
        out.remark(f"Queues without a Queue object get weight 1: {', '.join(missing)}")
    return replace(scenario, queues=[*scenario.queues, *map(queue, missing)])


def _submission(job: JobNumbers, given: ScenarioFile) -> Submission:
    return submission(job, max_domains=given.max_domains, checkpoint=given.checkpoint_minutes * 60)


def _last_by_name(objects: Iterable[Object]) -> list[Object]:
    """Return the objects, and of those with equal names the last."""
    return list({each["metadata"]["name"]: each for each in objects}.values())


def _generated(scenario: Scenario, given: ScenarioFile, size: GeneratedSize) -> Scenario:
    """Return the scenario with generated jobs beside its own."""
    sizes = view.sizes(scenario.sites)
    known = {each["metadata"]["name"]: 1.0 for each in scenario.queues}
    demand = Demand(
        jobs=size.jobs or _JOBS,
        days=size.days,
        load=size.load,
        shape=given.shape,
        queues=given.queues or known or {"default": 1.0},
        urgent=given.urgent,
        estimates=given.estimates,
        recurring=given.recurring,
        elastic=given.elastic,
    )
    largest = sum(sorted(sizes.values())[-given.max_domains :])
    jobs = generate(demand, accelerators=sum(sizes.values()), largest=largest, seed=size.seed)
    own = [urgent_class()] if given.urgent else []
    classes = _last_by_name([*own, *scenario.priority_classes])
    made = [_submission(job, given) for job in jobs]
    return replace(scenario, jobs=[*scenario.jobs, *made], priority_classes=classes)
