"""The whole controller in virtual time: each of its writes, as the API server gets them.

Beside the writes: what it logs, how its metrics change, and what its debug page says in the end.

The simulator's world is around it. Users edit what they have created, and every so often the API
server refuses a write, or answers that the object is another by now.
"""

import asyncio
import hashlib
import json
import logging
import random
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

import orjson

from hyperjob.simulate.engine import _run_to_end
from hyperjob.simulate.sites import queue, site, urgent_class
from hyperjob.simulate.workload import Failures, Outage, Scenario, Site, Submission
from hyperjob.simulate.world import Simulation
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options
from hyperjob_controller.tuning import Tuning
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import FIELD_MANAGER
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import from_status, make_status
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import HYPERJOBS, QUEUES, RESOURCE_BINDINGS, key_of
from hyperjob_core.kube.transport import Params, Response
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from tests.unit.controller.builders import GPU
from tests.unit.recorded.generated import hyperjob_of, some
from tests.unit.recorded.plans import where
from tests.unit.recorded.recording import Case, changes, line

REFUSALS: Final = (
    (403, "Forbidden", "exceeded quota: compute"),
    (409, "Conflict", "the object has been modified"),
    (422, "Invalid", "spec.tasks: Invalid value"),
    (500, "InternalError", "etcdserver: request timed out"),
    (404, "NotFound", "not found"),
    (409, "AlreadyExists", "already exists"),
)
HOURS: Final = 3
"""Of virtual time, for a simulation."""
MOST: Final = 150
"""Lines that are kept of a simulation; the others are kept as their number and a digest."""
MEASURED: Final = 600.0
"""Seconds between two looks at the metrics."""
UNSTEADY: Final = re.compile(
    "^(process|python)_|_bucket$|_created$|reconcile_time_seconds_sum|_build_"
)
USUAL: Final = {*vars(logging.makeLogRecord({})), "message", "taskName"}
LOGGER: Final = logging.getLogger("hyperjob_controller")
NODE: Final = {"cpu": "64", "memory": "512Gi", GPU: "8", "pods": "110"}


class Heard(MemoryServer):
    """An API server that notes all writes, and refuses some."""

    def __init__(self, rng: random.Random, *, refuses: float, now: Callable[[], datetime]) -> None:
        super().__init__(now=now)
        self.rows: list[str] = []
        self._rng = rng
        self._refuses = refuses

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        **more: Any,
    ) -> Response:
        if method == "GET":
            return await super().request(method, path, params=params, body=body, **more)
        place = path.rsplit("/namespaces/default/", maxsplit=1)[-1]
        moment = asyncio.get_running_loop().time()
        content = orjson.loads(body or b"{}")
        if place.startswith("events/"):
            place = f"{place.partition('.')[0]} again: {content.pop('series')['count']}"
        by = "" if (params or {}).get("fieldManager") == FIELD_MANAGER else f" {line(params)}"
        self.rows.append(f"{moment:.6g} {method} {place}{by}")
        self.rows.extend(f"  {row}" for row in self._said(content))
        if some(self._rng, self._refuses) and "events" not in path:
            code, reason, text = self._rng.choice(REFUSALS)
            self.rows.append(f"  refused: {reason}")
            raise from_status(make_status(code, text, reason=reason), self.host)
        return await super().request(method, path, params=params, body=body, **more)

    def _said(self, content: Any) -> Iterator[str]:
        if isinstance(content, list):
            yield from map(line, content)
        elif content.get("reason") and content.get("note"):
            yield f"{content['type']} {content['reason']} {content['action']}: {content['note']}"
        elif content.get("kind") == "Job":
            metadata = content["metadata"]
            yield line({name: metadata.get(name) for name in ("labels", "annotations")})
        elif content.get("kind") == "PropagationPolicy":
            spec = content["spec"]
            yield f"{where(spec['placement'])} {line(spec.get('suspension'))}"
        else:
            yield from changes({}, content)


def _sites(rng: random.Random) -> list[Site]:
    return [
        site(name, [("gpu", NODE, rng.randint(1, 3))], spec={"region": rng.choice(("eu", "us"))})
        for name in "abc"[: rng.randint(2, 3)]
    ]


def _queues(rng: random.Random) -> list[Object]:
    specs: list[Object] = [
        {"weight": 1, "reclaimable": True, "capability": {GPU: str(rng.choice((16, 32)))}},
        {"weight": 3, "reclaimable": True, "guarantee": {"resource": {GPU: "4"}}},
        {"weight": 2, "deserved": {GPU: "8"}, "priority": 5, "dequeueStrategy": "fifo"},
    ]
    rng.shuffle(specs)
    made = [queue(name, spec) for name, spec in zip(("default", "q0", "q1"), specs, strict=True)]
    return [*made, queue("q2", {"weight": 1})]


def _jobs(rng: random.Random, count: int) -> list[Submission]:
    found = []
    for number in range(count):
        raw = hyperjob_of(rng, f"j{number}", most=2)
        del raw["metadata"]["uid"], raw["metadata"]["creationTimestamp"], raw["status"]
        raw["spec"].pop("suspend", None)
        found.append(
            Submission(
                arrival=rng.choice((0.0, 60.0, 600.0, 1800.0)) + number,
                duration=rng.choice((300.0, 1800.0, 7200.0)),
                hyperjob=raw,
                gpus=8,
                queue="default",
            )
        )
    return found


async def _edits(rng: random.Random, plane: Heard, count: int) -> None:
    """Let users change their HyperJobs and queues while these wait or run."""
    for _ in range(3 * count):
        await asyncio.sleep(rng.choice((30.0, 120.0, 400.0)))
        found = plane.items(HYPERJOBS)
        if not found:
            continue
        raw = rng.choice(found)
        key = key_of(raw)
        group = raw["spec"]["replicatedJobs"][0]
        match rng.randrange(7):
            case 0 | 1:
                plane.change(HYPERJOBS, key, {"spec": {"suspend": not raw["spec"].get("suspend")}})
            case 2 | 3:
                kind, token = rng.choice(("restart", "migrate")), f"t{rng.randrange(9)}"
                marks = {f"training.volcano.sh/{kind}": token}
                plane.change(HYPERJOBS, key, {"metadata": {"annotations": marks}})
            case 4 if "splitPolicy" not in group:
                more = {**group, "replicas": max(1, group["replicas"] + rng.choice((-1, 1)))}
                rest = raw["spec"]["replicatedJobs"][1:]
                plane.change(HYPERJOBS, key, {"spec": {"replicatedJobs": [more, *rest]}})
            case 5:
                state = rng.choice(("Open", "Closed"))
                plane.change(QUEUES, "q1", {"status": {"state": state}}, status=True)
                continue
            case 6:
                plane.remove(HYPERJOBS, key)
            case _:
                continue
        plane.rows.append(f"{asyncio.get_running_loop().time():.6g} a user edits {key}")
    for raw in plane.items(HYPERJOBS):
        plane.change(HYPERJOBS, key_of(raw), {"spec": {"suspend": False}})


class Log(logging.Handler):
    """Writes the records of loggers among the writes."""

    def __init__(self, rows: list[str]) -> None:
        super().__init__()
        self._rows = rows

    def emit(self, record: logging.LogRecord) -> None:
        extra = {key: value for key, value in vars(record).items() if key not in USUAL}
        said = record.getMessage()
        self._rows.append(f"log {record.levelname} {said} {json.dumps(extra, default=str)}")


async def _measured(manager: Manager, plane: Heard) -> None:
    """Write every so often how the metrics have changed, without those of the process itself."""
    before: dict[str, float] = {}
    while True:
        await asyncio.sleep(MEASURED)
        after = {
            f"{each.name} {' '.join(each.labels.values())}".strip(): each.value
            for family in manager.metrics.registry.collect()
            for each in family.samples
            if not UNSTEADY.search(each.name)
        }
        plane.rows.append(f"metrics at {asyncio.get_running_loop().time():.6g}")
        plane.rows.extend(
            f"  {name} {value:.6g}" for name, value in after.items() if value != before.get(name, 0)
        )
        before = after


async def _release(plane: Heard) -> None:
    """Release bindings as Volcano Global does, the first of each ten seconds alone."""
    while True:
        await asyncio.sleep(10.0)
        for raw in plane.items(RESOURCE_BINDINGS)[:30]:
            suspension = raw["spec"].get("suspension") or {}
            if suspension.get("scheduling"):
                change = {"spec": {"suspension": {**suspension, "scheduling": False}}}
                plane.change(RESOURCE_BINDINGS, key_of(raw), change)
                break


async def _played(seed: int, *, jobs: int, refuses: float, mode: QueueAdmission) -> list[str]:
    rng = random.Random(f"whole {seed}")
    scenario = Scenario(
        sites=_sites(rng),
        queues=_queues(rng),
        jobs=_jobs(rng, jobs),
        priority_classes=[urgent_class()],
        failures=Failures(pod=3.0, node=20.0, node_repair=0.5) if seed % 2 else Failures(),
        outages=[Outage(cluster="a", at=1000.0, until=2500.0)] if seed % 3 == 0 else [],
        seed=seed,
        checkpoint=300.0,
    )
    plane = Heard(rng, refuses=refuses, now=now)
    logs = Log(plane.rows)
    options = Options(
        queue_admission=mode,
        leader_elect=False,
        workers=1,
    )
    tuning = Tuning(writes=1, failure_causes=seed % 2 == 0, trainjobs_asked=None)
    clock = asyncio.get_running_loop().time
    async with Kube(plane) as kube:
        manager = Manager(kube, options, now=now, clock=clock, tuning=tuning)
        tasks = [
            asyncio.create_task(_edits(rng, plane, jobs)),
            asyncio.create_task(_measured(manager, plane)),
        ]
        if mode is QueueAdmission.VOLCANO_GLOBAL:
            tasks.append(asyncio.create_task(_release(plane)))
        LOGGER.addHandler(logs)
        try:
            async with asyncio.timeout(HOURS * 3600.0):
                await _run_to_end(Simulation(scenario, plane), lambda *_: None, manager)
        except TimeoutError:
            plane.rows.append("it goes on")
        finally:
            LOGGER.removeHandler(logs)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return plane.rows


def whole_cases(seed: int, *, jobs: int, refuses: float, mode: QueueAdmission) -> Iterator[Case]:
    """Run one simulation; each case is what happens to one HyperJob and its sub-jobs."""
    before, passes_on, state = LOGGER.level, LOGGER.propagate, random.getstate()
    disabled = logging.root.manager.disable
    logging.disable(logging.NOTSET)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    random.seed(seed)
    try:
        rows = run(_played(seed, jobs=jobs, refuses=refuses, mode=mode))
    finally:
        logging.disable(disabled)
        LOGGER.setLevel(before)
        LOGGER.propagate = passes_on
        random.setstate(state)
    rest = "\n".join(rows[MOST:])
    digest = hashlib.sha256(rest.encode()).hexdigest()[:16]
    more = [f"{len(rows) - MOST} more lines: {digest}"] if rest else []
    yield f"simulation {seed}, {mode}", [*rows[:MOST], *more]
