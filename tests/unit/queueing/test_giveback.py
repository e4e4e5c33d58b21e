"""A gang that our own queue admission let in and that cannot start makes way for others."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Limits, Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.model.planned import CreateChild, DeleteChild
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import Reason
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.verdict import is_contended
from tests.unit.engine.builders import NOW, Object, child, cluster, hyperjob, job_status, observed
from tests.unit.queueing.queueworld import queue, ran, unit, world

LIMIT = timedelta(minutes=5)
NAMES = ("hj-trainer-0", "hj-trainer-1")


def look(
    *,
    made: bool = True,
    contended: bool = True,
    gang: Object | None = None,
    admitted: bool = True,
    later: timedelta = timedelta(),
) -> Observed:
    """Look at a gang of two of which Karmada has placed the first only."""
    records = [job_status(index, admitted=admitted) for index in range(2)]
    held = {"suspended": True, "gate": "held", "suspension": {"dispatching": True}}
    objects = [*child(0, **held), *child(1, cluster="", **held)]
    seen = observed(
        hyperjob(status={"jobs": records, **({"gang": gang} if gang else {})}),
        *(objects if made else ()),
        clusters=(cluster("a", 100),),
        admission=QueueAdmission.BUILTIN,
        now=NOW + later,
    )
    verdict = QueueVerdict(admitted=frozenset(NAMES if admitted else ()))
    return replace(seen, contended=contended, limits=Limits(gang=LIMIT), verdict=verdict)


def held(seen: Observed) -> frozenset[str] | None:
    found = unit_of(seen)
    return None if found is None else found.held


OVERDUE: Object = {"admitted": 0, "attempts": 0, "incompleteSince": rfc3339(NOW - LIMIT)}
BACK_OFF: Object = {"admitted": 0, "attempts": 1, "retryTime": rfc3339(NOW + LIMIT)}


@pytest.mark.parametrize("contended", [True, False])
def test_it_gives_back_when_others_wait_in_a_queue_and_keeps_its_share_otherwise(
    contended: bool,
) -> None:
    decided = plan(look(gang=OVERDUE, contended=contended))
    assert ("retryTime" in decided.status["gang"]) is contended
    assert decided.actions == ()
    assert all(item["admitted"] for item in decided.status["jobs"])


def test_what_it_gives_back_is_deleted_first_and_only_then_its_share_is_free() -> None:
    seen = look(gang=BACK_OFF)
    decided = plan(seen)
    assert {type(action) for action in decided.actions} == {DeleteChild}
    assert held(seen) == frozenset(NAMES)
    gone = look(made=False, gang=BACK_OFF)
    assert held(gone) is None, "it neither holds nor waits"
    after = plan(replace(gone, verdict=QueueVerdict())).status
    assert not any(item.get("admitted") for item in after["jobs"])
    assert after["state"]["reason"] == Reason.GANG_BACK_OFF
    assert "waits for the next try at" in after["state"]["message"]


def test_it_queues_again_when_its_time_has_come() -> None:
    seen = look(made=False, gang=BACK_OFF, admitted=False, later=LIMIT)
    found = unit_of(seen)
    assert [part.name for part in found.parts] == list(NAMES)
    assert not found.held
    decided = plan(replace(seen, verdict=QueueVerdict(admitted=frozenset(NAMES))))
    assert {type(action) for action in decided.actions} == {CreateChild}
    assert decided.status["gang"]["attempts"] == 1
    assert "retryTime" not in decided.status["gang"]


def test_only_others_that_wait_and_will_go_make_a_queue_contended() -> None:
    made = world([unit("on", 16), unit("next", 24, age=1)], a=32)
    assert is_contended(made.state, "ns/on"), "nobody has looked at the other yet"
    made.decide()
    assert is_contended(made.state, "ns/on")
    assert not is_contended(made.state, "ns/next")
    made.end("ns/next")
    made.submit(unit("never", 64))
    made.decide()
    assert not is_contended(made.state, "ns/on"), "the other can never stand"


@pytest.mark.parametrize("rule", [{"state": "Closed"}, {"gpus": 8}])
def test_whoever_its_queue_will_not_let_in_makes_nothing_contended(rule: dict[str, Any]) -> None:
    made = ran([unit("on", 16)], queue("default"), queue("other", **rule), a=32)
    made.submit(unit("shut", 9, queue="other"))
    made.decide()
    assert not is_contended(made.state, "ns/on")
    made.submit(unit("next", 32))
    made.decide()
    assert is_contended(made.state, "ns/on")
    made.end("ns/next")
    made.set_queues(queue("default"), queue("other", gpus=9))
    made.decide()
    made.submit(unit("more", 9, queue="other", age=1))
    made.decide()
    assert is_contended(made.state, "ns/on"), "it waits for the other's share"
