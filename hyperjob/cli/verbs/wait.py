"""`hyperjob wait`: until a phase, a condition or the deletion, with exit codes for scripts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import click
from click.shell_completion import CompletionItem

from hyperjob.api.meta import Object
from hyperjob.api.names import CONDITION_COMPLETED, CONDITION_FAILED
from hyperjob.api.phases import Phase
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, Duration, access
from hyperjob.cli.kubectl.exits import Code, FailureError, run
from hyperjob.cli.kubectl.names import names_argument
from hyperjob.cli.verbs.following import not_found, summary_of, until
from hyperjob.cli.views.summary import Summary
from hyperjob.kube.client import Kube

_TIMEOUT = 30.0
_CONDITIONS = {
    CONDITION_COMPLETED.lower(): Phase.COMPLETED,
    CONDITION_FAILED.lower(): Phase.FAILED,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What to wait for: deletion, or one of these phases."""

    words: str
    phases: frozenset[Phase]

    @property
    def is_deletion(self) -> bool:
        """Tell whether the HyperJob shall be gone."""
        return not self.phases

    def holds(self, hyperjob: Object | None, name: str) -> bool:
        """Tell whether it is reached; FailureError when it never will be."""
        if self.is_deletion:
            return hyperjob is None
        summary = summary_of(hyperjob, name)
        if not summary.is_current or not summary.has_status:
            return False
        if summary.phase in self.phases:
            return True
        if summary.has_ended:
            raise FailureError(_ended(summary, self.words), code=Code.NEVER)
        return False


def parse_goal(text: str) -> Goal:
    """Read `delete`, `phase=A,B` or `condition=Completed`; ValueError for anything else."""
    kind, equals, wanted = text.partition("=")
    if text == "delete":
        return Goal("is deleted", frozenset())
    if kind == "phase" and equals:
        known = {str(phase).lower(): phase for phase in Phase}
        chosen = [known.get(word.strip().lower()) for word in wanted.split(",")]
        found = frozenset(phase for phase in chosen if phase is not None)
        if len(found) == len(chosen):
            return Goal(f"is {' or '.join(sorted(found))}", found)
        raise ValueError(f"phase must be one of {', '.join(Phase)}; got {wanted!r}")
    if kind == "condition" and equals:
        name, _, value = wanted.partition("=")
        phase = _CONDITIONS.get(name.lower())
        if phase is not None and value.lower() in ("", "true"):
            return Goal(f"is {phase}", frozenset({phase}))
        raise ValueError(f"condition must be Completed or Failed; got {wanted!r}")
    raise ValueError(f"{text!r}: give phase=PHASE, condition=Completed, condition=Failed or delete")


_BEYOND_PHASES = ("condition=Completed", "condition=Failed", "delete")


class _GoalType(click.ParamType[Goal]):
    name = "goal"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Goal:
        if isinstance(value, Goal):
            return value
        try:
            return parse_goal(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the goals there are."""
        goals = [*(f"phase={phase}" for phase in Phase), *_BEYOND_PHASES]
        return [CompletionItem(goal) for goal in goals if goal.startswith(incomplete)]


@click.command()
@names_argument(required=True)
@access()
@click.option(
    "--for",
    "goal",
    type=_GoalType(),
    required=True,
    metavar="GOAL",
    help="phase=Running (several with commas), condition=Completed, condition=Failed, or delete.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default=_TIMEOUT,
    show_default="30s",
    metavar="DURATION",
    help="How long to wait, such as 10m; 0 is for ever.",
)
@out.output(out.JSON, out.NAME)
def wait(names: Sequence[str], access: Access, goal: Goal, timeout: float, form: str) -> None:
    """Wait until HyperJobs have come to something.

    Exit code 0: they have; 1: there is no such HyperJob, or the API server cannot be asked; 3: time
    is up; 4: it can never be, since a HyperJob has ended otherwise or was deleted.

    Example: kubectl hyperjob wait llm-training --for=condition=Completed --timeout=2h
    """

    async def show() -> list[Object | None]:
        async with access.connect() as kube:
            namespace = access.home(kube)
            return list(
                await asyncio.gather(
                    *(
                        _one(kube, namespace, name, goal, timeout=timeout, alone=len(names) == 1)
                        for name in names
                    )
                )
            )

    found = run(show())
    if form:
        there = [item for item in found if item is not None]
        out.objects(there, form, single=len(names) == 1) if there or form == out.JSON else None
        return
    for name in names:
        click.echo(f"{out.title(name)} {'deleted' if goal.is_deletion else 'condition met'}")


async def _one(
    kube: Kube, namespace: str, name: str, goal: Goal, *, timeout: float, alone: bool
) -> Object | None:
    first = True

    def holds(hyperjob: Object | None) -> bool:
        nonlocal first
        if hyperjob is None and first and not goal.is_deletion:
            raise not_found(name)
        first = False
        return goal.holds(hyperjob, name)

    return await until(kube, namespace, name, holds, what=goal.words, seconds=timeout, alone=alone)


def _ended(summary: Summary, wanted: str) -> str:
    why = f": {summary.message}" if summary.message else ""
    return f"{out.title(summary.name)} is {summary.phase}, so it never {wanted}{why}"
