"""`hyperjob why`: the reason why a HyperJob is not running, and the next command to type."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime

import click
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, TrainJobName, access, name_argument
from hyperjob.cli.kubectl.exits import Code, run
from hyperjob.client import training
from hyperjob.client.durations import age, expected_start_value, expected_words
from hyperjob.client.reading import event_time, items, without_hyperjob
from hyperjob.client.why.evidence import Explanation, Outcome, gather
from hyperjob.client.why.explain import explain
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import string
from hyperjob_core.kube.errors import NotFound

_CODES = {
    Outcome.FINE: Code.OK,
    Outcome.WAITS: Code.NOT_YET,
    Outcome.NEEDS_HELP: Code.NEVER,
}


@click.command()
@name_argument(trainjobs=True)
@access()
@out.output(out.JSON, out.YAML)
def why(name: str, access: Access, form: str) -> None:
    """Explain why a HyperJob is not running, and print the command to type next.

    The command prints the HyperJob's status with a command for each reason. It also reads vcjobs,
    ResourceBindings, events, the controller's Lease and, where pods do not start, the pods. It
    names the objects that you may not read and explains without them. The name trainjob/NAME is
    that of a TrainJob.

    Exit code 0: the HyperJob runs or has completed; 3: it waits for free accelerators or in its
    queue; 4: a person must act.

    Example: kubectl hyperjob why llm-training
    """

    async def show() -> Outcome:
        async with access.connect() as kube:
            try:
                evidence = await gather(kube, access.home(kube), name)
            except NotFound:
                if isinstance(name, TrainJobName):
                    raise await without_hyperjob(kube, access.home(kube), name) from None
                raise
        explanation = explain(evidence)
        if form:
            out.dump(explanation_value(explanation, access.command), form)
        else:
            events = items(evidence.events)
            out.say(explanation_lines(explanation, events, evidence.now, access.command))
        return explanation.outcome

    sys.exit(_CODES[run(show())])


_STYLES = {
    Outcome.FINE: "bold green",
    Outcome.WAITS: "yellow",
    Outcome.NEEDS_HELP: "bold red",
}
_SECONDS = len("2026-01-01T00:00:00")  # the times of events may have microseconds
_WARNINGS_SHOWN = 3

Command = Callable[[str], str]
"""Adds the flags for the API server to a command."""


def explanation_lines(
    explanation: Explanation, events: Sequence[Object], now: datetime, command: Command
) -> list[Text]:
    """Return the reason, further causes, and the commands to type next, as explanation_lines."""
    summary = explanation.summary
    style = _STYLES[explanation.outcome]
    found = [Text.assemble((summary.key, "bold"), " ", (explanation.headline, style))]
    for cause in explanation.causes:
        found.append(Text.assemble("  ", (cause.reason, "bold"), "  ", cause.message))
        found += [Text(f"    | {line}", style="dim") for line in cause.log]
    for group in summary.groups:
        if group.choice:
            found.append(Text(f"  {group.name} takes {group.choice}", style="dim"))
    expected = summary.expected_start
    if expected is not None:
        found.append(Text(f"  {expected_words(expected, now, namespace=summary.namespace)}"))
    if summary.training is not None:
        words = training.words(summary.training, now)
        found.append(Text(f"  progress: {words}", style="dim"))
    warnings = _warnings(events, since=summary.since)
    for event in warnings:
        text = f"{string(event.get('reason'))}: {string(event.get('message'))}"
        found.append(Text(f"  event {age(event_time(event), now)} ago  {text}", style="dim"))
    if explanation.admission:
        found.append(Text(f"  queue admission: {explanation.admission}", style="dim"))
    found += [Text(f"  not visible to you  {text}", style="dim") for text in explanation.unseen]
    commands = dict.fromkeys(cause.next for cause in explanation.causes if cause.next)
    for position, words in enumerate(commands):
        lead = "Next:  " if not position else "       "
        found.append(Text.assemble((lead, "bold"), command(words)))
    return found


def explanation_value(explanation: Explanation, command: Command) -> Object:
    """Return the explanation as JSON values."""
    summary = explanation.summary
    return {
        "namespace": summary.namespace,
        "name": summary.name,
        "phase": summary.phase,
        "message": summary.message,
        "outcome": str(explanation.outcome),
        "headline": explanation.headline,
        "queueAdmission": explanation.admission,
        "training": training.value(summary.training),
        **expected_start_value(summary.expected_start),
        "causes": [
            {
                "reason": str(cause.reason),
                "message": cause.message,
                "next": command(cause.next) if cause.next else "",
                "needsHelp": cause.needs_help,
                "log": list(cause.log),
            }
            for cause in explanation.causes
        ],
        "notVisible": list(explanation.unseen),
    }


def _warnings(events: Sequence[Object], *, since: str) -> list[Object]:
    """Return the newest Warning events since the HyperJob entered its phase."""
    warnings = [
        event
        for event in events
        if event.get("type") == "Warning" and event_time(event)[:_SECONDS] >= since[:_SECONDS]
    ]
    return sorted(warnings, key=event_time, reverse=True)[:_WARNINGS_SHOWN]
