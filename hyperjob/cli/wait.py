"""`hyperjob wait`: wait for a phase, a condition, a step or deletion, with exit codes."""

import asyncio
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from hyperjob.cli.change import progress
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import DURATION, Access, Parsed, access, names_argument
from hyperjob.cli.kubectl.exits import run
from hyperjob.client.errors import title
from hyperjob.client.reading import Target
from hyperjob.client.waiting import Goal, parse_goal, reach
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase

_TIMEOUT = 30.0
_UNLIMITED = 0.0
_BEYOND_PHASES = ("condition=Completed", "condition=Failed", "step=", "delete")


class _GoalType(Parsed[Goal]):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        goals = [*(f"phase={phase}" for phase in Phase), *_BEYOND_PHASES]
        return [CompletionItem(goal) for goal in goals if goal.startswith(incomplete)]


@click.command()
@names_argument(required=True)
@access()
@click.option(
    "--for",
    "goal",
    type=_GoalType("goal", parse_goal),
    metavar="GOAL",
    help="phase=Running (several with commas), condition=Completed (Failed, Running, Suspended,"
    " Degraded), step=1000, or delete.  [default: condition=Completed, without a time limit]",
)
@click.option(
    "--timeout",
    type=DURATION,
    metavar="DURATION",
    help="Time limit, such as 10m; 0 is no limit.  [default: 30s with --for]",
)
@out.output(out.JSON, out.NAME)
def wait(
    names: Sequence[str], access: Access, goal: Goal | None, timeout: float | None, form: str
) -> None:
    """Wait for a phase, a condition, a step of the training, deletion or the end of HyperJobs.

    Exit code 0: every HyperJob has reached the goal; 1: a HyperJob does not exist, or the API
    server does not answer; 3: time is up; 4: a HyperJob can never reach the goal: it has ended in
    another phase, was deleted, or its status says that it never runs as things are, by the reason
    ExceedsClusters, NoMatchingNode, ExceedsQueue, InvalidQueue or InvalidSpec.

    Example: kubectl hyperjob wait llm-training --for=condition=Completed --timeout=2h
    """
    if timeout is None:
        timeout = _UNLIMITED if goal is None else _TIMEOUT
    goal = goal or parse_goal("condition=Completed")

    async def show() -> list[Object | None]:
        async with access.connect() as kube:
            targets = [Target(kube, access.home(kube), name) for name in names]
            with progress(shown=len(names) == 1) as tell:
                waits = (reach(each, goal, seconds=timeout, progress=tell) for each in targets)
                return list(await asyncio.gather(*waits))

    found = run(show())
    if form:
        there = [item for item in found if item is not None]
        out.objects(there, form, single=len(names) == 1) if there or form == out.JSON else None
        return
    for name in names:
        click.echo(f"{title(name)} {'deleted' if goal.is_deletion else 'condition met'}")
