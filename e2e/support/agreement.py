"""How long the status of a TrainJob contradicts that of its HyperJob, as a watch of both shows."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from e2e.support.scenario import Scenario
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import at, condition, mapping, objects, string
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS, TRAINJOBS
from tests.support.stack import Service

_LOOK_SECONDS = 0.05


@dataclass(slots=True)
class Contradictions:
    """The longest contradiction, in seconds: in all, and while a controller was ready."""

    longest: float = 0.0
    longest_ready: float = 0.0
    what: str = ""
    looks: int = 0
    ended: bool = False


def contradiction(hyperjob: Object, trainjob: Object) -> str:
    """Return what the status of a TrainJob says against its HyperJob; empty if nothing."""
    theirs, ours = mapping(hyperjob.get("status")), mapping(trainjob.get("status"))
    for ended, kind in (("Completed", "Complete"), ("Failed", "Failed")):
        found = [condition(theirs, ended).get("status"), condition(ours, kind).get("status")]
        if (found[0] == "True") != (found[1] == "True"):
            return f"{ended} {found[0]}, {kind} {found[1]}"
    phases = [JobPhase(string(job.get("phase"))) for job in objects(theirs.get("jobs"))]
    counted = next(iter(objects(ours.get("jobsStatus"))), {})
    # A sub-job whose vcjob no member has shown has no active pods, and no phase of Volcano.
    active = sum(not (each.is_terminal or each is JobPhase.UNKNOWN) for each in phases)
    shown = counted.get("succeeded", 0), counted.get("active", 0)
    if shown != (phases.count(JobPhase.COMPLETED), active):
        return f"{phases}, TrainJob: {counted}"
    wants, has = at(trainjob, "spec", "suspend") is True, condition(ours, "Suspended")
    if (at(hyperjob, "spec", "suspend") is True) != wants or (wants and not has):
        return f"suspend {wants}, HyperJob: {at(hyperjob, 'spec', 'suspend')}, {has}"
    return ""


@contextlib.asynccontextmanager
async def watched(
    scenario: Scenario, name: str, controller: Service
) -> AsyncIterator[Contradictions]:
    """Watch a TrainJob and its HyperJob inside the block."""
    found = Contradictions()
    both = [
        Informer(scenario.kube, resource, namespace=scenario.namespace)
        for resource in (HYPERJOBS, TRAINJOBS)
    ]
    tasks = [asyncio.create_task(each.run()) for each in both]
    tasks.append(
        asyncio.create_task(_look(both, f"{scenario.namespace}/{name}", controller, found))
    )
    try:
        yield found
    finally:
        found.ended = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _look(both: list[Informer], key: str, controller: Service, found: Contradictions) -> None:
    lasted, ready, then = 0.0, 0.0, time.monotonic()
    while not found.ended:
        await asyncio.sleep(_LOOK_SECONDS)
        is_ready = await asyncio.to_thread(controller.is_ready)
        now = time.monotonic()
        hyperjob, trainjob = (each.get(key) for each in both)
        text = contradiction(hyperjob, trainjob) if hyperjob and trainjob else ""
        lasted = lasted + now - then if text else 0.0
        ready = ready + (now - then) * is_ready if text else 0.0
        then = now
        found.looks += 1
        found.longest = max(found.longest, lasted)
        if ready > found.longest_ready:
            found.longest_ready, found.what = ready, text
