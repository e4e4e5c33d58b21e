"""Alternatives whose number of sub-jobs is open: which one starts, and with how many."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob.client.summary import read
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Checkpoint, Cluster, Observed
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.plan import plan
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.state import update
from hyperjob_queueing.verdict import verdict_of
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    policy,
    vcjob_status,
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
        assert done.status is not None
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
            {
                "name": each,
                "replicatedJob": "trainer",
                "index": index,
                "phase": "Running",
                "cluster": of[own[index]] if own else where,
                "admitted": True,
                "lastTransitionTime": rfc3339(NOW - timedelta(hours=1)),
                **({"alternative": own[index]} if own else {}),
            }
            for index, each in enumerate(NAMES[:number])
        ],
    }


def training(status: Object, clusters: tuple[Cluster, ...], **spec: Any) -> Observed:
    objects = []
    for each in status["jobs"]:
        name, where = each["name"], each["cluster"]
        pods = {"running": ON[where]}
        objects += [
            job(name, phase="Running", gpus=ON[where], pods=pods),
            policy(name, cluster=where),
            binding(name, cluster=where, status=vcjob_status("Running", pods)),
        ]
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
        assert done.status is not None
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
    assert verdict is not None
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
