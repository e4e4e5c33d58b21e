"""`hyperjob describe`: the spec and the status of a HyperJob, its sub-jobs and its events."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from hyperjob.cli.describe import view
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.choice import Choice, end, hyperjobs_argument
from hyperjob.cli.kubectl.exits import run
from hyperjob.client.events import events_of
from hyperjob.client.reading import Reading, items
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import key_of


@click.command()
@hyperjobs_argument()
@out.output(out.JSON, out.YAML)
def describe(choice: Choice, form: str) -> None:
    """Show the spec of a HyperJob, its status, its sub-jobs and its events.

    Example: kubectl hyperjob describe llm-training
    """

    async def show() -> None:
        async with choice.access.connect() as kube:
            found = await choice.read(kube)
            chosen = sorted(found.items, key=key_of)
            readings = await asyncio.gather(*(events_of(kube, item) for item in chosen))
        if form and (chosen or not found.errors):
            values = [
                {"hyperjob": out.clean(item), "events": [out.clean(each) for each in items(events)]}
                for item, events in zip(chosen, readings, strict=True)
            ]
            out.dump(values[0] if choice.single else {"items": values}, form)
        elif not form:
            _print(chosen, readings)
        end(found)
        if not chosen and not form:
            out.remark("No resources found.")

    run(show())


def _print(chosen: Sequence[Object], readings: Sequence[Reading]) -> None:
    now = datetime.now(UTC)
    for position, (item, events) in enumerate(zip(chosen, readings, strict=True)):
        if position:
            out.say(["", ""])
        shown = events.message if isinstance(events, KubeError) else events
        out.say(view.lines(item, shown, now))
