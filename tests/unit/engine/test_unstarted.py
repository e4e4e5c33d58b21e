"""A sub-job of which no pod runs in its cluster gives back what it holds, and tries elsewhere."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.names import LABEL_ATTEMPT
from hyperjob_core.api.wire import rfc3339, timestamp
from hyperjob_engine.gang.giveback import next_try
from hyperjob_engine.members.facts import refusal_fact
from hyperjob_engine.model.observed import Cluster, Limits, Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import PodsRefused, refused_text
from hyperjob_engine.resources import parse_resources
from hyperjob_queueing.read import unit_of
from tests.support.structural import assert_status
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
    policy,
)
from tests.unit.engine.world import World

LIMIT = timedelta(minutes=15)
A, B = cluster("a"), cluster("b")
WAITS: Mapping[str, int] = {"pending": 8}
BUILTIN = QueueAdmission.BUILTIN
ALL = QueueVerdict(admitted=frozenset({"hj-trainer-0", "hj-trainer-1"}))


def member(index: int, phase: str = "Pending", pods: Mapping[str, int] = WAITS) -> list[Object]:
    made = child(index, phase, pods=pods)
    made[2]["status"]["conditions"] = [
        {"type": "FullyApplied", "status": "True", "lastTransitionTime": rfc3339(NOW)}
    ]
    return made


NO_PODS = [*member(0, pods={}), *member(1, pods={})]


def record(index: int) -> Object:
    return job_status(index, phase="Pending", cluster="a", admitted=True)


def look(
    *objects: Object,
    at: timedelta = LIMIT,
    clusters: tuple[Cluster, ...] = (A, B),
    admission: QueueAdmission = BUILTIN,
    status: Object | None = None,
    **spec: Any,
) -> Observed:
    told = status or {"jobs": [record(0), record(1)]}
    raw = hyperjob(group(replicas=2), status=told, **spec)
    seen = observed(raw, *objects, clusters=clusters, admission=admission, now=NOW + at)
    verdict = None if admission is not BUILTIN else ALL
    return replace(seen, verdict=verdict, limits=Limits(start=LIMIT))


def status_of(decided: Plan) -> Object:
    told = {key: value for key, value in decided.status.items() if value is not None}
    assert_status(told)
    return told


def attempts(decided: Plan) -> list[int]:
    return [entry.get("attempt", 0) for entry in status_of(decided)["jobs"]]


def test_a_gang_of_which_a_sub_job_never_starts_gives_all_of_it_back() -> None:
    decided = plan(look(*member(0), *member(1, "Running", {"running": 8})))
    assert attempts(decided) == [1, 1]
    assert decided.actions == ()  # written down first
    assert "restarts" not in status_of(decided) or not status_of(decided)["restarts"]
    first, second = status_of(decided)["jobs"]
    assert first["excludedClusters"] == ["a"]
    assert not second.get("excludedClusters")
    assert not any(entry.get("admitted") for entry in (first, second))
    why = "none of its pods ran on a within 15 minutes"
    assert any(why in event.note for event in decided.events)


@pytest.mark.parametrize("held", [True, False], ids=["held back", "delivered"])
@pytest.mark.parametrize("seconds", [-1, 0])
def test_a_gang_that_never_reached_a_lost_cluster_gives_all_of_it_back(
    seconds: int, held: bool
) -> None:
    lost = cluster("a", unusable="lost", not_ready_since=NOW)
    bound = {"suspension": {"dispatching": True}} if held else {}
    objects = [*child(0, **bound), *child(1, **bound)]
    placed = {"jobs": [record(index) | {"phase": "Placed"} for index in range(2)]}
    seen = look(*objects, clusters=(lost, B), at=timedelta(), status=placed)
    late = seen.limits.cluster_lost + timedelta(seconds=seconds)
    decided = plan(replace(seen, now=NOW + late))
    leaves = seconds == 0 and not held
    assert attempts(decided) == [int(leaves)] * 2
    why = f"cluster a is not Ready since {rfc3339(NOW)} and has not received it"
    assert any(why in event.note for event in decided.events) is leaves


def test_a_sub_job_beyond_min_available_goes_alone() -> None:
    running = member(1, "Running", {"running": 8})
    assert attempts(plan(look(*member(0), *running, minAvailable=1))) == [1, 0]


def test_without_a_queue_it_moves_to_a_cluster_that_may_have_larger_nodes() -> None:
    decided = plan(look(*member(0), *member(1), admission=QueueAdmission.NONE))
    assert attempts(decided) == [1, 1]
    assert "gang" not in status_of(decided)
    assert status_of(decided)["jobs"][0]["excludedClusters"] == ["a"]


STAY = {
    "before its time": (member(0), {"at": LIMIT - timedelta(seconds=1)}),
    "a pod that runs while others load images": (member(0, "Pending", {"running": 1}), {}),
    "a pod that has run": (member(0, "Pending", {"failed": 1}), {}),
    "one that runs": (member(0, "Running", {"running": 8}), {}),
    "a cluster that is out of reach": (
        member(0),
        {"clusters": (cluster("a", not_ready_since=NOW), B)},
    ),
    "a suspended HyperJob": (member(0), {"suspend": True}),
    "pods that have nodes, and load images there": (
        member(0),
        {"clusters": (cluster("a", unscheduled=parse_resources({GPU: "7"})), B)},
    ),
}


def test_pods_without_a_node_do_not_keep_their_place() -> None:
    waiting = parse_resources({GPU: "8"})
    first = cluster("a", unscheduled=waiting)
    for pods, there in ((WAITS, first), ({"pending": 7}, replace(first, unscheduled={}))):
        decided = plan(look(*member(0, pods=pods), *member(1), clusters=(there, B)))
        assert attempts(decided)[0] == 1


@pytest.mark.parametrize("case", STAY)
def test_it_keeps_its_place(case: str) -> None:
    objects, options = STAY[case]
    decided = plan(look(*objects, *member(1, "Running", {"running": 8}), **options))  # type: ignore[arg-type]  # of the table
    assert attempts(decided) == [0, 0]


def test_a_time_limit_of_zero_is_none() -> None:
    seen = replace(look(*member(0), *member(1)), limits=Limits(start=timedelta()))
    assert attempts(plan(seen)) == [0, 0]


def test_the_next_look_is_when_the_first_is_late() -> None:
    wait = timedelta(minutes=4)
    decided = plan(look(*member(0), *member(1), at=LIMIT - wait))
    assert decided.requeue_after <= wait


def test_each_further_time_it_waits_longer() -> None:
    waits = []
    for attempt in (0, 3, 6):
        told = {"jobs": [record(0) | {"attempt": attempt}, record(1) | {"attempt": attempt}]}
        objects = [*member(0), *member(1)]
        for item in objects:
            for marks in ("labels", "annotations"):
                item["metadata"].setdefault(marks, {})["training.volcano.sh/attempt"] = str(attempt)
        seen = look(*objects, status=told)
        retry = timestamp(status_of(plan(seen))["gang"]["retryTime"])
        waits.append(retry - seen.now)
    assert waits == sorted(waits)
    assert waits[0] < waits[-1]


QUOTA = 'pods "hj-trainer-0-0" is forbidden: exceeded quota: team'


def refused(seen: Observed, *, first: timedelta = timedelta(seconds=1)) -> Observed:
    """Let the cluster of both sub-jobs refuse their pods since a time."""
    words = PodsRefused(QUOTA, NOW + first, NOW + first)
    return replace(seen, pods_refused=dict.fromkeys(("hj-trainer-0", "hj-trainer-1"), words))


def test_a_cluster_that_refuses_the_pods_is_named_with_its_words() -> None:
    seen = refused(look(*member(0, pods={}), *member(1), at=timedelta(seconds=5)))
    status = plan(seen).status
    entry = status["jobs"][0]
    assert entry["reason"] == "PodsRefused"
    assert entry["message"] == f"cluster a refuses its pods: {QUOTA}"


def test_pods_that_are_refused_for_some_seconds_give_their_share_back_and_try_elsewhere() -> None:
    late = refused(look(*NO_PODS, at=timedelta(seconds=11)))
    status = plan(late).status
    assert timestamp(status["gang"]["retryTime"]) - late.now <= timedelta(seconds=5)
    first = status["jobs"][0]
    assert (first["phase"], first["excludedClusters"]) == ("Unplaced", ["a"])
    assert first["message"].endswith(QUOTA)
    assert status["restarts"] == 0
    assert not first.get("admitted")


def moved(name: str, *objects: Object) -> list[Object]:
    """Return the objects of the second sub-job on another cluster."""
    vcjob, _, bound = copy.deepcopy(list(objects))
    bound["spec"]["clusters"] = [{"name": name}]
    bound["status"]["aggregatedStatus"][0]["clusterName"] = name
    return [vcjob, policy("hj-trainer-1", cluster=name), bound]


C = cluster("c")
REFUSED = {
    "alone": (member(1, pods={}), ("hj-trainer-0", "hj-trainer-1"), [["a"], ["a"]]),
    "of a gang that runs elsewhere": (
        moved("b", *member(1, "Running", {"running": 8})),
        ("hj-trainer-0",),
        [["a"], ["a"]],
    ),
    "each by another cluster": (
        moved("b", *member(1, pods={})),
        ("hj-trainer-0", "hj-trainer-1"),
        [["b", "a"], ["a", "b"]],
    ),
    "beside a sub-job that has its pods there": (
        member(1, "Running", {"running": 8}),
        ("hj-trainer-0",),
        [["a"], []],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_no_sub_job_of_a_gang_tries_a_cluster_again_that_has_refused_another(case: str) -> None:
    second, names, excluded = REFUSED[case]
    where = second[2]["spec"]["clusters"][0]["name"]
    told = {"jobs": [record(0), record(1) | {"cluster": where}]}
    late = timedelta(seconds=11)
    seen = look(*member(0, pods={}), *second, at=late, clusters=(A, B, C), status=told)
    words = PodsRefused(QUOTA, NOW + timedelta(seconds=1), NOW + timedelta(seconds=1))
    decided = plan(replace(seen, pods_refused=dict.fromkeys(names, words)))
    found = [entry.get("excludedClusters") or [] for entry in status_of(decided)["jobs"]]
    assert found == excluded


def test_a_cluster_that_refused_pods_may_get_the_sub_job_again_after_a_growing_time() -> None:
    late = refused(look(*NO_PODS, at=timedelta(seconds=11)))
    status = status_of(plan(late))
    until = timestamp(status["jobs"][0]["excludedUntil"])
    assert until == late.now + timedelta(minutes=1)
    status.pop("gang")
    later_ = [entry | {"attempt": 3, "cluster": "a"} for entry in status["jobs"]]
    objects_ = copy.deepcopy(NO_PODS)
    for raw in objects_:
        raw["metadata"].setdefault("labels", {})[LABEL_ATTEMPT] = "3"
    third = refused(look(*objects_, at=timedelta(seconds=11), status={"jobs": later_}))
    until_third = timestamp(status_of(plan(third))["jobs"][0]["excludedUntil"])
    assert until_third == late.now + timedelta(minutes=8)
    seconds = (until - NOW).total_seconds()
    for at, excluded in ((seconds - 1, {"a"}), (seconds, set())):
        seen = look(at=timedelta(seconds=at), status=copy.deepcopy(status))
        waiting = unit_of(seen)
        assert {each.request.excluded for each in waiting.parts} == {frozenset(excluded)}
        decided = plan(seen)
        entry = status_of(decided)["jobs"][0]
        assert entry.get("excludedClusters", []) == sorted(excluded)
        assert ("excludedUntil" in entry) == bool(excluded)


def test_a_cluster_that_was_left_for_good_stays_excluded_after_the_time_of_another() -> None:
    """A user moved it away from b: it must not return there when the time of a is over."""
    told = {"jobs": [record(0) | {"excludedClusters": ["b"]}, record(1)]}
    objects_ = copy.deepcopy(NO_PODS)
    eleven, clusters = timedelta(seconds=11), (A, B, C)
    late = refused(look(*objects_, at=eleven, clusters=clusters, status=told))
    status = status_of(plan(late))
    entry = status["jobs"][0]
    assert (entry["excludedClusters"], entry["excludedForGood"]) == (["b", "a"], ["b"])
    assert "excludedForGood" not in status["jobs"][1]
    until = timestamp(entry["excludedUntil"])
    status.pop("gang")
    over = look(at=until - NOW, clusters=clusters, status=copy.deepcopy(status))
    first, second = status_of(plan(over))["jobs"]
    assert first["excludedClusters"] == ["b"]
    assert not {"excludedUntil", "excludedForGood"} & first.keys()
    assert "excludedClusters" not in second


def test_without_the_events_the_lack_of_pods_names_the_two_causes_and_the_next_command() -> None:
    early, late = (look(*NO_PODS, at=timedelta(seconds=at)) for at in (5, 11))
    assert plan(early).requeue_after == timedelta(seconds=5)
    assert status_of(plan(early))["jobs"][0]["message"] == "0 of 8 pods run"
    assert status_of(plan(late))["jobs"][0]["message"] == (
        "0 of 8 pods run: a has created none: Volcano there waits for room in its queue, or the"
        " cluster refuses the pods; see kubectl hyperjob why hj"
    )


def test_while_no_cluster_takes_the_pods_the_message_says_why() -> None:
    decided = plan(refused(look(*NO_PODS, at=timedelta(seconds=11))))
    gone = refused(look(at=timedelta(seconds=12), status=status_of(decided)))
    state = status_of(plan(gone))["state"]
    assert state["reason"] == "GangBackOff"
    assert state["message"].endswith(f"without a: cluster a refuses its pods: {QUOTA}")


def test_a_refused_gang_never_waits_longer_than_the_first_wait_of_another() -> None:
    seen = look(*member(0), *member(1))
    usual, late = next_try(seen, 1, False), next_try(seen, 40, True)
    assert late.retry_time - seen.now <= (usual.retry_time - seen.now) * 2


STRUCT = (
    "(combined from similar events): Error creating pods: [failed to create pod p-0, err: "
    '&errors.StatusError{ErrStatus:v1.Status{ListMeta:v1.ListMeta{Continue:""}, Status:"Failure", '
    'Message:"pods \\"p-0\\" is forbidden: exceeded quota: team", Reason:"Forbidden", Code:403}} '
    'failed to create pod p-1, err: &errors.StatusError{Message:"another"}]'
)


@pytest.mark.parametrize(
    ("message", "words"),
    [(STRUCT, 'pods "p-0" is forbidden: exceeded quota: team'), ("no struct", "no struct")],
)
def test_a_refusal_has_only_the_message_of_the_api_server_of_the_member(
    message: str, words: str
) -> None:
    raw = {
        "metadata": {"namespace": "n", "name": "e"},
        "reason": "FailedCreate",
        "message": message,
        "involvedObject": {"kind": "Job", "namespace": "n", "name": "hj-trainer-0"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
    }
    fact = refusal_fact(raw)
    assert fact.refused.message == words


def test_a_claim_that_volcano_waits_for_is_named() -> None:
    raw = {
        "metadata": {"namespace": "n", "name": "e"},
        "reason": "PVCError",
        "message": "Failed to create PVC, err: pvc saves is not found, the job will be Pending",
        "involvedObject": {"kind": "Job", "namespace": "n", "name": "hj-trainer-0"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
    }
    fact = refusal_fact(raw)
    text = "PersistentVolumeClaim saves of its volumes does not exist on a"
    assert refused_text("a", fact.refused.message) == text


@pytest.mark.parametrize("phase", ["Terminated", "Failed", "Aborted"])
def test_a_vcjob_that_ended_since_its_pods_were_refused_is_no_failure(phase: str) -> None:
    both = [each for i in (0, 1) for each in member(i, phase=phase, pods={})]
    ended = look(*both, at=timedelta(minutes=3))
    status = plan(ended).status
    known_by_its_end = phase == "Terminated"
    assert (status["state"]["phase"] == "Failed") != known_by_its_end, "without the Event"
    status = plan(refused(ended)).status
    assert status["state"]["phase"] != "Failed"
    assert status["jobs"][0]["excludedClusters"] == ["a"]


def test_without_the_events_a_vcjob_that_volcano_ended_without_any_pod_tries_elsewhere() -> None:
    both = [each for i in (0, 1) for each in member(i, phase="Terminated", pods={})]
    status = plan(look(*both, at=timedelta(minutes=3))).status
    first = status["jobs"][0]
    assert (first["phase"], first["excludedClusters"]) == ("Unplaced", ["a"])
    assert first["message"].endswith(
        "Volcano on a ended its vcjob before a pod ran; its Events there say why"
    )
    assert status["restarts"] == 0


RAN: Mapping[str, Mapping[str, int]] = {
    "a pod failed": {"failed": 1},
    "a pod succeeded": {"succeeded": 1},
    "a pod stops": {"terminating": 1},
}


@pytest.mark.parametrize("case", RAN)
def test_without_the_events_a_vcjob_that_had_pods_has_failed(case: str) -> None:
    both = [each for i in (0, 1) for each in member(i, phase="Terminated", pods=RAN[case])]
    status = plan(look(*both, at=timedelta(minutes=3))).status
    assert status["state"]["phase"] == "Failed"


OLD: Mapping[str, tuple[Mapping[str, int], timedelta]] = {
    "all pods exist since": (WAITS, timedelta(seconds=1)),
    "an earlier attempt was refused": ({}, timedelta(seconds=-30)),
    "a pod has run": ({"running": 1}, timedelta(seconds=1)),
}


@pytest.mark.parametrize("case", OLD)
def test_a_refusal_that_is_over_counts_no_more(case: str) -> None:
    pods, first = OLD[case]
    seen = refused(look(*member(0, pods=pods), *member(1), at=timedelta(minutes=1)), first=first)
    status = plan(seen).status
    assert status["jobs"][0]["reason"] == "PodsPending"
    assert "excludedClusters" not in status["jobs"][0]


class Refusing(World):
    """A world whose members refuse all pods: Volcano ends each vcjob, and no pod ever is."""

    events: bool = False

    def observe(self, name: str) -> Observed:
        seen = super().observe(name)
        if not self.events:
            return seen
        refused = PodsRefused("exceeded quota: q", NOW, NOW)
        return replace(seen, pods_refused=dict.fromkeys(seen.jobs, refused))

    def report(self, phase: str) -> None:
        for raw in self.jobs.values():
            raw["status"] = {"state": {"phase": phase}}
        for key, bound in self.bindings.items():
            raw = self.jobs[key.removesuffix("-job")]
            if not bound["spec"].get("clusters") or "status" not in raw:
                continue
            item = {
                "clusterName": bound["spec"]["clusters"][0]["name"],
                "applied": True,
                "status": raw["status"],
            }
            applied = {"type": "FullyApplied", "status": "True"}
            applied["lastTransitionTime"] = rfc3339(self.now)
            bound["status"] = {"aggregatedStatus": [item], "conditions": [applied]}


RULES = [
    None,
    {"maxRestarts": 0},
    {"maxRestarts": 2, "rules": [{"action": "RestartHyperJob"}]},
    {"maxRestarts": 2, "rules": [{"action": "FailHyperJob"}]},
]


@given(
    phases=st.lists(
        st.sampled_from(["Pending", "Terminating", "Terminated"]), min_size=1, max_size=12
    ),
    rules=st.sampled_from(RULES),
    events=st.booleans(),
    replicas=st.integers(1, 3),
)
def test_a_history_without_a_pod_that_ran_never_ends_in_failed_and_spends_no_restart(
    phases: list[str], rules: Object | None, events: bool, replicas: int
) -> None:
    spec = {"failurePolicy": rules} if rules is not None else {}
    world = Refusing(clusters={"a": cluster("a", gpus="64"), "b": cluster("b", gpus="64")})
    world.events = events
    world.hyperjobs["hj"] = hyperjob(group(replicas=replicas), **spec)
    for phase in phases:
        for _ in range(4):  # created, bound, and what was recorded is done
            world.reconcile("hj")
            world.karmada()
        world.report(phase)
        world.reconcile("hj")
        world.now += timedelta(minutes=10)
    found = world.hyperjobs["hj"]["status"]
    assert not found.get("restarts")
    told = {c["type"] for c in found.get("conditions") or () if c["status"] == "True"}
    assert not told & {"Failed", "Completed", "Running", "Degraded"}
    assert found["state"]["phase"] not in ("Failed", "Completed", "Running", "Degraded")
