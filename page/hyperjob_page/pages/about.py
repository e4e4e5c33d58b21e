"""The sections of a HyperJob that need the visitor's own rights: why, events, YAML, plan."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from hyperjob.client.events import event_time, events_of
from hyperjob.client.plan.judge import judge
from hyperjob.client.plan.pieces import unsuitable
from hyperjob.client.plan.reading import read_snapshot
from hyperjob.client.reading import items
from hyperjob.client.why.explain import explain
from hyperjob.client.why.gather import gather
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.text import shortened
from hyperjob_core.yamltext import to_yaml
from hyperjob_engine.queueing.verdict import share_text
from hyperjob_page.pages.answers import Context
from hyperjob_page.render import render

_EVENTS: Final = 300
_TEXT: Final = 2000
_YAML: Final = 400_000

Section = Callable[[Context, Kube, str, str], Awaitable[str]]
"""Returns the HTML of a section about the HyperJob of a namespace and a name."""


async def why(context: Context, kube: Kube, namespace: str, name: str) -> str:
    """Return the explanation why a HyperJob is not running, with the commands to type next."""
    evidence = await gather(kube, namespace, name)
    found = explain(evidence)
    commands = dict.fromkeys(cause.next for cause in found.causes if cause.next)
    return str(
        render(
            "parts/why.html",
            found=found,
            commands=[context.command(words) for words in commands],
            next_of={cause.reason: context.command(cause.next) for cause in found.causes},
            warnings=[each for each in _event_rows(items(evidence.events)) if each["warning"]][:5],
        )
    )


async def events(_: Context, kube: Kube, namespace: str, name: str) -> str:
    """Return the Events of a HyperJob, the latest first."""
    reading = await events_of(kube, await kube.get(HYPERJOBS, name, namespace=namespace))
    if isinstance(reading, KubeError):
        raise reading
    found = _event_rows(reading)
    return str(render("parts/events.html", events=found[:_EVENTS], total=len(found)))


async def manifest(_: Context, kube: Kube, namespace: str, name: str) -> str:
    """Return the YAML of the object in the API server."""
    found = await kube.get(HYPERJOBS, name, namespace=namespace)
    found["metadata"].pop("managedFields", None)
    text: str = await asyncio.to_thread(_dumped, found)
    return str(
        render("parts/yaml.html", text=shortened(text, _YAML), cut=len(text) > _YAML, name=name)
    )


async def plan(context: Context, kube: Kube, namespace: str, name: str) -> str:
    """Return the plan of a HyperJob: its clusters, and why the others are unsuitable."""
    remarks: list[str] = []
    hyperjob = await kube.get(HYPERJOBS, name, namespace=namespace)
    snapshot = await read_snapshot(
        kube, namespace=namespace, hyperjobs=[hyperjob], left_out=remarks.append
    )
    async with context.planning:  # one plan at a time, since planning needs much CPU time
        judgement = await asyncio.to_thread(judge, hyperjob, snapshot)
    return str(
        render(
            "parts/plan.html",
            plan=judgement,
            passed=unsuitable(judgement.pieces),
            shares={queue: share_text(share) for queue, share in judgement.shares.items()},
            remarks=remarks,
            now=datetime.now(UTC),
        )
    )


SECTIONS: Final[Mapping[str, Section]] = {
    "why": why,
    "events": events,
    "yaml": manifest,
    "plan": plan,
}


def _dumped(found: Object) -> str:
    return to_yaml(found, sort_keys=False)


def _event_rows(found: list[Object]) -> list[dict[str, object]]:
    """Return the rows of Events, the latest first."""
    newest = sorted(found, key=event_time, reverse=True)
    return [
        {
            "time": event_time(event),
            "warning": event.get("type") == "Warning",
            "reason": string(event.get("reason")),
            "message": shortened(string(event.get("message")), _TEXT),
            "times": event.get("count") or (event.get("series") or {}).get("count") or 1,
            "source": string(event.get("reportingComponent"))
            or string((event.get("source") or {}).get("component")),
        }
        for event in newest
    ]
