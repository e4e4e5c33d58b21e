"""What each policy changes of a scenario, and when breakage strikes."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from hyperjob_core.virtualtime import run
from hyperjob_queueing.queues import DISABLED, PATIENCE, PREEMPTION
from hyperjob_sandbox.simulate.breakage import Breakage
from hyperjob_sandbox.simulate.policies import POLICIES
from hyperjob_sandbox.simulate.workload import Failures, Outage, Scenario, Submission

NOTHING_FOR_OTHERS = {PREEMPTION: DISABLED, PATIENCE: DISABLED}
TEMPLATE = {"queue": "a", "priorityClassName": "high", "runningEstimate": "1h", "tasks": []}
JOB = {
    "metadata": {"namespace": "ml", "name": "x"},
    "spec": {"minAvailable": 1, "replicatedJobs": [{"name": "t", "templateSpec": TEMPLATE}]},
}


def scenario() -> Scenario:
    queue = {"metadata": {"name": "a", "annotations": {"k": "v"}}, "spec": {"weight": 3}}
    bare = {"metadata": {"name": "b"}, "spec": {"reclaimable": True}}
    job = Submission(arrival=1.0, duration=2.0, hyperjob=JOB, gpus=8, queue="a")
    return Scenario(sites=[], queues=[queue, bare], jobs=[job])


def changed(policy: str) -> Scenario:
    before = scenario()
    found = POLICIES[policy][1](before)
    assert before == scenario(), "a policy changes a copy"
    assert [(each.arrival, each.duration, each.gpus) for each in found.jobs] == [(1.0, 2.0, 8)]
    return found


def spec(policy: str) -> Any:
    return changed(policy).jobs[0].hyperjob["spec"]


def template(policy: str) -> Any:
    return spec(policy)["replicatedJobs"][0]["templateSpec"]


def test_best_effort_neither_preempts_nor_reclaims_and_one_cluster_splits_nothing() -> None:
    first, second = changed("best-effort").queues
    assert first["metadata"]["annotations"] == {"k": "v", **NOTHING_FOR_OTHERS}
    assert second["metadata"]["annotations"] == NOTHING_FOR_OTHERS
    assert first["spec"] == {"weight": 3, "reclaimable": False}
    assert second["spec"] == {"reclaimable": False}
    assert spec("one-cluster") == {**JOB["spec"], "maxDomains": 1}


def test_first_in_first_out_has_one_queue_without_priorities() -> None:
    (queue,) = changed("fifo").queues
    name = queue["metadata"]["name"]
    assert template("fifo") == {"queue": name, "runningEstimate": "1h", "tasks": []}
    assert queue["spec"] == {"weight": 1, "reclaimable": False, "dequeueStrategy": "fifo"}
    assert queue["metadata"]["annotations"] == NOTHING_FOR_OTHERS
    assert queue["status"] == {"state": "Open"}


class Scene:
    """A scene of two clusters, which notes what strikes and when."""

    def __init__(self) -> None:
        self.struck: list[tuple[float, str, Any]] = []
        self.members = {
            name: SimpleNamespace(nodes=SimpleNamespace(all=[self._node()]), down=False)
            for name in ("east", "west")
        }

    @staticmethod
    def _node() -> Any:
        return SimpleNamespace(held={"ml/job": None}, out=False)

    def _note(self, what: str, value: Any) -> None:
        self.struck.append((asyncio.get_running_loop().time(), what, value))

    def fail(self, key: str, *, cause: str) -> None:
        self._note("fail", (key, cause))

    def set_node(self, cluster: str, node: Any, *, out: bool) -> None:
        node.out = out
        self._note("node", out)

    def set_cluster(self, cluster: str, *, down: bool) -> None:
        self.members[cluster].down = down
        self._note("cluster", (cluster, down))


def struck(failures: Failures, outages: Any = (), *, hours: float = 0, scene: Any = None) -> Any:
    made = scene or Scene()

    async def act() -> list[tuple[float, str, Any]]:
        begin = asyncio.get_running_loop().time()
        Breakage(made, failures, seed=7).begin(outages)
        await asyncio.sleep(hours * 3600)
        return [(time - begin, what, value) for time, what, value in made.struck]

    return run(act())


def test_an_outage_is_at_its_time_and_ends_at_its_own() -> None:
    async def now() -> float:
        return asyncio.get_running_loop().time()

    begin = run(now())
    outages = [
        Outage(cluster="east", at=begin + 60, until=begin + 120),
        Outage(cluster="west", at=begin + 90, until=None),
    ]
    found = struck(Failures(), outages, hours=1)
    assert [(round(time), value) for time, _, value in found] == [
        (60, ("east", True)),
        (90, ("west", True)),
        (120, ("east", False)),
    ]


@pytest.mark.parametrize(
    ("failures", "what", "repair"),
    [
        (Failures(node=10.0, node_repair=1.0), "node", 1.0),
        (Failures(cluster=10.0, cluster_repair=2.0), "cluster", 2.0),
    ],
)
def test_failures_come_at_random_times_and_are_repaired(
    failures: Failures, what: str, repair: float
) -> None:
    found = struck(failures, hours=500)
    assert {each[1] for each in found} == {what}
    begins = [time for time, _, value in found if value in (True, ("east", True), ("west", True))]
    ends = [time for time, _, value in found if value in (False, ("east", False), ("west", False))]
    assert 50 <= len(begins) <= 150, "two of them fail every ten hours on average"
    repaired = [any(abs(end - begin - repair * 3600) < 1 for end in ends) for begin in begins]
    assert sum(repaired) >= len(begins) - 2, "those of the last hours are not repaired yet"


def test_a_pod_on_a_node_fails_and_without_pods_none_does() -> None:
    found = struck(Failures(pod=10.0), hours=500)
    assert {each[1:] for each in found} == {("fail", ("ml/job", "pod"))}
    assert 50 <= len(found) <= 150
    idle = Scene()
    for member in idle.members.values():
        member.nodes.all[0].held.clear()
    assert struck(Failures(pod=10.0), hours=500, scene=idle) == []


def test_without_failures_nothing_strikes_and_equal_seeds_strike_alike() -> None:
    assert struck(Failures(), hours=500) == []
    failures = Failures(pod=10.0, node=10.0, node_repair=1.0)
    assert struck(failures, hours=100) == struck(failures, hours=100)
