"""What a Cluster's summary counts of sub-jobs that have just started or ended, step by step."""

from datetime import timedelta
from fractions import Fraction

import pytest

from hyperjob_core.api.quantity import NANO
from hyperjob_engine.placement.ledger import Ledger
from hyperjob_engine.resources import Resources
from tests.unit.engine.builders import GPU, NOW

LAG = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


def gpus(number: int) -> Resources:
    return {GPU: number * NANO}


class Book:
    """A ledger of cluster a, with times in seconds and GPUs as numbers."""

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.ledger = Ledger(lag=LAG, changed=self.changes.append)

    def summary(self, taken: int, at: int = 0) -> None:
        self.ledger.summarised("a", gpus(taken), now=NOW + at * SECOND)

    def hold(self, key: str, number: int, *, settled: bool = False, at: int = 0) -> None:
        self.ledger.hold(
            key, "a", gpus(number), settled=settled, pods=settled, now=NOW + at * SECOND
        )

    def end(self, key: str, *, at: int = 0, grace: int = 0, left: Fraction = Fraction(1)) -> None:
        self.ledger.end(key, now=NOW + at * SECOND, grace=grace * SECOND, left=left)

    def expire(self, at: int) -> None:
        self.ledger.expire(now=NOW + at * SECOND)

    @property
    def counted(self) -> int:
        return self.ledger.counted("a").get(GPU, 0) // NANO


def settled(**jobs: int) -> Book:
    """Open a book with sub-jobs that the summary has, as their reports say."""
    book = Book()
    book.summary(0)
    for key, number in jobs.items():
        book.hold(key, number)
    book.summary(sum(jobs.values()))
    for key, number in jobs.items():
        book.hold(key, number, settled=True)
    assert book.counted == 0
    return book


def test_a_start_is_charged_once_when_the_summary_has_it() -> None:
    book = Book()
    book.summary(0)
    book.hold("j", 8)
    assert book.counted == 0
    book.summary(8, at=5)
    assert book.counted == 8
    book.hold("j", 8, settled=True, at=6)
    assert book.counted == 0


def test_more_than_the_unsettled_sub_jobs_is_the_change_of_another_workload() -> None:
    book = settled(j=8)
    book.end("j", at=10)
    assert book.counted == 8
    book.summary(24, at=11)
    assert book.counted == 8
    book.summary(16, at=12)
    assert book.counted == 0, "a change is that of the ended sub-job as far as it explains it"


def test_the_first_summary_is_compared_with_none() -> None:
    book = Book()
    book.hold("j", 8)
    book.summary(8)
    assert book.counted == 0
    book.ledger.begin("a", gpus(4))
    book.summary(8, at=1)
    assert book.counted == 4


def test_an_end_is_credited_once_when_the_summary_lacks_it() -> None:
    book = settled(j=8, k=4)
    book.end("j", at=10)
    assert book.counted == 8
    assert book.ledger.all_ended == {"a": gpus(8)}
    assert book.ledger.ended_on("a") == ["j"]
    assert str(book.ledger) == "j on a"
    book.summary(4, at=12)
    assert book.counted == 0


def test_an_ended_sub_job_is_forgotten_after_the_longest_delay_of_a_summary() -> None:
    book = settled(j=8)
    book.end("j", at=10)
    book.changes.clear()
    book.expire(39)
    assert (book.counted, book.changes) == (8, [])
    book.expire(40)
    assert (book.counted, book.changes) == (0, ["a"])
    assert book.ledger.all_ended == {}
    assert str(book.ledger) == "none"
    book.summary(16, at=41)
    assert book.counted == 0, "nothing is unsettled any more"


def test_a_summary_of_five_seconds_after_the_end_has_no_pod_of_it() -> None:
    book = settled(j=8)
    book.end("j", at=10)
    book.summary(8, at=14)
    assert book.counted == 8
    book.summary(8, at=15)
    assert book.counted == 0


def test_an_end_that_a_summary_shows_before_its_report_is_not_credited_again() -> None:
    book = settled(j=8, k=8)
    book.summary(8, at=10)
    book.end("j", at=12)
    assert book.counted == 0
    book.end("k", at=13)
    assert book.counted == 8, "the summary has lost one of the two"


def test_what_a_summary_lost_long_ago_explains_no_end() -> None:
    book = settled(j=8)
    book.summary(8 + 8, at=1)
    book.summary(8, at=2)
    book.end("j", at=12)
    assert book.counted == 8


def test_only_the_part_of_the_pods_that_ran_is_still_counted() -> None:
    book = settled(j=8)
    book.end("j", at=10, left=Fraction(1, 4))
    assert book.counted == 2


@pytest.mark.parametrize(("grace", "ending"), [(30, 0), (31, 8)])
def test_pods_that_may_run_on_for_long_hold_their_room(grace: int, ending: int) -> None:
    book = settled(j=8)
    book.end("j", at=10, grace=grace)
    assert book.ledger.ending("a").get(GPU, 0) == ending * NANO
    book.summary(8, at=14 + grace)
    assert book.counted == 8
    book.summary(8, at=15 + grace)
    assert (book.counted, book.ledger.ending("a")) == (0, {})


def test_a_sub_job_that_no_summary_has_shown_is_not_credited_after_the_delay() -> None:
    book = Book()
    book.summary(0)
    book.hold("j", 8)
    assert book.ledger.next_change(after=NOW) == NOW + LAG
    book.expire(30)
    assert book.ledger.next_change(after=NOW) is None
    book.summary(8, at=31)
    assert book.counted == 0, "another workload has begun"


def test_a_sub_job_that_no_member_has_had_leaves_nothing() -> None:
    book = Book()
    book.summary(0)
    book.hold("j", 8)
    book.summary(8, at=1)
    assert book.counted == 8
    book.ledger.drop("j")
    assert book.counted == 0
    book.ledger.drop("j")
    book.end("j")
    assert book.ledger.all_ended == {}


def test_a_sub_job_whose_pods_start_again_is_unsettled_with_what_the_summary_has() -> None:
    book = settled(j=8)
    book.ledger.hold("j", "a", gpus(8), settled=False, pods=True, now=NOW)
    assert book.counted == 8
    book.hold("j", 8, settled=True)
    assert book.counted == 0


def test_another_cluster_counts_nothing_of_it() -> None:
    book = settled(j=8)
    book.end("j")
    assert book.ledger.counted("b") == {}
    assert book.ledger.ended_on("b") == []
    assert book.ledger.ending("b") == {}


@pytest.mark.parametrize(("reported", "counted"), [(19, 0), (20, 8)])
def test_what_a_summary_lost_explains_the_ends_of_ten_seconds(reported: int, counted: int) -> None:
    book = settled(j=8)
    book.summary(8, at=8)
    book.summary(0, at=10)
    book.summary(8, at=11)  # another workload has the room since
    book.end("j", at=reported)
    assert book.counted == counted


def test_losses_of_two_summaries_explain_two_ends() -> None:
    book = settled(j=8, k=8, other=8)
    book.summary(16, at=10)
    book.summary(8, at=12)
    book.summary(24, at=13)
    for key in ("j", "k"):
        book.end(key, at=14)
        assert book.counted == 0
    book.end("other", at=15)
    assert book.counted == 8


def test_a_sub_job_with_pods_stays_unsettled_however_old_it_is() -> None:
    book = Book()
    book.summary(0)
    book.ledger.hold("j", "a", gpus(8), settled=False, pods=True, now=NOW)
    book.expire(31)
    book.summary(8, at=32)
    assert book.counted == 8


def test_without_a_summary_nothing_is_counted() -> None:
    book = settled(j=8)
    book.end("j", at=1)
    book.ledger.summarised("a", None, now=NOW + 2 * SECOND)
    assert book.counted == 0
    book.summary(8, at=3)
    assert book.counted == 0


def test_the_same_state_again_changes_nothing() -> None:
    book = settled(j=8)
    book.changes.clear()
    book.hold("j", 8, settled=True)
    assert book.changes == []
    book.end("j", at=1)
    assert book.counted == 8


def test_a_settled_sub_job_that_grows_counts_as_before() -> None:
    book = settled(j=8, k=4)
    book.hold("j", 12, settled=True)
    book.end("k", at=1)
    assert book.counted == 4
    book.hold("j", 16, settled=True)
    assert book.counted == 4


def test_a_sub_job_that_its_nodes_have_settled_may_be_no_part_of_the_summary() -> None:
    book = Book()
    book.summary(0)
    hold = book.ledger.hold
    hold("j", "a", gpus(8), settled=True, pods=True, by_pods=True, now=NOW)
    hold("j", "a", gpus(8), settled=False, pods=True, now=NOW)
    book.ledger.begin("a", gpus(8))
    assert book.counted == 0
    book = Book()
    book.summary(8)
    hold = book.ledger.hold
    hold("j", "a", gpus(8), settled=True, pods=True, by_pods=True, now=NOW)
    hold("j", "a", gpus(8), settled=False, pods=True, now=NOW)
    assert book.counted == 0, "the nodes are no longer read"
