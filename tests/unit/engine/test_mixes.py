"""Sub-jobs of a quorum side by side, each with an alternative of its own."""

from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from hyperjob_core.api.limits import MAX_COMBINATIONS
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Cluster, Observed
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import CreateChild, DeleteChild
from hyperjob_engine.model.subjobs import Choice, choice_text, choices
from hyperjob_engine.plan import plan
from hyperjob_engine.status.transitions import status_events
from hyperjob_queueing.read import unit_of
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    policy,
    vcjob_status,
)
from tests.unit.queueing.queueworld import decided, one_queue

NAMES = [f"hj-trainer-{index}" for index in range(3)]
KEY = "default/hj"


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
    assert [each.name for each in whole.actions if isinstance(each, CreateChild)] == NAMES


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


def training(status: Object, clusters: tuple[Cluster, ...]) -> Observed:
    objects = []
    for name in NAMES[:2]:
        report = vcjob_status("Running", {"running": 16})
        objects += [
            job(name, phase="Running", gpus=16, pods={"running": 16}),
            policy(name, cluster="fast"),
            binding(name, cluster="fast", status=report),
        ]
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
        done = plan(decided(state, training(status, clusters)))
        assert not any(isinstance(each, DeleteChild) for each in done.actions)
        assert done.status is not None
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
    queued = unit_of(training(status, (cluster("fast", 48), cluster("slow", 8))))
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
