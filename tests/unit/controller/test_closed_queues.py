"""A Queue that one cluster has closed: no new sub-job goes there, and those that run stay."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_controller.caches import Caches, slim_queue_binding
from hyperjob_controller.memory import ClosedQueues
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import (
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    HYPERJOBS,
    QUEUES,
    VCJOBS,
)
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import CreateChild, DeleteChild, Repin, Resize
from hyperjob_engine.model.request import ClosedQueue
from hyperjob_engine.placement.place import fits_never
from hyperjob_engine.placement.room import Room
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import PodsTrouble, PodTrouble, TroubleKind
from hyperjob_engine.resources import parse_resources
from hyperjob_queueing.queues import closed_queue
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.verdict import verdict_of
from tests.support.apiserver import ApiServer
from tests.support.feeds import Feed
from tests.unit.controller.test_pass import member as cluster_of
from tests.unit.controller.test_pass import named, reason, running, until
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    place,
    policy,
    request,
    task,
    template,
    vcjob_status,
)
from tests.unit.queueing.queueworld import QueueWorld, queue, unit

A, B = cluster("a"), cluster("b")
RESEARCH = "research"
ON_A = ClosedQueue(RESEARCH, frozenset({"a"}))
EVERYWHERE = ClosedQueue(RESEARCH, frozenset({"a", "b"}))
LATE = timedelta(seconds=11)
NAMES = ("hj-trainer-0", "hj-trainer-1")


def bound(*states: str | None, kind: str = "Queue", name: str = RESEARCH) -> Object:
    items = [
        {
            "clusterName": chr(ord("a") + index),
            **({} if state is None else {"status": {"state": state}}),
        }
        for index, state in enumerate(states)
    ]
    resource = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": kind, "name": name}
    return {
        "metadata": {"name": f"{name}-queue", "uid": f"uid of {name}", "resourceVersion": "7"},
        "spec": {"resource": resource, "clusters": [{"name": "a"}]},
        "status": {"aggregatedStatus": items},
    }


STATES: dict[str, tuple[Object, set[str]]] = {
    "open everywhere": (bound("Open", "Open"), set()),
    "closed in one": (bound("Closed", "Open"), {"a"}),
    "closing in one": (bound("Open", "Closing"), {"b"}),
    "unknown": (bound("Unknown", "Open"), {"a"}),
    "no state yet": (bound("", None), set()),
    "closed everywhere": (bound("Closed", "Closed"), {"a", "b"}),
    "another kind": (bound("Closed", kind="PriorityClass"), set()),
}


@pytest.mark.parametrize("case", STATES)
def test_a_cluster_counts_as_closed_by_the_state_that_karmada_reports_from_it(case: str) -> None:
    raw, clusters = STATES[case]
    for each in (raw, slim_queue_binding(raw)):
        found = closed_queue(each)
        assert found == (ClosedQueue(RESEARCH, frozenset(clusters)) if clusters else None)


def test_the_cache_keeps_of_a_clusterresourcebinding_what_it_reads() -> None:
    raw = bound("Closed") | {
        "status": {
            "aggregatedStatus": [
                {
                    "clusterName": "a",
                    "applied": True,
                    "status": {"state": "Closed", "allocated": {"cpu": "1"}},
                }
            ],
            "conditions": [],
        }
    }
    assert slim_queue_binding(raw) == {
        "metadata": {"name": "research-queue", "uid": "uid of research", "resourceVersion": "7"},
        "spec": {"resource": raw["spec"]["resource"]},
        "status": {"aggregatedStatus": [{"clusterName": "a", "status": {"state": "Closed"}}]},
    }


def test_a_hyperjob_learns_of_its_own_queues_only_and_is_told_once_for_each_change() -> None:
    told: list[str] = []
    feed = Feed()
    queues = ClosedQueues(feed, changed=told.append)  # type: ignore[arg-type]  # its handlers only
    mine = parse_hyperjob(hyperjob(group(templateSpec=template(queue=RESEARCH))))
    other = parse_hyperjob(hyperjob(group()))
    assert queues.of(mine) == {}
    feed.tell(EventType.ADDED, None, bound("Open", "Open"))
    assert told == []
    feed.tell(EventType.MODIFIED, bound("Open", "Open"), bound("Closed", "Open"))
    assert (queues.of(mine), queues.of(other)) == ({RESEARCH: ON_A}, {})
    feed.tell(EventType.MODIFIED, bound("Closed", "Open"), bound("Closed", "Open"))
    assert told == [RESEARCH]
    feed.tell(EventType.MODIFIED, bound("Closed", "Open"), bound("Closed", "Closed"))
    assert queues.of(mine) == {RESEARCH: EVERYWHERE}
    feed.tell(EventType.DELETED, bound("Closed", "Closed"), None)
    assert queues.of(mine) == {}
    assert told == [RESEARCH] * 3


@pytest.mark.parametrize("admission", [QueueAdmission.NONE, QueueAdmission.BUILTIN])
async def test_what_waits_for_a_closed_queue_starts_as_soon_as_it_is_open(
    admission: QueueAdmission,
) -> None:
    server = ApiServer()
    server.put(CLUSTERS, cluster_of("a", 100))
    server.put(
        QUEUES, {"metadata": {"name": RESEARCH}, "spec": {"weight": 1}, "status": {"state": "Open"}}
    )
    server.put(CLUSTER_RESOURCE_BINDINGS, bound("Closed"))
    one = group(replicas=1, templateSpec=template(task(replicas=1), queue=RESEARCH))
    async with running(server, admission):
        server.put(HYPERJOBS, named("hj", one))
        await until(lambda: reason(server) == "QueueNotOpen")
        server.put(CLUSTER_RESOURCE_BINDINGS, bound("Open"))
        await until(lambda: server.items(VCJOBS))


def look(
    *objects: Object,
    closed: ClosedQueue | None = ON_A,
    at: timedelta = LATE,
    status: Object | None = None,
    admission: QueueAdmission = QueueAdmission.BUILTIN,
    replicas: int = 1,
    **spec: Any,
) -> Observed:
    one = group(replicas=replicas, templateSpec=template(task(replicas=8), queue=RESEARCH))
    seen = observed(
        hyperjob(one, status=status, **spec),
        *objects,
        clusters=(A, B),
        admission=admission,
        now=NOW + at,
    )
    verdict = None if admission is QueueAdmission.NONE else QueueVerdict(admitted=frozenset(NAMES))
    closed_queues = {} if closed is None else {RESEARCH: closed}
    return replace(seen, verdict=verdict, closed_queues=closed_queues)


def where(seen: Observed) -> list[str]:
    return [each.cluster for each in plan(seen).actions if isinstance(each, CreateChild)]


def test_a_new_sub_job_goes_to_a_cluster_that_has_its_queue_open() -> None:
    assert where(look(closed=None)) == ["a"]
    assert where(look()) == ["b"]
    assert where(look(admission=QueueAdmission.NONE)) == ["b"]


def test_a_split_is_shared_out_over_clusters_that_have_its_queue_open() -> None:
    auto = {"mode": "auto", "accelerators": 8, "acceleratorType": "nvidia.com/gpu"}
    one = group(replicas=4, splitPolicy=auto, templateSpec=template(task(), queue=RESEARCH))
    seen = observed(hyperjob(one), clusters=(A, B), now=NOW)
    assert set(where(seen)) == {"a"}
    assert set(where(replace(seen, closed_queues={RESEARCH: ON_A}))) == {"b"}


def test_a_waiting_sub_job_says_which_cluster_has_closed_which_queue() -> None:
    found = place([request("x", excluded=frozenset({"a"}), closed=ON_A)], (A, cluster("b", 0)))
    text = found.unplaced["x"].text
    assert "a has closed queue research" in text
    assert "b lacks 1 nvidia.com/gpu" in text


@pytest.mark.parametrize(
    ("preferred", "reason"),
    [(("a",), "QueueNotOpen"), (("a", "b"), "InsufficientCapacity")],
    ids=["in the only cluster that it may use", "and another cluster is full"],
)
def test_a_person_must_open_a_queue_that_no_cluster_of_a_hyperjob_has_open(
    preferred: tuple[str, ...], reason: str
) -> None:
    made = QueueWorld({"a": 64, "b": 4})
    made.set_queues(queue("default"))
    waits = unit("waits", 8)
    closed = ClosedQueue("default", frozenset({"a"}))
    (part,) = waits.parts
    bound_ = replace(
        part.request, preferred=preferred, required=True, excluded=frozenset({"a"}), closed=closed
    )
    made.submit(replace(waits, parts=(replace(part, request=bound_),)))
    assert made.decide() == []
    assert verdict_of(made.state, "ns/waits").reason == reason


def test_a_closed_queue_is_no_reason_why_a_gang_can_never_fit() -> None:
    requests = [request(name, 60, excluded=frozenset({"a"}), closed=ON_A) for name in "xy"]
    assert not fits_never(requests, Room((A, B)), minimum=2, max_domains=None)
    assert fits_never(requests, Room((A,)), minimum=2, max_domains=None)


def test_the_queue_engine_asks_for_no_room_in_a_cluster_that_has_closed_the_queue() -> None:
    unit = unit_of(look())
    (part,) = unit.parts
    assert (part.request.allows("a"), part.request.allows("b")) == (False, True)
    assert unit != unit_of(look(closed=None))


def member(
    index: int = 0, phase: str = "Pending", *, applied: bool = True, **pods: int
) -> list[Object]:
    name = NAMES[index]
    bound_ = binding(name, cluster="a", status=vcjob_status(phase, pods) if phase else None)
    if applied:
        bound_.setdefault("status", {})["conditions"] = [
            {"type": "FullyApplied", "status": "True", "lastTransitionTime": rfc3339(NOW)}
        ]
    spec = template(task(replicas=8), queue=RESEARCH)
    return [job(name, spec=spec), policy(name), bound_]


def record(index: int = 0, phase: str = "Pending") -> Object:
    return job_status(index, phase=phase, cluster="a", admitted=True)


def test_a_sub_job_that_runs_stays_where_its_queue_is_closed() -> None:
    told = {"jobs": [record(phase="Running")]}
    decided = plan(look(*member(phase="Running", running=8), status=told))
    assert not any(isinstance(each, DeleteChild | CreateChild | Repin) for each in decided.actions)
    assert decided.status["jobs"][0].get("attempt", 0) == 0


def test_a_sub_job_that_waits_for_pods_where_its_queue_is_closed_gives_back_and_may_return() -> (
    None
):
    told = {"jobs": [record()]}
    seen = look(*member(), status=told, at=timedelta(seconds=5))
    gate = PodsTrouble(trouble=PodTrouble(TroubleKind.BLOCKED, words="a gate is not removed"))
    soon = plan(replace(seen, pod_troubles={NAMES[0]: gate}))
    entry = soon.status["jobs"][0]
    words = "cluster a has closed queue research: Volcano creates no pod of it there"
    assert (entry["reason"], entry["message"]) == ("QueueNotOpen", words)
    assert soon.requeue_after == timedelta(seconds=5)
    late = plan(look(*member(), status=told)).status
    entry = late["jobs"][0]
    assert (entry["phase"], entry["attempt"], late["restarts"]) == ("Unplaced", 1, 0)
    assert entry["message"] == words
    assert not entry.get("admitted")
    assert not entry.get("excludedClusters"), "it may go there again once the queue is open"


def test_pods_that_exist_keep_their_place() -> None:
    told = {"jobs": [record()]}
    for pods in ({"pending": 8}, {"running": 1, "pending": 7}):
        status = plan(look(*member(**pods), status=told)).status
        assert status["jobs"][0].get("attempt", 0) == 0


@pytest.mark.parametrize(("without_node", "attempt"), [(8, 1), (7, 0)])
def test_pods_without_a_node_leave_a_cluster_that_has_closed_the_queue(
    without_node: int, attempt: int
) -> None:
    """Volcano gives no node to pods of a queue that is not open."""
    seen = look(*member(pending=8), status={"jobs": [record()]})
    waiting = parse_resources({GPU: without_node})
    clusters = tuple(
        replace(each, unscheduled=waiting) if each.name == "a" else each for each in seen.clusters
    )
    status = plan(replace(seen, clusters=clusters)).status
    assert status["jobs"][0].get("attempt", 0) == attempt


def test_a_role_without_the_right_to_read_the_states_of_queues_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        await Caches(Kube(MemoryServer(now=now))).say_what_is_missing()

    run(main())
    (said,) = [each.getMessage() for each in caplog.records]
    assert said.startswith("Cannot list ClusterResourceBindings")


def test_a_sub_job_that_the_closed_queue_refuses_moves_before_a_member_has_it() -> None:
    told = {"jobs": [record(phase="Placed")]}
    moves = [
        each
        for each in plan(look(*member(phase="", applied=False), status=told)).actions
        if isinstance(each, Repin)
    ]
    assert [each.cluster for each in moves] == ["b"]


def test_a_sub_job_does_not_grow_where_its_queue_is_closed() -> None:
    small = template(task(replicas=4), queue=RESEARCH)
    objects = [job(NAMES[0], spec=small), *member(phase="Running", running=4)[1:]]
    told = {"jobs": [record(phase="Running")]}
    unit = unit_of(look(*objects, status=told))
    (grows,) = [each for each in unit.parts if each.grows]
    assert not grows.request.allows("a")
    assert not any(
        isinstance(each, Resize)
        for each in plan(
            replace(
                look(*objects, status=told), verdict=QueueVerdict(admitted=frozenset({NAMES[0]}))
            )
        ).actions
    )


def test_closed_in_every_cluster_it_says_so_of_each() -> None:
    found = place([request("x", excluded=frozenset({"a", "b"}), closed=EVERYWHERE)], (A, B))
    assert "each of a, b has closed queue research" in found.unplaced["x"].text
