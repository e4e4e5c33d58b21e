"""What `hyperjob plan` answers is what the controller then does, in random worlds.

A world has clusters of which some are lost, queues of which some are full or closed, gangs that
run, and objects of other owners with the names of sub-jobs. The controller runs on an API server in
memory, among simulated members. What only a process remembers, such as since when it has seen the
pods of a sub-job, is no input of a plan: the controller starts when the plan is made.
"""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from hyperjob.client.plan.judge import Document, Judgement, Verdict, judge_all
from hyperjob.client.plan.snapshot import Snapshot
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    key_of,
)
from hyperjob_core.tasks import cancel
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.reasons.reason import NEVER_RUNS
from hyperjob_rules.validation.context import NOTHING_KNOWN
from hyperjob_rules.validation.create import inspect
from hyperjob_sandbox.simulate.sites import queue, site, urgent_class
from hyperjob_sandbox.simulate.workload import Scenario
from hyperjob_sandbox.simulate.world import Simulation
from tests.unit.client.generated import hyperjob_of, some
from tests.unit.engine.builders import GPU, Object

pytestmark = pytest.mark.long

FLEETS, WORLDS = 15, 10
SETTLED = 100.0
"""Virtual seconds after which a world is at rest: a cluster is lost after 20."""
MOST = 4
LARGEST = 8
NODE = {"cpu": "64", "memory": "512Gi", GPU: "8", "pods": "110"}
COPIED = (
    CLUSTERS, HYPERJOBS, PRIORITY_CLASSES, PROPAGATION_POLICIES, QUEUES, RESOURCE_BINDINGS, VCJOBS,
)  # fmt: skip


class Fleet:
    """A control plane with simulated members, in which the controller runs."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"fleet {seed}")
        self.server = MemoryServer(now=now)
        self.options = Options(
            queue_admission=self.rng.choice((QueueAdmission.BUILTIN, QueueAdmission.NONE)),
            leader_elect=False,
            workers=1,
            cluster_lost_timeout=20.0,
        )
        sizes = {name: self.rng.randint(1, 3) for name in "abc"[: self.rng.randint(2, 3)]}
        self.scenario = Scenario(
            sites=[site(name, [("gpu", NODE, size)]) for name, size in sizes.items()],
            queues=[
                queue("default", {"weight": 2, "capability": {GPU: "16"}}),
                queue("q0", {"weight": 1, "reclaimable": True}),
                queue("q1", {"weight": 1, "dequeueStrategy": "fifo"}),
            ],
            jobs=[],
            priority_classes=[urgent_class()],
        )
        self.simulation = Simulation(self.scenario, self.server)
        self.names = 0
        self.taken: str | None = None
        self.answers: dict[str, Object] = {}
        self.evicts = False
        self.server.listen(self._heard)

    async def start(self) -> None:
        """Start a controller."""
        manager = Manager(
            Kube(self.server),
            self.options,
            now=now,
            clock=asyncio.get_running_loop().time,
            tuning=Tuning(failure_causes=False),
        )
        self._running = asyncio.create_task(manager.run())
        await manager.working.wait()

    async def stop(self) -> None:
        await cancel([self._running])

    def _heard(self, kind: str, _old: Object | None, new: Object | None) -> None:
        """Keep the first status that the controller writes for each HyperJob."""
        if kind == HYPERJOBS.kind and new is not None and new["status"].get("state"):
            self.answers.setdefault(key_of(new), new["status"])
            self.evicts |= new["status"]["state"]["phase"] == "Restarting"

    def hyperjob(self) -> Object:
        """Make a HyperJob that admission does not refuse."""
        self.names += 1
        while True:
            raw = hyperjob_of(self.rng, f"j{self.names}", most=2)
            for field in ("uid", "creationTimestamp", "generation", "resourceVersion"):
                raw["metadata"].pop(field, None)
            raw.pop("status", None)
            raw["spec"].pop("suspend", None)
            if _size(raw) <= LARGEST and not refusals(raw):
                return raw

    def make_room(self) -> None:
        """Delete the oldest HyperJobs, so that not all that come later wait.

        The HyperJob whose name was taken goes too: a controller that has just started admits others
        for a second before it has seen the conflict again.
        """
        for raw in self.server.items(HYPERJOBS)[:-MOST]:
            self.server.remove(HYPERJOBS, key_of(raw))
        if self.taken is not None and self.server.get(HYPERJOBS, self.taken) is not None:
            self.server.remove(HYPERJOBS, self.taken)
        self.taken = None

    def submit(self, raw: Object) -> None:
        self.server.create(HYPERJOBS, {**raw, "status": {}})

    def happen(self) -> None:
        """Let users and clusters change the world."""
        rng, server = self.rng, self.server
        match rng.randrange(6):
            case 0:
                spec = {"spec": {"capability": {GPU: str(rng.choice((4, 16, 48)))}}}
                server.change(QUEUES, rng.choice(("default", "q0")), spec)
            case 1:
                state = {"status": {"state": rng.choice(("Open", "Open", "Closed"))}}
                server.change(QUEUES, rng.choice(("default", "q0", "q1")), state, status=True)
            case 2:
                cluster = rng.choice(list(self.simulation.members))
                down = not self.simulation.members[cluster].down
                self.simulation.set_cluster(cluster, down=down)
            case 3 if found := server.items(HYPERJOBS):
                server.remove(HYPERJOBS, key_of(rng.choice(found)))
            case _:
                self.submit(self.hyperjob())

    def take_name(self, raw: Object) -> None:
        """Create an object of another owner that has the name of a sub-job."""
        resource = self.rng.choice((VCJOBS, VCJOBS, PROPAGATION_POLICIES))
        group = self.rng.choice(raw["spec"]["replicatedJobs"])["name"]
        owner = {"kind": "CronJob", "name": "other", "uid": "other", "controller": True}
        metadata: Object = {
            "namespace": raw["metadata"]["namespace"],
            "name": f"{raw['metadata']['name']}-{group}-0",
            "ownerReferences": [owner],
        }
        if some(self.rng, 0.3):
            metadata["labels"] = {LABEL_HYPERJOB: raw["metadata"]["name"]}
        self.server.create(resource, {"metadata": metadata, "spec": {}})
        self.taken = key_of(raw)

    def world(self) -> Snapshot:
        return Snapshot(
            now=now(),
            objects={each: self.server.items(each) for each in COPIED},
            options=self.options,
        )


def refusals(raw: Object) -> Sequence[object]:
    return inspect(raw, context=NOTHING_KNOWN, strict=True).refusals


def _size(raw: Object) -> int:
    """Return the accelerators of automatic splits: many make the search for room long."""
    splits = (each.get("splitPolicy") or {} for each in raw["spec"]["replicatedJobs"])
    return sum(each["accelerators"] for each in splits if each.get("mode") == "auto")


def judged(raws: Sequence[Object], world: Snapshot) -> list[Judgement]:
    """Plan on another thread: this one's event loop is running."""
    with ThreadPoolExecutor(1) as thread:
        documents = [Document(content=raw) for raw in raws]
        return thread.submit(judge_all, documents, world).result()


def placed(jobs: Sequence[Object]) -> dict[str, str]:
    return {each["name"]: each["cluster"] for each in jobs if each.get("cluster")}


def differences(found: Judgement, status: Object, *, freed: bool) -> list[str]:
    """Return how the plan's answer differs from the controller's first status.

    With `freed` an eviction has freed room since the plan: the message may say less, and a HyperJob
    that waits in the plan may start.
    """
    state = status["state"]
    waits = state["phase"] in ("Pending", "Queued")
    where = {piece.name: piece.cluster for piece in found.pieces if piece.cluster}
    wrong: list[str] = []
    if freed and not waits and found.verdict is Verdict.WAITS:
        return wrong
    if waits is (found.verdict is Verdict.FITS):
        wrong.append(f"{found.verdict}, and the controller: {state}")
    never = state["reason"] in NEVER_RUNS
    if not freed and waits and never is not (found.verdict is Verdict.CANNOT_RUN):
        wrong.append(f"{found.verdict}, and the controller: {state}")
    if where != placed(status.get("jobs", ())):
        wrong.append(f"{where}, and the controller: {placed(status.get('jobs', ()))}")
    if (
        found.verdict is Verdict.WAITS
        and not freed
        and _cause(found.message) != _cause(state["message"])
    ):
        wrong.append(f"{found.message}, and the controller: {state['message']}")
    return wrong


def _cause(message: str) -> str:
    """Return why a HyperJob waits: places in line and expected starts are computed at intervals."""
    place = r"(first|number \d+|about \d+) of \d+ "
    message = re.sub(r"(?<=its turn about )\S+", "", message)  # by the second of the creation
    return re.sub(place, "", message).partition("; it is expected")[0]


async def played(seed: int, seen: Counter[str]) -> list[str]:
    """Compare plan and controller in one fleet; return the differences."""
    fleet, wrong = Fleet(seed), list[str]()
    fleet.simulation.begin()
    await fleet.start()
    try:
        for number in range(WORLDS):
            fleet.make_room()
            for _ in range(fleet.rng.randint(1, 3)):
                fleet.happen()
                await asyncio.sleep(5.0)
            await asyncio.sleep(SETTLED)
            raws = [fleet.hyperjob() for _ in range(fleet.rng.choice((1, 1, 1, 2)))]
            if some(fleet.rng, 0.2):
                fleet.take_name(raws[0])
                await asyncio.sleep(1.0)
            await fleet.stop()
            plans = judged(raws, fleet.world())
            await fleet.start()
            await asyncio.sleep(1.0)
            fleet.evicts = freed = False
            for raw, found in zip(raws, plans, strict=True):
                seen[found.verdict] += 1
                freed |= fleet.evicts or " preempts " in found.message  # within a second
                fleet.submit(raw)
                await asyncio.sleep(1.0)
                status = fleet.answers[key_of(raw)]
                seen[status["state"]["reason"]] += 1
                name = f"fleet {seed}, world {number}, {key_of(raw)}"
                wrong += [f"{name}: {each}" for each in differences(found, status, freed=freed)]
    finally:
        await fleet.stop()
    return wrong


@pytest.mark.parametrize("part", range(3))
def test_a_plan_is_what_the_controller_then_does(part: int) -> None:
    seen: Counter[str] = Counter()
    wrong = [
        each
        for seed in range(part * FLEETS // 3, (part + 1) * FLEETS // 3)
        for each in run(played(seed, seen))
    ]
    assert not wrong, "\n".join([f"{len(wrong)} differences, seen {dict(seen)}", *wrong[:20]])
    assert {Verdict.FITS, Verdict.WAITS, Verdict.CANNOT_RUN} <= seen.keys()
