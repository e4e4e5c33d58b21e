"""The actions on a HyperJob, the question before each, and the sections why, events, YAML, plan.

Both use the visitor's own rights and the functions of the command line.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from hyperjob.client.errors import ClientError
from hyperjob.client.plan.judge import judge, unsuitable
from hyperjob.client.plan.snapshot import read_snapshot
from hyperjob.client.reading import Target, event_time, events_of, items
from hyperjob.client.requests import ask, migrate, restart, suspend
from hyperjob.client.summary import Summary
from hyperjob.client.why.evidence import gather
from hyperjob.client.why.explain import explain
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.text import listed, shortened
from hyperjob_core.yamltext import to_yaml
from hyperjob_page.pages.answers import Context
from hyperjob_page.render import render
from hyperjob_page.rows import Row
from hyperjob_queueing.verdict import share_text

LABELS: Final[Mapping[str, str]] = {
    "suspend": "Suspend",
    "resume": "Resume",
    "restart": "Restart",
    "migrate": "Move",
    "delete": "Delete",
}
VERBS: Final[Mapping[str, str]] = {
    name: "delete" if name == "delete" else "patch" for name in LABELS
}
"""The verb that each action needs."""

_CHOICES: Final = 200


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The question before an action; `choices` are value and label of the field `target`."""

    action: str
    name: str
    sentences: Sequence[str]
    choices: Sequence[tuple[str, str]] = ()

    @property
    def label(self) -> str:
        """Return the verb."""
        return LABELS[self.action]

    @property
    def button(self) -> str:
        """Return the verb and the name of the HyperJob."""
        what = f"sub-jobs of {self.name}" if self.action == "migrate" else self.name
        return f"{self.label} {what}"


def available(summary: Summary) -> list[str]:
    """Return the actions that are possible in the HyperJob's phase."""
    if summary.deleting:
        return []
    if summary.has_ended:
        return ["delete"]
    found = ["resume" if summary.suspend else "suspend"]
    if not summary.suspend and summary.jobs:
        found.append("restart")
    if summary.placed:
        found.append("migrate")
    return [*found, "delete"]


def confirmation(action: str, row: Row) -> Confirmation:
    """Return the question before an action, with its effect on this HyperJob."""
    summary = row.summary
    question = partial(Confirmation, action, summary.name)
    match action:
        case "suspend":
            stays = "The HyperJob stays in the API server until it is resumed."
            return question([_stops_text(summary), f"{_gives_back(row)} {stays}"])
        case "resume":
            text = (
                f"It waits in queue {listed(row.queues) or 'default'} again and starts as soon as"
                " the whole gang fits."
            )
            return question([text])
        case "restart":
            text = (
                "The controller deletes the selected sub-jobs and creates them again, as the next"
                " attempt. Their programs restart, from their last checkpoint if they have one."
            )
            return question([text], [("", "all sub-jobs"), *_job_choices(summary)])
        case "migrate":
            text = (
                "The controller deletes the selected sub-jobs and creates them on other clusters;"
                " they do not return to their former clusters. They wait if no other cluster has"
                " enough free resources."
            )
            return question([text], _cluster_choices(summary))
        case _:
            gone = "The deletion of the HyperJob and its status cannot be undone."
            return question([_stops_text(summary), gone])


async def act(kube: Kube, row: Row, action: str, *, target: str, typed: str) -> str:
    """Carry out the action and return a text about it; raises ClientError or KubeError."""
    summary = row.summary
    name = summary.name
    hyperjob = Target(kube, summary.namespace, name)
    match action:
        case "suspend" | "resume":
            await suspend(hyperjob, on=action == "suspend")
            return f"{name} is being suspended." if action == "suspend" else f"{name} is resumed."
        case "restart":
            await ask(hyperjob, restart([target] if target else []))
            return f"The restart of {target or name} is requested."
        case "migrate":
            if not target:
                raise ClientError("choose the cluster to move the sub-jobs away from")
            await ask(hyperjob, migrate(cluster=target))
            return f"The move away from {target} is requested."
        case "delete":
            if typed.strip() != name:
                raise ClientError(f"type {name} into the field: nothing was deleted")
            await kube.delete(HYPERJOBS, name, namespace=summary.namespace, uid=summary.uid)
            return f"{name} is being deleted."
        case _:
            raise ClientError(f"there is no action {action}")


def _stops_text(summary: Summary) -> str:
    number = len(summary.placed)
    if not number:
        return "No sub-job is on a cluster."
    clusters = sorted({job.cluster for job in summary.placed})
    return (
        f"The controller removes {number} sub-job{'s' if number != 1 else ''} from"
        f" {listed(clusters)}; {summary.running_pods} running pods are stopped and lose the work"
        " since their last checkpoint."
    )


def _gives_back(row: Row) -> str:
    amounts = [f"{number} {name}" for name, number in sorted(row.accelerators.items())]
    if not amounts:
        return ""
    return f"Queue {listed(row.queues)} gets {listed(amounts)} for other HyperJobs."


def _job_choices(summary: Summary) -> list[tuple[str, str]]:
    return [
        (job.name, f"{job.name}, {job.phase}" + (f" on {job.cluster}" if job.cluster else ""))
        for job in summary.jobs[:_CHOICES]
        if not job.has_ended
    ]


def _cluster_choices(summary: Summary) -> list[tuple[str, str]]:
    found = Counter(job.cluster for job in summary.placed)
    return [
        (cluster, f"away from {cluster} ({number} sub-job{'s' if number != 1 else ''})")
        for cluster, number in sorted(found.items())
    ]


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
    return render(
        "parts/why.html",
        found=found,
        commands=[context.command(words) for words in commands],
        next_of={cause.reason: context.command(cause.next) for cause in found.causes},
        warnings=[each for each in _event_rows(items(evidence.events)) if each["warning"]][:5],
    )


async def events(_: Context, kube: Kube, namespace: str, name: str) -> str:
    """Return the Events of a HyperJob, the latest first."""
    reading = await events_of(kube, await kube.get(HYPERJOBS, name, namespace=namespace))
    if isinstance(reading, KubeError):
        raise reading
    found = _event_rows(reading)
    return render("parts/events.html", events=found[:_EVENTS], total=len(found))


async def manifest(_: Context, kube: Kube, namespace: str, name: str) -> str:
    """Return the YAML of the object in the API server."""
    found = await kube.get(HYPERJOBS, name, namespace=namespace)
    found["metadata"].pop("managedFields", None)
    text: str = await asyncio.to_thread(to_yaml, found, sort_keys=False)
    return render("parts/yaml.html", text=shortened(text, _YAML), cut=len(text) > _YAML, name=name)


async def plan(context: Context, kube: Kube, namespace: str, name: str) -> str:
    """Return the plan of a HyperJob: its clusters, and why the others are unsuitable."""
    remarks: list[str] = []
    hyperjob = await kube.get(HYPERJOBS, name, namespace=namespace)
    snapshot = await read_snapshot(
        kube, namespace=namespace, hyperjobs=[hyperjob], left_out=remarks.append
    )
    async with context.planning:  # one plan at a time, since planning needs much CPU time
        judgement = await asyncio.to_thread(judge, hyperjob, snapshot)
    return render(
        "parts/plan.html",
        plan=judgement,
        passed=unsuitable(judgement.pieces),
        shares={queue: share_text(share) for queue, share in judgement.shares.items()},
        remarks=remarks,
        now=datetime.now(UTC),
    )


SECTIONS: Final[Mapping[str, Section]] = {
    "why": why,
    "events": events,
    "yaml": manifest,
    "plan": plan,
}


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
