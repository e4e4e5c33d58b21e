"""Alternatives with bounds, and of each sub-job of a quorum: which start, and with how many."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from hyperjob.client.summary import read
from hyperjob_core.api.limits import MAX_COMBINATIONS
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Checkpoint, Cluster, Observed
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import CreateChild, DeleteChild
from hyperjob_engine.model.subjobs import Choice, choice_text, choices
from hyperjob_engine.plan import plan
from hyperjob_engine.status.transitions import status_events
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.sizes import remaining
from hyperjob_queueing.state import update
from hyperjob_queueing.verdict import verdict_of
from tests.unit.engine.builders import (
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
)
from tests.unit.queueing.queueworld import decided, one_queue

KEY = "default/hj"
NAMES = [f"hj-trainer-{index}" for index in range(4)]
ON = {"fast": 16, "slow": 8}


def elastic(status: Object | None = None, *, quorum: int | None = None) -> Object:
    """Make 1 to 2 sub-jobs of 16 GPUs on `fast`, or 2 to 4 of 8 on `slow`; with a quorum 1 to 3."""
    slow: Object = {
        "name": "a100",
        "clusterNames": ["slow"],
        "templateSpec": {"tasks": [{"name": "worker", "replicas": 8}]},
    }
    if quorum is None:
        slow |= {"minReplicas": 2, "replicas": 4}
    made = group(
        replicas=3 if quorum else 2,
        minReplicas=1,
        gpus=16,
        clusterNames=["fast"],
        clusterPolicy="Required",
        alternatives=[{"name": "h100"}, slow],
    )
    return hyperjob(made, status=status, **({} if quorum is None else {"quorum": quorum}))


def room(fast: int, slow: int) -> tuple[Cluster, ...]:
    return cluster("fast", fast, total=64), cluster("slow", slow, total=64)


def start(clusters: tuple[Cluster, ...], **spec: Any) -> tuple[Object, dict[str, str]]:
    """Let a new HyperJob start; return its status, and the cluster of each vcjob."""
    known, status = one_queue(), {}
    for _ in range(2):
        done = plan(decided(known, observed(elastic(status, **spec), clusters=clusters)))
        status = done.status
    made = [each for each in done.actions if isinstance(each, CreateChild)]
    for each in made:
        assert each.job["spec"]["tasks"][0]["replicas"] == ON[each.cluster]
    return status, {each.name: each.cluster for each in made}


@pytest.mark.parametrize(
    ("fast", "slow", "name", "expected"),
    [
        pytest.param(32, 64, "2 h100", "fast fast", id="all of the first"),
        pytest.param(16, 64, "1 h100", "fast", id="fewer of the first come before the second"),
        pytest.param(15, 64, "4 a100", "slow slow slow slow", id="all of the second"),
        pytest.param(0, 24, "3 a100", "slow slow slow", id="some of the second"),
        pytest.param(0, 8, "1 h100", "", id="none has room for its fewest"),
    ],
)
def test_the_first_alternative_with_room_for_its_fewest_starts_with_the_most(
    fast: int, slow: int, name: str, expected: str
) -> None:
    status, made = start(room(fast, slow))
    assert [each["name"] for each in status["alternatives"]] == [name]
    assert " ".join(made.values()) == expected


@pytest.mark.parametrize(
    ("fast", "slow", "expected"),
    [
        pytest.param(48, 0, "fast fast fast", id="the most of the first"),
        pytest.param(16, 16, "fast slow slow", id="all of them, of both"),
        pytest.param(16, 8, "fast slow", id="fewer of both"),
        pytest.param(0, 8, "slow", id="one of the second"),
        pytest.param(8, 0, "", id="none has room"),
    ],
)
def test_with_a_quorum_the_most_sub_jobs_start_each_with_an_alternative(
    fast: int, slow: int, expected: str
) -> None:
    status, made = start(room(fast, slow), quorum=1)
    assert " ".join(made.values()) == expected
    names = {"fast": "h100", "slow": "a100"}
    alternatives = [each["alternative"] for each in status["jobs"]]
    assert alternatives == ([names[each] for each in made.values()] or ["h100"])


def runs(number: int, name: str, where: str, *own: str) -> Object:
    """Make the status of sub-jobs that run on one cluster, or on those of their alternatives."""
    of = {"h100": "fast", "a100": "slow"}
    return {
        "alternatives": [{"replicatedJob": "trainer", "name": name}],
        "state": {"phase": "Running"},
        "jobs": [
            job_status(
                index,
                phase="Running",
                cluster=of[own[index]] if own else where,
                admitted=True,
                lastTransitionTime=rfc3339(NOW - timedelta(hours=1)),
                **({"alternative": own[index]} if own else {}),
            )
            for index in range(number)
        ],
    }


def training(status: Object, clusters: tuple[Cluster, ...], **spec: Any) -> Observed:
    objects = []
    for each in status["jobs"]:
        where = each["cluster"]
        objects += child(each["name"], "Running", on=where, gpus=ON[where])
    return observed(elastic(status, **spec), *objects, clusters=clusters)


def test_while_it_runs_its_sizes_are_those_of_its_alternative() -> None:
    queued = unit_of(training(runs(3, "3 a100", "slow"), room(64, 64)))
    assert [dict(size)["trainer"] for size, _ in queued.spare] == ["2 a100"]
    assert queued.variants == ()
    seen = training(runs(2, "2 a100", "slow"), room(64, 64))
    saves = replace(seen.hyperjob, checkpoint=Checkpoint(directory="d", interval_seconds=60))
    grows = unit_of(replace(seen, hyperjob=saves))
    assert [dict(each.size)["trainer"] for each in grows.more] == ["4 a100", "3 a100"]


@pytest.mark.parametrize(
    ("fast", "slow", "expected"),
    [
        pytest.param(16, 16, "h100", id="the first has room"),
        pytest.param(0, 16, "a100", id="the second has room"),
        pytest.param(0, 0, "", id="none has room"),
    ],
)
def test_with_a_quorum_it_grows_by_sub_jobs_of_the_first_alternative_with_room(
    fast: int, slow: int, expected: str
) -> None:
    status, known = runs(2, "1 h100 + 1 a100", "", "h100", "a100"), one_queue()
    clusters = room(fast, slow)
    for _ in range(3):
        done = plan(decided(known, training(status, clusters, quorum=1)))
        made = [each for each in done.actions if isinstance(each, CreateChild)]
        if made:
            break
        status = done.status | {"jobs": [e for e in done.status["jobs"] if e.get("cluster")]}
        if len(done.status["jobs"]) > 2:
            third = done.status["jobs"][2]
            assert (third["alternative"], third["admitted"]) == (expected, True)
            assert done.status["alternatives"][0]["reason"] == "Grew"
            return
    assert not expected


def test_with_a_quorum_it_makes_way_with_a_part_and_the_others_keep_their_alternatives() -> None:
    status = runs(3, "2 h100 + 1 a100", "", "h100", "h100", "a100")
    seen = training(status, room(0, 0), quorum=1)
    queued = unit_of(seen)
    (first, freed), *_ = queued.spare
    assert [*freed] == [NAMES[2]]
    verdict = decided(one_queue(), seen).verdict
    verdict = replace(verdict, reclaimed_for="default/other", shrinks_to=first)
    done = plan(replace(seen, verdict=verdict))
    assert [each["name"] for each in done.status["alternatives"]] == ["2 h100"]
    assert [each["alternative"] for each in done.status["jobs"]] == ["h100", "h100"]


@pytest.mark.parametrize(
    ("usable", "slow", "name", "admitted"),
    [
        pytest.param(32, 64, "1 h100", True, id="fewer of its alternative have room"),
        pytest.param(8, 64, "2 h100", False, id="the queue chooses again"),
    ],
)
def test_after_a_loss_its_own_sizes_come_before_another_alternative(
    usable: int, slow: int, name: str, admitted: bool
) -> None:
    status = runs(2, "2 h100", "fast")
    for each in status["jobs"]:
        each |= {"phase": "Unplaced", "cluster": "", "attempt": 1}
    clusters = cluster("fast", min(usable, 16), total=min(usable, 16)), cluster("slow", slow)
    seen = observed(elastic(status), clusters=clusters)
    known = one_queue()
    update(known, KEY, unit_of(seen), now=NOW)
    done = plan(replace(seen, verdict=verdict_of(known, KEY)))
    assert [each["name"] for each in done.status["alternatives"]] == [name]
    assert {each.get("admitted", False) for each in done.status["jobs"]} == {admitted}
    if not admitted:
        after = decided(one_queue(), observed(elastic(done.status), clusters=clusters))
        assert [each.alternative for each in after.hyperjob.replicated_jobs] == ["4 a100"]


@pytest.mark.parametrize(
    ("status", "quorum", "text"),
    [
        pytest.param("1 h100", None, "takes 1 of 2 sub-jobs, 1 to 2: 1 h100", id="the first"),
        pytest.param("3 a100", None, "takes 3 of 4 sub-jobs, 2 to 4: 3 a100", id="the second"),
        pytest.param(
            "2 h100 + 1 a100", 1, "takes 3 of 3 sub-jobs, 1 to 3: 2 h100 + 1 a100", id="of both"
        ),
    ],
)
def test_views_have_the_bounds_of_the_alternative(
    status: str, quorum: int | None, text: str
) -> None:
    taken = {"alternatives": [{"replicatedJob": "trainer", "name": status}]}
    (found,) = read(elastic(taken, quorum=quorum)).groups
    assert found.size_text == text


def test_fewer_sub_jobs_than_were_measured_run_longer_in_proportion() -> None:
    speed = {"alternatives": "trainer=2 h100", "stepsPerSecond": "0.5"}
    taken = [{"replicatedJob": "trainer", "name": "1 h100"}]
    status = {"alternatives": taken, "speeds": [speed], "training": {"step": 0, "steps": 1800}}
    assert remaining(parse_hyperjob(elastic(status))) == timedelta(hours=2)


def mixed(status: Object | None = None, **spec: object) -> Object:
    """Make three sub-jobs with a quorum: each 16 GPUs on `fast`, or 8 on `slow` clusters."""
    alternatives = [
        {"name": "h100"},
        {
            "name": "a100",
            "clusterNames": ["slow", "slower"],
            "templateSpec": {"tasks": [{"name": "worker", "replicas": 8}]},
        },
    ]
    made = group(
        replicas=3,
        gpus=16,
        clusterNames=["fast"],
        clusterPolicy="Required",
        alternatives=alternatives,
    )
    return hyperjob(made, status=status, **{"quorum": 1, **spec})


def has(status: Object) -> list[str]:
    return [each.get("alternative", "") for each in status["jobs"]]


@pytest.mark.parametrize(
    ("fast", "slow", "minimum", "expected", "text"),
    [
        pytest.param(48, 8, 3, "fast fast fast", "3 h100", id="all have the first"),
        pytest.param(32, 8, 3, "fast fast slow", "2 h100 + 1 a100", id="one has the second"),
        pytest.param(16, 16, 3, "fast slow slow", "2 a100 + 1 h100", id="two have the second"),
        pytest.param(0, 24, 3, "slow slow slow", "3 a100", id="all have the second"),
        pytest.param(16, 8, 3, "", "3 h100", id="no mix has room for all that start together"),
        pytest.param(16, 8, 2, "fast slow", "2 h100 + 1 a100", id="two start, and one waits"),
        pytest.param(
            32, 8, 2, "fast fast slow", "2 h100 + 1 a100", id="the third takes what is left"
        ),
    ],
)
def test_each_sub_job_takes_the_first_alternative_that_has_room(
    fast: int, slow: int, minimum: int, expected: str, text: str
) -> None:
    clusters = (cluster("fast", fast, total=48), cluster("slow", slow, total=24))
    state = one_queue()
    seen = decided(state, observed(mixed(minAvailable=minimum), clusters=clusters))
    first = plan(seen)
    assert (first.actions, first.requeue_after) == ((), timedelta()) or not expected
    assert [each["name"] for each in first.status["alternatives"]] == [text]
    again = observed(mixed(first.status, minAvailable=minimum), clusters=clusters)
    second = plan(decided(state, again))
    made = [each for each in second.actions if isinstance(each, CreateChild)]
    assert " ".join(each.cluster for each in made) == expected
    for each in made:
        pods = each.job["spec"]["tasks"][0]["replicas"]
        assert pods == (16 if each.cluster == "fast" else 8)
        assert has(first.status)[int(each.name[-1])] == ("h100" if pods == 16 else "a100")


def test_no_sub_job_is_created_before_the_status_has_the_alternative_of_each() -> None:
    clusters = (cluster("fast", 48),)
    status = plan(decided(one_queue(), observed(mixed(), clusters=clusters))).status
    del status["jobs"][2]["alternative"]
    lacking = plan(decided(one_queue(), observed(mixed(status), clusters=clusters)))
    assert lacking.actions == ()
    assert all(has(lacking.status))
    whole = plan(decided(one_queue(), observed(mixed(lacking.status), clusters=clusters)))
    assert [each.name for each in whole.actions if isinstance(each, CreateChild)] == NAMES[:3]


def lost(*, minutes: float = 0) -> Object:
    """Make a status in which two sub-jobs train, and the third is to start again."""
    records = [
        job_status(
            index,
            cluster="" if index == 2 else "fast",
            phase="Unplaced" if index == 2 else "Running",
            alternative="h100",
            admitted=True,
            attempt=int(index == 2),
            lastTransitionTime=rfc3339(NOW - timedelta(minutes=minutes)),
        )
        for index in range(3)
    ]
    taken = {"replicatedJob": "trainer", "name": "3 h100", "reason": "FirstWithRoom"}
    state = {"phase": "Degraded", "reason": "QuorumMet"}
    return {"jobs": records, "alternatives": [taken], "state": state}


def two_train(status: Object, clusters: tuple[Cluster, ...]) -> Observed:
    objects = [each for n in range(2) for each in child(n, "Running", on="fast", gpus=16)]
    return observed(mixed(status), *objects, clusters=clusters)


@pytest.mark.parametrize(
    ("fast", "minutes", "expected"),
    [
        pytest.param(cluster("fast", 16, total=48), 9, "fast", id="its alternative has room"),
        pytest.param(cluster("fast", 0, total=48), 0, "", id="others may leave it"),
        pytest.param(cluster("fast", 0, total=48), 2, "slow", id="it had no room for a minute"),
        pytest.param(cluster("fast", 0, total=8), 0, "slow", id="no cluster can hold it"),
    ],
)
def test_a_lost_sub_job_takes_another_alternative_while_the_others_train(
    fast: Cluster, minutes: float, expected: str
) -> None:
    clusters, state, status, made = (
        (fast, cluster("slow", 8)),
        one_queue(),
        lost(minutes=minutes),
        {},
    )
    for _ in range(4):
        done = plan(decided(state, two_train(status, clusters)))
        assert not any(isinstance(each, DeleteChild) for each in done.actions)
        events = [each.note for each in status_events(status, done.status)]
        status = done.status
        made |= {each.name: each.cluster for each in done.actions if isinstance(each, CreateChild)}
        if has(status)[2] == "a100" and not made:
            assert any("trainer goes from 3 h100 to 2 h100 + 1 a100" in each for each in events)
    assert made == ({NAMES[2]: expected} if expected else {})
    assert has(status) == ["h100", "h100", "a100" if expected == "slow" else "h100"]
    assert [each["admitted"] for each in status["jobs"]] == [True] * 3


def test_what_holds_a_share_keeps_its_alternative() -> None:
    status = lost()
    status["jobs"][2]["admitted"] = False
    queued = unit_of(two_train(status, (cluster("fast", 48), cluster("slow", 8))))
    own = [dict(each.choice) for each in queued.variants]
    assert [[each[f"trainer/{index}"] for index in range(3)] for each in own] == [
        ["h100", "h100", "h100"],
        ["h100", "h100", "a100"],
    ]
    assert {each.remaining for each in queued.variants} == {None}, "room decides, and the order"


@pytest.mark.parametrize(("number", "names"), [(15, 2), (16, 2), (64, 2), (4, 3), (40, 3), (9, 8)])
def test_of_many_mixes_those_in_equal_steps_are_tried(number: int, names: int) -> None:
    raw = mixed()
    raw["spec"]["replicatedJobs"][0] |= {
        "replicas": number,
        "alternatives": [{"name": f"a{at}"} for at in range(names)],
    }
    found = choices(parse_hyperjob(raw), lambda _: range(number))
    mixes = [Counter(name for _, name in each) for each in found]
    assert names <= len(found) <= MAX_COMBINATIONS
    assert [each["a0"] for each in mixes] == sorted((e["a0"] for e in mixes), reverse=True)
    assert {each.total() for each in mixes} == {number}
    assert all({f"a{at}": number} in mixes for at in range(names)), "all may have the same one"
    shares = {name: sorted({each[name] for each in mixes}) for name in mixes[0]}
    gaps = {after - before for each in shares.values() for before, after in pairwise(each)}
    assert max(gaps) - min(gaps) <= 1


def test_a_choice_of_sub_jobs_is_written_as_numbers() -> None:
    choice: Choice = (("a", "x"), ("t/0", "h100"), ("t/1", "a100"), ("t/4", "a100"))
    assert choice_text(choice) == "a=x,t=2 a100 + 1 h100"
