"""How many requests a sub-job costs from its creation to its end: counts, which no machine changes.

The limits are those of docs/scale.md, which gives the reason of each request.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hyperjob_controller.manager import Manager
from hyperjob_controller.reconciler import START_SECONDS
from hyperjob_core.api.names import GATE, GATE_OPEN
from hyperjob_core.kube.memory import Call
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    key_of,
)
from hyperjob_core.registry import REGISTRY
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.apiserver import VERBS, ApiServer
from tests.support.queues import due_in
from tests.unit.controller.test_pass import member, named, running, soon, status, until
from tests.unit.engine.builders import Object, binding, group, vcjob_status

COUNT, REPLICAS = 20, 4
SUB_JOBS = COUNT * REPLICAS
NAMES = [f"hj{number}" for number in range(COUNT)]

# Requests per sub-job until all gates are open; the status and its Event are of the HyperJob.
GATED = {
    "create propagationpolicies": 1.0,
    "create jobs": 1.0,
    "patch propagationpolicies": 1.0,  # opens the gate; Karmada follows in the binding
    "patch hyperjobs": 1 / REPLICAS,
    "create events": 1 / REPLICAS,
}
UNGATED = {
    "create propagationpolicies": 1.0,
    "create jobs": 1.0,
    "patch hyperjobs": 1 / REPLICAS,
    "create events": 1 / REPLICAS,
}
RUNNING = vcjob_status("Running", {"running": 1})
PASSES = 5  # of each HyperJob until then; most have 3


class Karmada(ApiServer):
    """Counts, and binds every new vcjob to the cluster of its policy, held as the policy says."""

    def __init__(self) -> None:
        super().__init__()
        self.made: Counter[str] = Counter()
        self.binds = True

    def answer(self, call: Call) -> Any:
        verb = VERBS.get(call.method) or "get"
        if verb != "get" or call.name:
            self.made[f"{verb} {call.resource.plural}"] += 1
        answer = super().answer(call)
        if verb == "create" and call.resource is VCJOBS and self.binds:
            self.bind(answer)
        return answer

    def bind(self, job: Object) -> None:
        policy = self.get(PROPAGATION_POLICIES, key_of(job))
        spec = policy["spec"]
        (cluster,) = spec["placement"]["clusterAffinities"][0]["clusterNames"]
        bound = binding(job["metadata"]["name"], cluster=cluster, suspension=spec.get("suspension"))
        bound["metadata"]["ownerReferences"][0]["uid"] = job["metadata"]["uid"]
        bound["spec"]["resource"]["uid"] = job["metadata"]["uid"]
        self.put(RESOURCE_BINDINGS, bound)

    def are_bound(self, *, gated: bool) -> bool:
        found = self.items(PROPAGATION_POLICIES)
        gates = [(each["metadata"].get("annotations") or {}).get(GATE) for each in found]
        return gates == [GATE_OPEN if gated else None] * SUB_JOBS

    def are_open(self, count: int) -> bool:
        found = self.items(PROPAGATION_POLICIES)
        gates = [(each["metadata"].get("annotations") or {}).get(GATE) for each in found]
        return gates == [GATE_OPEN] * count

    def phases(self) -> set[str]:
        found = self.items(HYPERJOBS)
        return {(each.get("status") or {}).get("state", {}).get("phase", "") for each in found}

    def report(self, phase: str) -> None:
        for job in self.items(VCJOBS):
            status = vcjob_status(phase, {"running": 1})
            self.put(VCJOBS, {**job, "metadata": {**job["metadata"]}, "status": status})


def passes() -> float:
    """Count the passes that have ended, by the metric that is counted for each of them."""
    return sum(
        sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name == "controller_runtime_reconcile_total"
    )


def rests(manager: Manager) -> bool:
    """Return whether no pass of the HyperJob runs, or comes within seconds."""
    runs = len(manager.queue) or manager.queue.longest_running_seconds()
    return not runs and not soon(manager, "hj")


async def seen(manager: Manager, change: Callable[[], object]) -> None:
    """Make a change, and await the pass that sees it."""
    before = passes()
    change()
    await until(lambda: passes() > before and rests(manager))


def empty() -> Karmada:
    server = Karmada()
    for number in range(10):
        server.put(CLUSTERS, member(f"c{number}", 10 * SUB_JOBS))
    server.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    return server


@pytest.mark.parametrize(
    ("admission", "limits"), [(QueueAdmission.BUILTIN, GATED), (QueueAdmission.NONE, UNGATED)]
)
async def test_a_sub_job_costs_no_more_requests_than_its_limit(
    admission: QueueAdmission, limits: dict[str, float]
) -> None:
    server, gated, before = empty(), limits is GATED, passes()
    async with running(server, admission) as manager:
        server.made.clear()
        for name in NAMES:
            server.put(HYPERJOBS, named(name, group(replicas=REPLICAS, gpus=1)))
        await until(lambda: server.are_bound(gated=gated))
        await until(lambda: not any(soon(manager, name) for name in NAMES))
        over = {key: number / SUB_JOBS for key, number in server.made.items()}
        assert {key: cost for key, cost in over.items() if cost > limits.get(key, 0.0)} == {}
        assert COUNT <= passes() - before <= PASSES * COUNT

        # A storm in which every sub-job changes its phase: about one status for all of a HyperJob.
        server.made.clear()
        server.report("Running")
        await until(lambda: server.phases() == {"Running"})
        assert server.made["patch hyperjobs"] <= 2 * COUNT
        assert not {key for key in server.made if "hyperjobs" not in key and "events" not in key}

    server.made.clear()
    before = passes()
    async with running(server, admission):
        await until(lambda: passes() - before >= COUNT)
        assert not server.made, "a restart writes nothing for what has not changed"


async def test_one_status_has_the_creation_of_sub_jobs_and_the_opening_of_their_gates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hyperjob_controller.reconciler.START_SECONDS", 600.0)
    server = empty()
    async with running(server) as manager:
        server.put(HYPERJOBS, named("hj", group(replicas=REPLICAS, gpus=1)))
        await until(lambda: server.phases() == {"Starting"} and not soon(manager, "hj"))
    (written,) = server.items(HYPERJOBS)
    assert {job["message"] for job in written["status"]["jobs"]} == {"is being dispatched"}
    assert server.made["patch hyperjobs"] == 1


async def test_a_status_waits_no_longer_than_a_second_for_resourcebindings() -> None:
    server = empty()
    server.binds = False
    async with running(server) as manager:
        server.put(HYPERJOBS, named("hj", group(replicas=REPLICAS, gpus=1)))
        await until(lambda: len(server.items(VCJOBS)) == REPLICAS)
        await until(lambda: due_in(manager.queue, "default/hj") is not None)
        assert (due_in(manager.queue, "default/hj") or 0) <= START_SECONDS
        await until(lambda: server.phases() == {"Starting"})
    (written,) = server.items(HYPERJOBS)
    assert {job["message"] for job in written["status"]["jobs"]} == {"waits for Karmada"}


@asynccontextmanager
async def opened_late(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Karmada, Manager]]:
    """Open the gates of a HyperJob whose Karmada is slow; no status and no Event has them yet.

    Karmada binds the sub-jobs, and the controller opens their gates, after the first status.
    """
    monkeypatch.setattr("hyperjob_controller.reconciler.STEP_SECONDS", 600.0)
    server = empty()
    server.binds = False
    async with running(server, QueueAdmission.BUILTIN) as manager:
        server.put(HYPERJOBS, named("hj", group(replicas=REPLICAS, gpus=1)))
        await until(lambda: server.phases() == {"Starting"} and server.made["create events"])
        server.made.clear()
        first, *others = server.items(VCJOBS)
        await seen(manager, lambda: server.bind(first))
        for job in others:
            server.bind(job)
        await until(lambda: server.are_open(REPLICAS) and rests(manager))
        yield server, manager


async def test_one_status_and_one_event_have_the_steps_of_a_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened_late(monkeypatch) as (server, manager):
        first, *others = server.items(VCJOBS)
        for job in others:
            await seen(manager, lambda: server.put(VCJOBS, {**job, "status": RUNNING}))  # noqa: B023
        assert START_SECONDS < (due_in(manager.queue, "default/hj") or 0) <= 600
        assert (server.made["patch hyperjobs"], server.made["create events"]) == (0, 0)
        server.put(VCJOBS, {**first, "status": RUNNING})
        await until(lambda: server.phases() == {"Running"} and server.made["create events"])
    assert (server.made["patch hyperjobs"], server.made["create events"]) == (1, 1)
    notes = {event["reason"]: event["note"] for event in server.events}
    assert "be dispatched together; 4 of 4 sub-jobs run" in notes["Running"]


async def test_steps_wait_no_longer_than_their_seconds_for_the_next_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hyperjob_controller.reconciler.STEP_SECONDS", 0.5)
    server = empty()
    async with running(server, QueueAdmission.BUILTIN) as manager:
        server.put(HYPERJOBS, named("hj", group(replicas=REPLICAS, gpus=1)))
        await until(lambda: server.are_open(REPLICAS) and rests(manager))
        job = server.items(VCJOBS)[0]
        server.put(VCJOBS, {**job, "status": RUNNING})
        await until(lambda: status(server).get("jobsReady") == "1/4")
    assert server.phases() == {"Starting"}


async def test_an_event_that_waits_for_its_phase_is_recorded_when_the_controller_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened_late(monkeypatch) as (server, _):
        assert "GateOpened" not in {event["reason"] for event in server.events}
    assert "GateOpened" in {event["reason"] for event in server.events}
