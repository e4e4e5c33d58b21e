"""Whether a HyperJob can ever run has one answer, in plan, status, `why`, `wait` and the page.

The engine decides it, as the reason of the status; all others read it there.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hyperjob.client.errors import NeverError, NotYetError
from hyperjob.client.plan.judge import Verdict, judge
from hyperjob.client.plan.snapshot import Snapshot
from hyperjob.client.reading import Target
from hyperjob.client.summary import read
from hyperjob.client.waiting import parse_goal, reach
from hyperjob.client.why.evidence import Evidence, Explanation, Outcome
from hyperjob.client.why.explain import explain
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
)
from hyperjob_core.tasks import cancel
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_page.rows import row_of
from hyperjob_sandbox.simulate.sites import queue, site
from hyperjob_sandbox.simulate.workload import Scenario
from hyperjob_sandbox.simulate.world import Simulation
from tests.unit.engine.builders import GPU, Object

NODE = {"cpu": "64", "memory": "512Gi", GPU: "8", "pods": "110"}
SEEN = (CLUSTERS, HYPERJOBS, PROPAGATION_POLICIES, QUEUES, RESOURCE_BINDINGS, VCJOBS)


def hyperjob(
    gpus: int = 8, pods: int = 1, *, replicas: int = 1, device: str = GPU, **fields: Any
) -> Object:
    spec = fields.pop("spec", {})
    container = {"name": "main", "image": "i", "resources": {"limits": {device: str(gpus)}}}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": pods, "template": pod}
    template = {"queue": fields.pop("queue", "default"), "tasks": [task]}
    group = {"name": "train", "replicas": replicas, "templateSpec": template, **fields}
    return {
        **HYPERJOBS.head,
        "metadata": {"namespace": "ml", "name": "one"},
        "spec": {"replicatedJobs": [group], "minAvailable": replicas, **spec},
    }


ONLY_SMALL = {"clusterNames": ["small"], "clusterPolicy": "Required"}
SPLIT = {"mode": "auto", "acceleratorType": GPU}

# `large` has 4 nodes of 8, `small` 2, `down` 4 and is not Ready.
CASES = {
    "a sub-job that fits no named cluster": (hyperjob(8, 3, **ONLY_SMALL), "ExceedsClusters"),
    "a sub-job that fits a named cluster later": (
        hyperjob(8, 2, **ONLY_SMALL),
        "InsufficientCapacity",
    ),
    "a sub-job that is larger than every cluster": (
        hyperjob(8, 5, clusterNames=["large", "small"], clusterPolicy="Required"),
        "ExceedsClusters",
    ),
    "one that may fit on the cluster that is not Ready": (hyperjob(8, 5), "InsufficientCapacity"),
    "a gang that is larger than all clusters": (
        hyperjob(8, 4, replicas=2, clusterNames=["large", "small"], clusterPolicy="Required"),
        "ExceedsClusters",
    ),
    "a gang that waits for others to end": (
        hyperjob(8, 2, replicas=3, clusterNames=["large", "small"], clusterPolicy="Required"),
        "InsufficientCapacity",
    ),
    "an automatic split that is larger than all clusters": (
        hyperjob(
            8,
            splitPolicy={**SPLIT, "accelerators": 56},
            clusterNames=["large", "small"],
            clusterPolicy="Required",
        ),
        "ExceedsClusters",
    ),
    "an automatic split that waits for others to end": (
        hyperjob(
            8,
            splitPolicy={**SPLIT, "accelerators": 48},
            clusterNames=["large", "small"],
            clusterPolicy="Required",
        ),
        "InsufficientCapacity",
    ),
    "a device that no cluster has": (
        hyperjob(8, device="nvidia.com/gpus", **ONLY_SMALL),
        "ExceedsClusters",
    ),
    "a full queue, behind which no cluster is large enough": (
        hyperjob(8, 3, queue="limited", **ONLY_SMALL),
        "ExceedsClusters",
    ),
    "more than its queue may ever use": (hyperjob(8, 4, queue="tiny"), "ExceedsQueue"),
    "a queue that does not exist": (hyperjob(queue="other"), "InvalidQueue"),
    "a queue that has child queues": (hyperjob(queue="parent"), "InvalidQueue"),
    "a closed queue": (hyperjob(queue="closed"), "QueueNotOpen"),
}
NEVER = {"ExceedsClusters", "ExceedsQueue", "InvalidQueue"}


def busy(name: str, nodes: int, *, queue: str = "default") -> Object:
    made = hyperjob(8, nodes, queue=queue, clusterNames=[name], clusterPolicy="Required")
    made["metadata"]["name"] = f"runs-on-{name}"
    return made


async def fleet() -> MemoryServer:
    """Return a control plane whose clusters are full: one HyperJob runs on each."""
    sizes = {"large": 4, "small": 2, "down": 4}
    scenario = Scenario(
        sites=[site(name, [("gpu", NODE, size)]) for name, size in sizes.items()],
        queues=[
            queue("default", {"weight": 1}),
            queue("limited", {"weight": 1, "capability": {GPU: "32"}}),
            queue("tiny", {"weight": 1, "capability": {GPU: "16"}}),
            queue("parent", {"weight": 1}),
            queue("child", {"weight": 1, "parent": "parent"}),
            queue("closed", {"weight": 1}),
        ],
        jobs=[],
        priority_classes=[],
    )
    server = MemoryServer(now=now)
    simulation = Simulation(scenario, server)
    simulation.begin()
    server.change(QUEUES, "closed", {"status": {"state": "Closed"}}, status=True)
    simulation.set_cluster("down", down=True)
    server.create(HYPERJOBS, busy("large", 4, queue="limited"))
    server.create(HYPERJOBS, busy("small", 2))
    return server


async def waits_in_vain(server: MemoryServer) -> bool:
    try:
        await reach(Target(Kube(server), "ml", "one"), parse_goal("phase=Completed"), seconds=30)
    except NeverError:
        return True
    except NotYetError:
        return False
    raise AssertionError("the clusters are full")


async def answers(made: Object) -> tuple[Object, Verdict, Explanation, str, bool]:
    """Return the status, and what plan, why, page and wait say."""
    server = await fleet()
    options = Options(queue_admission=QueueAdmission.BUILTIN, leader_elect=False, workers=1)
    manager = Manager(
        Kube(server),
        options,
        now=now,
        clock=asyncio.get_running_loop().time,
        tuning=Tuning(failure_causes=False),
    )
    running = asyncio.create_task(manager.run())
    await manager.working.wait()
    await asyncio.sleep(60)
    seen = {each: server.items(each) for each in SEEN}
    with ThreadPoolExecutor(1) as thread:
        world = Snapshot(now=now(), objects=seen, options=options)
        planned = thread.submit(judge, made, world).result()
    server.create(HYPERJOBS, made)
    await asyncio.sleep(10)
    in_vain = await waits_in_vain(server)
    (stored,) = [each for each in server.items(HYPERJOBS) if each["metadata"]["name"] == "one"]
    await cancel([running])
    found = explain(Evidence(now=now(), summary=read(stored)))
    return stored["status"], planned.verdict, found, row_of(stored).summary.reason, in_vain


@pytest.mark.parametrize(("made", "reason"), CASES.values(), ids=CASES)
def test_whether_it_can_ever_run_has_one_answer(made: Object, reason: str) -> None:
    status, planned, found, row, in_vain = run(answers(made))
    never = reason in NEVER
    assert status["state"]["reason"] == reason, status["state"]
    assert planned is (Verdict.CANNOT_RUN if never else Verdict.WAITS)
    assert found.causes[0].reason == row == reason
    assert found.causes[0].message == status["state"]["message"]
    assert in_vain is never
    assert not never or found.outcome is Outcome.NEEDS_HELP
