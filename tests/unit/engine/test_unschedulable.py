"""A gang that Volcano calls Unschedulable: its words are told, and it tries elsewhere soon."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.wire import rfc3339, timestamp
from hyperjob_core.kube.resources import PODGROUPS
from hyperjob_engine.members.facts import podgroup_fact
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.model.line import Wait
from hyperjob_engine.model.members import MemberNode, NodeState, PodHeld
from hyperjob_engine.model.observed import Cluster, Limits, Observed, QueueVerdict
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import PodsTrouble, PodTrouble, TroubleKind, Unschedulable
from tests.unit.engine.builders import NOW, Object, group, hyperjob, task, template
from tests.unit.engine.test_unstarted import (
    ALL,
    WAITS,
    A,
    B,
    attempts,
    look,
    member,
    record,
    status_of,
)
from tests.unit.engine.views import held, node, seen, view

COUNTS = (
    "4/8 tasks in gang unschedulable: pod group is not ready, 8 Pending, 8 minAvailable;"
    " Pending: 4 Schedulable, 4 Unschedulable"
)
CAUSE = "hj-trainer-0-worker-4: 0/3 nodes are unavailable: 3 node(s) had no free ports"
SAID = f"{COUNTS}. Origin reason is {CAUSE}."
SECOND = timedelta(seconds=1)
TIMEOUT = timedelta(seconds=30)


def said(
    kind: str = "Unschedulable",
    at: timedelta = timedelta(),
    reason: str = "NotEnoughResources",
    words: str = SAID,
) -> Object:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": words,
        "lastTransitionTime": rfc3339(NOW + at),
    }


def podgroup(*conditions: Object, phase: str = "Inqueue", name: str = "uid-1") -> Object:
    owner = {"kind": "Job", "name": "hj-trainer-0", "controller": True}
    metadata = {"namespace": "default", "name": f"hj-trainer-0-{name}", "ownerReferences": [owner]}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": list(conditions)}}


LATER = said("Scheduled", SECOND, "tasks in gang are ready to be scheduled", "")
EARLIER = said("Scheduled", -SECOND, "tasks in gang are ready to be scheduled", "")
OUTSIDE = podgroup(phase="Pending")
OUTSIDE["metadata"]["creationTimestamp"] = rfc3339(NOW)
FACTS: dict[str, tuple[Object, str | None]] = {
    "without a condition": (podgroup(), None),
    "that Volcano does not let in": (OUTSIDE, ""),
    "for which there are no nodes": (podgroup(said()), CAUSE),
    "in words that name no pod": (podgroup(said(words=COUNTS)), COUNTS),
    "that its queue in the member keeps out": (
        podgroup(said(words=f"{COUNTS}. Origin reason is: queue resource quota insufficient")),
        "queue resource quota insufficient",
    ),
    "that lost its nodes": (podgroup(EARLIER, said()), CAUSE),
    "that got nodes later": (podgroup(said(), LATER), None),
    "that runs": (podgroup(said(), phase="Running"), None),
    "that lacks pods": (podgroup(said(reason="NotEnoughTasks")), None),
    "whose condition has no time": (podgroup(said() | {"lastTransitionTime": "soon"}), None),
}


@pytest.mark.parametrize(("raw", "words"), FACTS.values(), ids=list(FACTS))
def test_of_a_podgroup_the_words_about_missing_nodes_are_kept(
    raw: Object, words: str | None
) -> None:
    found = podgroup_fact(raw)
    assert found.job == "default/hj-trainer-0"
    assert (None if found.said is None else found.said.message) == words


def test_a_podgroup_of_no_vcjob_is_not_kept() -> None:
    raw = podgroup(said())
    raw["metadata"]["ownerReferences"][0]["kind"] = "Deployment"
    assert podgroup_fact(raw) is None


def test_words_of_a_podgroup_are_bounded() -> None:
    found = podgroup_fact(podgroup(said(words="w" * 100_000)))
    assert len(found.said.message) <= 1024


def fold_of(*raws: Object) -> MemberFold:
    fold = MemberFold()
    fold.replace(PODGROUPS, map(podgroup_fact, raws))
    return fold


def test_words_count_from_the_first_although_volcano_moves_their_time() -> None:
    fold = fold_of(podgroup(said()))
    assert fold.news().jobs == {"default/hj-trainer-0"}
    fold.put(PODGROUPS, podgroup_fact(podgroup(said(at=20 * SECOND, words="others"))))
    assert fold.unschedulable("default/hj-trainer-0") == Unschedulable("others", NOW)
    assert fold.news().jobs == {"default/hj-trainer-0"}
    fold.put(PODGROUPS, podgroup_fact(podgroup(said(at=25 * SECOND, words="others"))))
    assert not fold.news().jobs, "the same words again"


def test_words_end_with_nodes_for_the_gang_and_begin_again() -> None:
    fold = fold_of(podgroup(said()))
    fold.put(PODGROUPS, podgroup_fact(podgroup(said(), LATER)))
    assert fold.unschedulable("default/hj-trainer-0") is None
    fold.put(PODGROUPS, podgroup_fact(podgroup(LATER, said(at=9 * SECOND))))
    assert fold.unschedulable("default/hj-trainer-0") == Unschedulable(CAUSE, NOW + 9 * SECOND)


def test_the_words_about_the_last_vcjob_of_a_name_count() -> None:
    fold = fold_of(
        podgroup(said(at=9 * SECOND, words="now"), name="uid-2"),
        podgroup(said(words="before")),
    )
    assert fold.unschedulable("default/hj-trainer-0") == Unschedulable("now", NOW + 9 * SECOND)
    fold.drop(PODGROUPS, "default/hj-trainer-0-uid-2")
    assert fold.unschedulable("default/hj-trainer-0") == Unschedulable("before", NOW)
    fold.replace(PODGROUPS, ())
    assert fold.unschedulable("default/hj-trainer-0") is None


def world(*nodes: MemberNode) -> Cluster:
    return replace(seen(view(nodes)), name="a")


def waiting(
    at: timedelta = TIMEOUT,
    there: Cluster | None = None,
    *,
    words: str = CAUSE,
    pods: Mapping[str, int] = WAITS,
    **options: Any,
) -> Observed:
    """Two sub-jobs of 8 pods with a GPU each on cluster a; Volcano finds no nodes for the first."""
    clusters = (there if there is not None else world(node("n0"), node("n1")), B)
    looked = look(*member(0, pods=pods), *member(1), at=at, clusters=clusters, **options)
    return replace(
        looked,
        unschedulable={"hj-trainer-0": Unschedulable(words, NOW)},
        limits=Limits(unschedulable=TIMEOUT),
    )


def test_volcanos_words_are_the_message_of_a_sub_job_that_waits() -> None:
    entry = status_of(plan(waiting(at=SECOND)))["jobs"][0]
    assert (entry["phase"], entry["reason"]) == ("Pending", "PodsPending")
    assert entry["message"] == (
        f"Volcano on a finds no nodes for all of its pods: {CAUSE}; 0 of 8 pods run"
    )


def test_a_gang_that_waits_for_pods_which_follow_its_start_says_so() -> None:
    spec = template(task("m"), task(replicas=7, dependsOn={"name": ["m"]}))
    jobs = [record(0), record(1)]
    raw = hyperjob(group(replicas=2, templateSpec=spec), status={"jobs": jobs})
    seen = replace(waiting(at=SECOND), hyperjob=parse_hyperjob(raw))
    assert status_of(plan(seen))["jobs"][0]["message"] == (
        "its gang needs 8 pods, and Volcano makes 1 of them first: those of tasks with dependsOn"
        " follow; lower minAvailable of the vcjob; 0 of 8 pods run"
    )


def test_a_gang_leaves_with_volcanos_words_after_the_timeout() -> None:
    assert attempts(plan(waiting(at=TIMEOUT - SECOND))) == [0, 0]
    decided = plan(waiting())
    assert attempts(decided) == [1, 1]
    first, second = status_of(decided)["jobs"]
    assert first["excludedClusters"] == ["a"]
    assert not second.get("excludedClusters")
    assert status_of(decided)["restarts"] == 0
    assert any(CAUSE in event.note for event in decided.events)


ALONE: dict[str, QueueVerdict] = {
    "for its place": QueueVerdict(admitted=ALL.admitted),
    "for its turn": QueueVerdict(
        wait=Wait(queue="q", place=1, length=1, message="needs 8 nvidia.com/gpu: a is excluded")
    ),
}


@pytest.mark.parametrize("case", ALONE)
def test_a_gang_that_left_its_only_cluster_waits_and_says_first_why_it_left(case: str) -> None:
    left = status_of(plan(replace(waiting(), clusters=(world(node("n0"), node("n1")),))))
    left.pop("gang", None)
    until = timestamp(left["jobs"][0]["excludedUntil"])
    for at, told in ((until - NOW - SECOND, True), (until - NOW, False)):
        seen = look(at=at, clusters=(A,), status=copy.deepcopy(left))
        state = status_of(plan(replace(seen, verdict=ALONE[case])))
        again = f"(tried again at {until:%H:%M:%S}Z); "
        words = f"Volcano on a finds no nodes for all of its pods: {CAUSE} {again}"
        entry = state["jobs"][0]
        assert entry["message"].startswith(words) is told
        assert state["state"]["message"].startswith(words) is told
        assert ("excludedMessage" in entry) is told


def outside(at: timedelta, there: Cluster | None = None) -> Observed:
    """The first sub-job has no pod, since Volcano has not let its PodGroup in."""
    return waiting(at, there, words="", pods={})


def test_a_gang_that_volcano_does_not_let_in_is_told_and_leaves_too() -> None:
    early = status_of(plan(outside(at=9 * SECOND)))["jobs"][0]
    assert early["message"] == "0 of 8 pods run", "Volcano lets each gang in some seconds later"
    entry = status_of(plan(outside(at=10 * SECOND)))["jobs"][0]
    assert (entry["phase"], entry["reason"]) == ("Pending", "PodsPending")
    assert entry["message"].startswith(
        "Volcano on a does not let its PodGroup in: the quota of its queue there, or"
    )
    assert attempts(plan(outside(at=TIMEOUT - SECOND))) == [0, 0]
    decided = plan(outside(at=TIMEOUT))
    assert attempts(decided) == [1, 1]
    assert status_of(decided)["jobs"][0]["excludedClusters"] == ["a"]
    assert attempts(plan(outside(at=TIMEOUT, there=world(*FULL)))) == [0, 0], "others may end"


def test_the_next_look_is_at_the_timeout() -> None:
    decided = plan(waiting(at=TIMEOUT - 4 * SECOND))
    assert decided.requeue_after <= 4 * SECOND


FULL = [node(f"n{i}", 8, held("p", 8)) for i in range(2)]
STAYS: dict[str, Observed] = {
    "pods of others hold the nodes": waiting(there=world(*FULL)),
    "pods of others end on the nodes": waiting(
        there=world(*(node(f"n{i}", 8, held("p", 8, ending=True)) for i in range(2)))
    ),
    "a person has to unblock its pods": replace(
        waiting(),
        pod_troubles={
            "hj-trainer-0": PodsTrouble(
                trouble=PodTrouble(TroubleKind.BLOCKED, words="a gate is not removed"), pods=8
            )
        },
    ),
    "there is no limit": replace(waiting(), limits=Limits(unschedulable=timedelta())),
    "it is suspended": waiting(suspend=True),
    "the words are newer than the vcjob": replace(
        waiting(), unschedulable={"hj-trainer-0": Unschedulable(CAUSE, NOW + SECOND)}
    ),
    "it runs by now": replace(
        look(*member(0, "Running", {"running": 8}), *member(1), at=TIMEOUT),
        unschedulable={"hj-trainer-0": Unschedulable(CAUSE, NOW)},
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_a_gang_stays_while(case: str) -> None:
    assert attempts(plan(STAYS[case])) == [0, 0]


def own(name: str, index: int) -> PodHeld:
    return replace(held(name, job=f"hj-trainer-{index}"), namespace="default")


LEAVES: dict[str, Cluster] = {
    "no node is left": world(),
    "the nodes are cordoned": world(node("n0", state=NodeState.CORDONED)),
    "its own pods wait for nodes that have room": replace(
        seen(
            view(
                [node("n0"), node("n1")],
                *(own(f"w{i}", 0) for i in range(8)),
                *(own(f"v{i}", 1) for i in range(8)),
            )
        ),
        name="a",
    ),
    "pods of its own HyperJob hold the nodes": world(
        *(node(f"n{i}", 4, *(own(f"v{i}{j}", 1) for j in range(4))) for i in range(2))
    ),
    "the nodes are not known": replace(B, name="a"),
}


@pytest.mark.parametrize("case", LEAVES)
def test_a_gang_leaves_where(case: str) -> None:
    assert attempts(plan(waiting(there=LEAVES[case]))) == [1, 1]


def test_others_that_keep_it_from_the_nodes_are_looked_at_again() -> None:
    decided = plan(waiting(there=world(*FULL)))
    assert decided.requeue_after <= TIMEOUT
