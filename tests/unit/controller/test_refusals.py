"""The back-off of refused objects, and the wait that HyperJobs share in an outage."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hyperjob_controller.memory import Refusals
from hyperjob_engine.model.observed import Refusal
from tests.unit.engine.builders import NOW


class Clock:
    """Refusals at a time that a test sets, in seconds after NOW."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.refusals = Refusals(now=self.now)

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def of(self, key: str = "ns/x", *, uid: str = "u", generation: int = 1) -> Refusal | None:
        return self.refusals.of(key, uid=uid, generation=generation).get("j")

    def wait(self, key: str = "ns/x", *, generation: int = 1) -> float:
        """Return the seconds from NOW to the next try."""
        found = self.of(key, generation=generation)
        return (found.retry_at - NOW).total_seconds()

    def refused(self, *, generation: int = 1) -> float:
        self.refusals.note(
            "ns/x", "j", uid="u", generation=generation, reason="Invalid", message="m"
        )
        return self.wait(generation=generation)

    def unjudged(self, key: str = "ns/x", *, at: float, took: float = 0.0, scope: str = "") -> None:
        self.seconds = at
        self.refusals.note_outage(
            key,
            "j",
            uid="u",
            generation=1,
            reason="InternalError",
            message="failed calling webhook",
            scope=scope,
            tried=self.now() - timedelta(seconds=took),
        )

    def accepted(self, key: str = "ns/x") -> Sequence[str]:
        return self.refusals.accepted(key, "j")

    def gives_back(self, key: str = "ns/x") -> float | None:
        found = self.of(key)
        if found is None or found.gives_back_at is None:
            return None
        return (found.gives_back_at - NOW).total_seconds()


def test_each_refusal_waits_longer_up_to_a_limit() -> None:
    clock = Clock()
    assert [clock.refused() for _ in range(8)] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert clock.gives_back() is None


def test_a_changed_spec_or_another_hyperjob_starts_afresh() -> None:
    clock = Clock()
    clock.refused()
    assert clock.of(generation=2) is None
    assert clock.refused(generation=2) == 5
    assert clock.of(uid="other", generation=2) is None


def test_an_acceptance_ends_a_refusal_and_so_does_the_deletion_of_the_hyperjob() -> None:
    clock = Clock()
    clock.refused()
    assert clock.accepted() == ()
    assert clock.of() is None
    assert clock.refused() == 5
    clock.refusals.forget("ns/x")
    assert clock.refused() == 5


def test_all_hyperjobs_share_the_short_wait_of_an_outage_and_one_of_them_tries_first() -> None:
    clock = Clock()
    for key in ("ns/first", "ns/second", "ns/third"):
        clock.unjudged(key, at=0)
    assert clock.wait("ns/first") == 1
    assert clock.wait("ns/second") == clock.wait("ns/third") == 2


def test_a_try_that_fails_extends_the_outage_for_all_up_to_ten_seconds() -> None:
    clock, tries = Clock(), []
    clock.unjudged("ns/probe", at=0)
    clock.unjudged("ns/other", at=0)
    for _ in range(6):
        due = clock.wait("ns/probe")
        clock.unjudged("ns/probe", at=due)
        tries.append(clock.wait("ns/probe") - due)
        assert clock.wait("ns/other") == clock.wait("ns/probe") + 1
    assert tries == [2, 4, 8, 10, 10, 10]


def test_the_others_wait_for_the_answer_to_a_slow_try() -> None:
    clock = Clock()
    clock.unjudged("ns/probe", at=10, took=10)
    clock.unjudged("ns/other", at=10, took=10)
    assert (clock.wait("ns/probe"), clock.wait("ns/other")) == (11, 22)


def test_an_outage_long_after_another_begins_with_the_shortest_wait() -> None:
    clock = Clock()
    for at in (0, 1, 3):
        clock.unjudged(at=at)
    assert clock.wait() == 7
    clock.unjudged(at=600)
    assert clock.wait() == 601
    assert clock.gives_back() == 610


def test_a_hyperjob_gives_its_room_back_ten_seconds_after_the_begin_of_an_outage() -> None:
    clock = Clock()
    for at in (0, 1, 3, 7, 15):
        clock.unjudged(at=at)
        assert clock.gives_back() == 10


def test_a_success_ends_an_outage_for_all_and_the_next_one_has_its_own_ten_seconds() -> None:
    clock = Clock()
    for at in (0, 1, 3):
        for key in ("ns/first", "ns/second"):
            clock.unjudged(key, at=at)
    clock.unjudged("full/third", at=3, scope="full")
    assert clock.refusals.is_unjudged("ns/second")
    clock.seconds = 7
    assert clock.accepted("ns/first") == ["ns/first", "ns/second"]
    assert clock.of("ns/first") is None
    assert not clock.refusals.is_unjudged("ns/second")
    assert clock.wait("full/third") == 4
    clock.unjudged("ns/second", at=8)
    assert (clock.wait("ns/second"), clock.gives_back("ns/second")) == (16, 18)


def test_the_hyperjobs_of_a_namespace_with_a_full_quota_take_turns_to_try_first() -> None:
    clock, first = Clock(), []
    for key in ("full/a", "full/b", "full/c"):
        clock.unjudged(key, at=0, scope="full")
    clock.unjudged("ns/x", at=0)
    for _ in range(4):
        waits = {key: clock.wait(key) for key in ("full/a", "full/b", "full/c")}
        first.append(min(waits, key=waits.__getitem__))
        clock.unjudged(first[-1], at=waits[first[-1]], scope="full")
    assert first == ["full/a", "full/b", "full/c", "full/a"]
    assert clock.wait("ns/x") == 1


def test_another_hyperjob_tries_first_after_the_first_one_is_deleted() -> None:
    clock = Clock()
    clock.unjudged("ns/first", at=0)
    clock.unjudged("ns/second", at=0)
    clock.refusals.forget("ns/first")
    assert clock.wait("ns/second") == 1


def test_a_sub_job_that_is_judged_after_an_outage_has_the_back_off_of_its_refusal() -> None:
    clock = Clock()
    clock.unjudged(at=0)
    assert clock.refused() == 5
    clock.refusals.forget_all()
    assert clock.of() is None


def test_an_outage_of_one_sub_job_leaves_the_wait_of_another_that_was_refused() -> None:
    clock = Clock()
    clock.refused()
    known = {"uid": "u", "generation": 1}
    clock.refusals.note_outage(
        "ns/x", "k", **known, reason="InternalError", message="m", scope="", tried=clock.now()
    )
    waits = {name: each.retry_at - NOW for name, each in clock.refusals.of("ns/x", **known).items()}
    assert waits == {"j": timedelta(seconds=5), "k": timedelta(seconds=1)}


def test_the_memory_prints_refused_sub_jobs_and_those_outages_in_which_hyperjobs_wait() -> None:
    clock = Clock()
    clock.refused()
    for key in ("full/a", "full/b"):
        clock.unjudged(key, at=0, scope="full")
    assert str(clock.refusals) == (
        "ns/x j: Invalid, again at 03:04:10;"
        " outage in namespace full: 2 HyperJobs wait, full/a tries at 03:04:06"
    )
    clock.accepted("full/a")
    clock.accepted()
    assert str(clock.refusals) == "none"


def test_deleted_hyperjobs_and_forgotten_outages_leave_nothing_behind() -> None:
    clock = Clock()
    for number in range(100):
        clock.unjudged(f"n{number}/x", at=0, scope=f"n{number}")
        clock.refusals.forget(f"n{number}/x")
    clock.unjudged("ns/x", at=600)
    clock.refusals.forget("ns/x")
    assert len(clock.refusals) <= 1
