"""The claims that one leader leaves for the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hyperjob_controller.admission.handover import Handover
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.queueing.claims import Claims, from_text, to_text
from hyperjob_engine.queueing.state import QueueState, Settings, new_state
from hyperjob_engine.resources import Resources
from tests.unit.engine.builders import GPU, NOW
from tests.unit.engine.queueworld import LAG

SECOND = timedelta(seconds=1)


def gpus(number: int) -> Resources:
    return {GPU: number * NANO}


OLD = Claims(NOW - timedelta(minutes=1), {"a": gpus(8)})


@dataclass
class Sums:
    """What sub-jobs hold of the clusters, and what is left of the old claims."""

    present: dict[str, Resources] = field(default_factory=lambda: {"a": gpus(2)})
    left: dict[str, Resources] = field(default_factory=lambda: {"a": gpus(6)})
    asked: list[Claims] = field(default_factory=list)

    def claims(self, *, now: datetime) -> Claims:
        return Claims(now, self.present)

    def unclaimed(self, claims: Claims) -> Mapping[str, Resources]:
        self.asked.append(claims)
        return self.left


class Leader:
    """A leader whose clock a test sets."""

    def __init__(self) -> None:
        self.now = NOW
        self.sums = Sums()
        self.handover = Handover(self.sums, now=lambda: self.now)

    def primed(self) -> QueueState:
        state = new_state(Settings(lag=LAG))
        self.handover.prime(state)
        return state

    def recorded(self) -> Claims | None:
        return from_text(self.handover.record(new_state(Settings(lag=LAG))))


def test_a_process_that_does_not_follow_the_clusters_passes_the_old_claims_on() -> None:
    leader = Leader()
    assert leader.recorded() is None
    leader.handover.restore(to_text(OLD))
    assert leader.recorded() == OLD
    state = leader.primed()
    assert (state.began, state.unclaimed) == (None, None)
    assert leader.sums.asked == []
    assert leader.recorded() == OLD


def test_a_leader_that_has_not_read_the_old_claims_yet_passes_them_on() -> None:
    leader = Leader()
    leader.handover.follow(NOW)
    leader.handover.restore(to_text(OLD))
    leader.now += 2 * LAG
    assert leader.recorded() == OLD


def test_the_old_claims_are_compared_once_and_known_to_each_new_state() -> None:
    leader = Leader()
    leader.handover.restore(to_text(OLD))
    leader.handover.follow(NOW)
    for _ in range(2):
        state = leader.primed()
        assert (state.began, state.unclaimed) == (NOW, {"a": gpus(6)})
    assert leader.sums.asked == [OLD]


def test_a_leader_adds_what_is_left_of_the_old_claims_until_summaries_are_newer() -> None:
    leader = Leader()
    leader.handover.restore(to_text(OLD))
    leader.handover.follow(NOW)
    leader.primed()
    leader.now += LAG - SECOND
    assert leader.recorded() == Claims(leader.now, {"a": gpus(8)})
    leader.now += SECOND
    assert leader.recorded() == Claims(leader.now, {"a": gpus(2)})


def test_a_leader_without_old_claims_knows_its_own_when_summaries_are_newer() -> None:
    leader = Leader()
    leader.handover.follow(NOW)
    leader.handover.follow(NOW + LAG)  # it goes on to follow
    assert leader.primed().began == NOW
    leader.now += LAG - SECOND
    assert leader.recorded() is None
    leader.now += SECOND
    assert leader.recorded() == Claims(leader.now, {"a": gpus(2)})


def test_claims_of_an_unknown_form_count_as_none() -> None:
    leader = Leader()
    leader.handover.restore("{}")
    leader.handover.follow(NOW)
    assert leader.primed().unclaimed is None
    assert leader.recorded() is None
