import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.model.observed import SplitAnswer
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import SplitQuestion
from hyperjob_engine.model.request import PlacementRequest, kind_of
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import Wish, share
from hyperjob_engine.plan import plan
from hyperjob_engine.resources import parse_resources
from hyperjob_engine.splitting import AnswerError, question, read_answer, usable
from tests.support.splitters import answer
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    cluster,
    group,
    hyperjob,
    observed,
    task,
    template,
)

HJ = parse_hyperjob(hyperjob())
A, B = cluster("a", 100), cluster("b", 60)


def wish(accelerators: int = 128, per_pod: int = 8, fixed: int = 0, **like: Any) -> Wish:
    pod = parse_resources({GPU: str(per_pod), "cpu": "1500m", "memory": "2Gi", "pods": "1"})
    other = parse_resources({GPU: str(fixed), "pods": "1"})
    pods = ((kind_of(other), 1),)
    return Wish(
        like=PlacementRequest(name="", group="trainer", demand=other, pods=pods, **like),
        accelerators=accelerators,
        kind=GPU,
        fixed=fixed,
        per_pod=per_pod,
        pod=kind_of(pod),
    )


def asked(what: Wish, *clusters, max_domains: int | None = None) -> SplitQuestion:
    return question(HJ, what, Room(clusters), max_domains=max_domains)


def test_a_question_has_all_that_the_built_in_splitter_goes_by() -> None:
    body = json.loads(asked(wish(preferred=("b",)), A, B, max_domains=2).body)
    assert body == {
        "apiVersion": "splitter.training.volcano.sh/v1alpha1",
        "kind": "SplitRequest",
        "hyperJob": {"namespace": "default", "name": "hj", "uid": "hj-uid"},
        "replicatedJob": "trainer",
        "accelerators": 128,
        "acceleratorType": GPU,
        "fixedAccelerators": 0,
        "acceleratorsPerPod": 8,
        "pod": {"cpu": "1500m", "memory": "2Gi", GPU: "8", "pods": "1"},
        "otherPods": [{"number": 1, "requests": {"pods": "1"}}],
        "clusterNames": ["b"],
        "clusterPolicy": "Preferred",
        "clustersInUse": [],
        "maxDomains": 2,
        "clusters": [
            {
                "name": name,
                "provider": "",
                "region": "",
                "zone": "",
                "free": {"cpu": "1k", "memory": "1Ti", GPU: str(gpus), "pods": "1k"},
                "mostPods": pods,
            }
            for name, gpus, pods in (("a", 100, 12), ("b", 60, 7))
        ],
    }


@given(st.data())
def test_the_example_gives_only_shares_that_the_controller_can_use(data: st.DataObject) -> None:
    clusters = [cluster(name, data.draw(st.integers(0, 40))) for name in "abcd"]
    preferred = tuple(data.draw(st.permutations("abcd"))[: data.draw(st.integers(0, 2))])
    what = wish(
        data.draw(st.integers(1, 60)),
        data.draw(st.integers(1, 4)),
        data.draw(st.integers(0, 2)),
        preferred=preferred,
    )
    limit = data.draw(st.sampled_from([None, 1, 2]))
    room = Room(clusters)
    made = question(HJ, what, room, max_domains=limit)
    said = read_answer(json.dumps(answer(json.loads(made.body))).encode())
    assert bool(said.reason) == (not said.shares)
    if said.shares:
        given_ = SplitAnswer(digest="", occasion="", shares=tuple(said.shares), retry_at=NOW)
        assert isinstance(usable(given_, what, room, max_domains=limit), tuple)
    most = {each["name"]: each["mostPods"] for each in json.loads(made.body)["clusters"]}
    assert all(most[each.cluster] >= each.pods for each in share(what, room, max_domains=limit))


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ([("a", 72), ("b", 48)], "its shares are 120 accelerators, not 128"),
        ([("a", 64), ("a", 64)], "it names a twice"),
        ([("a", 68), ("b", 60)], "68 accelerators on a are no whole number of pods"),
        ([("a", 128)], "a has no room for 128 accelerators"),
        ([("x", 128)], "x has no room for 128 accelerators"),
        ([("a", 72), ("b", 56)], "it uses more clusters than maxDomains 1 allows"),
        ([("a", 0), ("b", 56)], "0 accelerators on a are no whole number of pods"),
    ],
)
def test_an_answer_is_checked(shares: list[tuple[str, int]], text: str) -> None:
    given_ = SplitAnswer(digest="", occasion="", shares=tuple(shares), retry_at=NOW)
    assert usable(given_, wish(), Room((A, B)), max_domains=1) == text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"shares": 3}',
        b'{"shares": [{}]}',
        b'{"shares": [{"cluster": "a", "accelerators": 0}]}',
        b'{"shares": [{"cluster": "a", "accelerators": true}]}',
        b'{"shares": [' + b",".join([b'{"cluster": "a", "accelerators": 1}'] * 5001) + b"]}",
        b'{"shares": [{"cluster": "' + b"a" * 254 + b'", "accelerators": 1}]}',
        b"\xff",
    ],
)
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(AnswerError):
        read_answer(body)


SPLIT = {"mode": "auto", "accelerators": 128, "acceleratorType": GPU}
AUTO = group(replicas=1, splitPolicy=SPLIT, templateSpec=template(task(replicas=4, gpus=8)))


UNREACHABLE = "it cannot be reached (no route to host)"


def seen(answers: dict[str, SplitAnswer], *, clusters=(A, B), raw: Object | None = None):
    return replace(observed(raw or hyperjob(AUTO), clusters=clusters), split_answers=answers)


def first_question() -> SplitQuestion:
    (found,) = plan(seen({})).questions
    return found


def answered(*shares: tuple[str, int], later: int = 5, **fields: object) -> SplitAnswer:
    asked_ = first_question()
    made = SplitAnswer(
        digest=asked_.digest,
        occasion=asked_.occasion,
        shares=shares,
        retry_at=NOW + timedelta(seconds=later),
    )
    return replace(made, **fields)


def told(decided) -> tuple[str, str]:
    state = decided.status["state"]
    return state["reason"], state["message"].removeprefix("hj-trainer-0 ")


def test_a_plan_asks_and_waits() -> None:
    decided = plan(seen({}))
    assert decided.actions == ()
    assert len(decided.questions) == 1
    assert told(decided) == ("WaitingForSplitter", "waits for the splitter's answer")


def test_the_splitters_shares_are_made() -> None:
    decided = plan(seen({"trainer": answered(("a", 96), ("b", 32))}))
    assert decided.questions == ()
    assert [action.cluster for action in decided.actions] == ["a", "b"]
    assert [job["accelerators"] for job in decided.status["jobs"]] == [96, 32]


def test_shares_that_still_hold_are_used_although_capacity_changed() -> None:
    decided = plan(
        seen({"trainer": answered(("a", 96), ("b", 32))}, clusters=(A, cluster("b", 40)))
    )
    assert [action.cluster for action in decided.actions] == ["a", "b"]


def test_shares_that_do_not_hold_any_more_are_asked_for_again() -> None:
    changed = (A, cluster("b", 30), cluster("c", 60))
    decided = plan(seen({"trainer": answered(("a", 96), ("b", 32))}, clusters=changed))
    assert len(decided.questions) == 1
    assert decided.actions == ()


def test_an_answer_of_no_use_is_waited_out_and_told() -> None:
    decided = plan(seen({"trainer": answered(("a", 128))}))
    assert decided.questions == ()
    assert decided.actions == ()
    assert decided.requeue_after == timedelta(seconds=5)
    assert told(decided) == (
        "WaitingForSplitter",
        (
            "the splitter's answer is unusable, and the controller asks again at"
            " 2026-01-02T03:04:10Z: a has no room for 128 accelerators"
        ),
    )


def test_it_is_asked_again_when_it_is_due() -> None:
    decided = plan(seen({"trainer": answered(trouble=UNREACHABLE, later=0)}))
    assert len(decided.questions) == 1
    assert told(decided)[1] == (
        "the controller asks the splitter again: it cannot be reached (no route to host)"
    )


def test_an_answer_to_an_earlier_spec_is_not_used() -> None:
    raw = hyperjob(AUTO, generation=2)
    decided = plan(seen({"trainer": answered(("a", 96), ("b", 32))}, raw=raw))
    assert decided.actions == ()
    assert len(decided.questions) == 1
