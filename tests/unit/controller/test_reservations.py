from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperjob_controller.reservations import Reservations
from hyperjob_core.kube.client import EventType
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.model.request import kind_of, kinds_of
from hyperjob_engine.resources import parse_resources
from tests.unit.controller.test_pass import member
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    hyperjob,
    job,
    labels,
    owner,
    policy,
    vcjob_status,
)

LAG = timedelta(seconds=30)
KEY = "default/hj-trainer-0"


class Books:
    """A reservations over plain dicts."""

    def __init__(self) -> None:
        self.jobs: dict[str, Object] = {}
        self.policies: dict[str, Object] = {}
        self.bindings: dict[str, Object] = {}
        self.freed = 0
        self.hyperjobs: dict[str, Object] = {"default/hj": hyperjob()}
        self.reservations = Reservations(
            hyperjob=self.hyperjobs.get,
            job=self.jobs.get,
            policy=self.policies.get,
            binding=self.bindings.get,
            lag=LAG,
        )
        for name in "ab":
            self.reservations.follow(EventType.ADDED, None, member(name, 10**6))

    def on(self, name: str, now: datetime = NOW) -> Cluster:
        """Return a cluster as passes see it."""
        return {each.name: each for each in self.reservations.clusters(now=now)}[name]

    def held(self, now: datetime = NOW) -> dict[str, int]:
        return {
            cluster: demand[GPU] // 10**9
            for cluster, demand in self.reservations.reserved(now=now).items()
        }

    def update(self, now: datetime = NOW, **objects: Any) -> None:
        for store, value in objects.items():
            where = getattr(self, store)
            if value is None:
                where.pop(KEY, None)
            else:
                where[KEY] = value
        self.reservations.update(KEY, now=now)
        self.freed += len(self.reservations.take_freed())


@pytest.fixture
def books() -> Books:
    return Books()


@pytest.mark.parametrize("summarised", [timedelta(seconds=5), None])
def test_to_a_new_leader_all_that_a_summary_shows_as_used_may_have_ended(
    books: Books, summarised: timedelta | None
) -> None:
    """Until the next summary, or for its greatest age, it stops none that this may spare."""
    used = member("a", 8)
    used["status"]["resourceSummary"]["allocated"] = {GPU: "3"}
    books.reservations.follow(EventType.MODIFIED, None, used)
    assert books.on("a").doubtful[GPU] == 3 * 10**9
    assert books.on("a").free[GPU] == 5 * 10**9
    early = (summarised or LAG) - timedelta(seconds=1)
    books.reservations.summarised("a", now=NOW + timedelta(seconds=1))
    assert books.on("a", NOW + early).doubtful[GPU] == 3 * 10**9
    if summarised is not None:
        books.reservations.summarised("a", now=NOW + summarised)
    assert not any(books.on("a", NOW + (summarised or LAG)).doubtful.values())


GONE: dict[str, Object | None] = {
    "no-hyperjob": None,
    "hyperjob-of-another-uid": {"metadata": {"uid": "another"}},
    "hyperjob-that-is-deleted": hyperjob(deletionTimestamp="2026-01-02T03:04:00Z"),
}


@pytest.mark.parametrize("found", GONE.values(), ids=GONE)
def test_a_vcjob_without_a_live_hyperjob_counts_only_once_a_member_has_it(
    books: Books, found: Object | None
) -> None:
    """Labels are anybody's to give: one that asked for 10^9 GPUs took all room from everybody."""
    books.hyperjobs = {} if found is None else {"default/hj": found}
    books.reservations._hyperjob = books.hyperjobs.get
    books.update(jobs=job(gpus=8), policies=policy(suspended=True))
    assert books.held() == {}
    assert not books.reservations.counts(KEY)
    books.update(bindings=binding(cluster="a"))
    assert books.held() == {}
    books.update(bindings=binding(cluster="a", status=vcjob_status("Running")))
    assert books.held() == {"a": 8}
    assert books.reservations.counts(KEY)


@pytest.mark.parametrize(
    "bare",
    [
        pytest.param({"owners": []}, id="no-controller"),
        pytest.param({"marked": {"volcano.sh/hyperjob-name": "hj"}}, id="half-labelled"),
        pytest.param({"marked": labels(hj="other")}, id="label-of-another"),
        pytest.param({"owners": owner(uid="another")}, id="another-uid"),
    ],
)
def test_a_vcjob_that_is_no_sub_job_of_its_hyperjob_takes_no_room(
    books: Books, bare: dict[str, Any]
) -> None:
    """What a plan neither wants nor deletes would take room for ever."""
    books.update(jobs=job(gpus=8, **bare), policies=policy(suspended=True))
    assert books.held() == {}


def test_a_sub_job_that_was_moved_counts_where_it_goes_and_one_that_reports_where_it_is(
    books: Books,
) -> None:
    books.update(jobs=job(gpus=8), policies=policy(cluster="a"), bindings=binding(cluster="b"))
    assert books.held() == {"a": 8}
    books.update(bindings=binding(cluster="b", status=vcjob_status("Pending")))
    assert books.held() == {"b": 8}


def test_the_pods_of_reservations_are_counted_by_what_each_requests(books: Books) -> None:
    empty = {name: MemberView(version=1, nodes=()) for name in "ab"}
    books.reservations._views = lambda *_: empty

    def pods(now: datetime = NOW) -> dict[str, list[tuple[int, int]]]:
        found = {name: books.on(name, now).reserved_pods for name in "ab"}
        return {
            name: sorted(
                (dict(kind.request)[GPU] // 10**9, n) for kind, n in kinds_of(groups).items()
            )
            for name, groups in found.items()
            if groups
        }

    books.update(jobs=job(gpus=8), policies=policy(cluster="a"))
    assert pods() == {"a": [(1, 8)]}
    two = tuple((kind_of(parse_resources({GPU: str(each)})), 2) for each in (4, 1))
    making = CreateChild(name="x", policy=None, job=None, cluster="b", demand={}, pods=two)
    with books.reservations.assumed([making]):
        assert pods() == {"a": [(1, 8)], "b": [(1, 2), (4, 2)]}
    books.update(jobs=job(gpus=8, phase="Pending", pods={"pending": 8}))
    assert pods() == {"a": [(1, 8)]}
    assert pods(NOW + LAG) == {}, "the status has them"


def test_without_a_policy_it_counts_where_karmada_put_it(books: Books) -> None:
    books.update(jobs=job(gpus=8), bindings=binding(cluster="b"))
    assert books.held() == {"b": 8}


def test_without_a_cluster_nothing_is_reserved(books: Books) -> None:
    books.update(jobs=job(gpus=8))
    assert books.held() == {}


def test_the_reservation_ends_when_the_summary_must_show_it(books: Books) -> None:
    pending = job(gpus=8, phase="Pending", pods={"pending": 8})
    books.update(jobs=pending, policies=policy())
    assert books.held() == {"a": 8}
    assert books.reservations.changes_in(now=NOW) == LAG
    assert books.held(NOW + LAG - timedelta(seconds=1)) == {"a": 8}
    assert books.held(NOW + LAG) == {}
    assert books.reservations.changes_in(now=NOW + LAG) is None
    assert books.reservations.take_freed() == ["a"]
    assert books.held(NOW) == {}, "it has been dropped"


def test_the_next_reservation_to_end_is_found_behind_one_that_has_ended(books: Books) -> None:
    pending = {"phase": "Pending", "gpus": 8, "pods": {"pending": 8}}
    for seconds, name in enumerate(("hj-trainer-0", "hj-trainer-1", "hj-trainer-2")):
        books.jobs[f"default/{name}"] = job(name, **pending)
        books.policies[f"default/{name}"] = policy(name)
        books.reservations.update(f"default/{name}", now=NOW + timedelta(seconds=10 * seconds))
    second = timedelta(seconds=1)
    assert books.reservations.changes_in(now=NOW + LAG - second) == second
    assert books.reservations.changes_in(now=NOW + LAG + second) == 9 * second
    del books.jobs["default/hj-trainer-1"]
    books.reservations.update("default/hj-trainer-1", now=NOW + LAG)
    assert books.reservations.changes_in(now=NOW + LAG + second) == 19 * second


def test_the_reservation_ends_with_a_summary_that_changed_after_its_pods_were_there(
    books: Books,
) -> None:
    pending = job(gpus=8, phase="Pending", pods={"pending": 8})
    books.update(jobs=pending, policies=policy(cluster="a"))
    for where, seconds in (("a", 4), ("b", 6)):
        books.reservations.summarised(where, now=NOW + timedelta(seconds=seconds))
        assert books.held() == {"a": 8}
    books.reservations.summarised("a", now=NOW + timedelta(seconds=5))
    assert books.held() == {}
    assert not books.on("a").settling.get(GPU)
    assert books.reservations.take_freed() == ["a"]
    books.update(NOW + timedelta(seconds=6), jobs=job(gpus=8, phase="Running", pods={"running": 8}))
    assert books.held() == {}, "the summary goes on counting it"


def test_a_restart_of_its_pods_reserves_again(books: Books) -> None:
    books.update(jobs=job(gpus=8, phase="Pending", pods={"pending": 8}), policies=policy())
    later = NOW + timedelta(hours=1)
    assert books.held(later) == {}
    books.update(later, jobs=job(gpus=8, phase="Restarting", pods={"terminating": 3}))
    assert books.held(later) == {"a": 8}


def test_a_wiped_status_keeps_what_was_known(books: Books) -> None:
    books.update(jobs=job(gpus=8, phase="Pending", pods={"pending": 8}), policies=policy())
    later = NOW + timedelta(hours=1)
    books.update(later, jobs=job(gpus=8))
    assert books.held(later) == {}


@pytest.mark.parametrize(
    "end",
    [
        {"jobs": None},
        {"jobs": job(deleting=True)},
        {"jobs": job(phase="Completed")},
        {"bindings": binding(cluster="a", status=vcjob_status("Failed"))},
    ],
)
def test_what_ends_gives_back(books: Books, end: dict[str, Any]) -> None:
    books.update(jobs=job(gpus=8), policies=policy())
    books.update(**end)
    assert books.held() == {}
    assert books.freed == 1


def test_a_resized_job_counts_anew(books: Books) -> None:
    books.update(jobs=job(gpus=8), policies=policy())
    grown = job(gpus=16)
    grown["metadata"]["generation"] = 2
    books.update(jobs=grown)
    assert books.held() == {"a": 16}


def test_what_is_about_to_be_created_counts_while_it_is(books: Books) -> None:
    demand = parse_resources({GPU: "8"})
    action = CreateChild(name="hj-trainer-0", policy={}, job={}, cluster="a", demand=demand)
    assert not books.reservations.counts(KEY)
    with books.reservations.assumed([action], namespace="default"):
        assert books.held() == {"a": 8}
        assert books.reservations.counts(KEY)
    assert books.held() == {}
    assert not books.reservations.counts(KEY)
    books.update(jobs=job(gpus=8), policies=policy())
    assert books.reservations.counts(KEY)


def running(books: Books) -> None:
    """Let a member run the vcjob of 8 pods, whose reservation has ended."""
    books.update(jobs=job(gpus=8), policies=policy())
    books.update(jobs=job(gpus=8, phase="Running", pods={"running": 8}))


def ending(books: Books, now: datetime) -> int:
    return books.on("a", now).ending[""].get(GPU, 0) // 10**9


def test_what_has_ended_is_in_the_summary_until_the_lag_is_over(books: Books) -> None:
    running(books)
    assert ending(books, NOW) == 0
    books.update(jobs=job(gpus=8, phase="Completed", pods={"succeeded": 8}))
    assert ending(books, NOW) == 8
    assert books.reservations.changes_in(now=NOW) == LAG
    assert ending(books, NOW + LAG) == 0
    assert books.reservations.changes_in(now=NOW + LAG) is None, "rounds would never rest"
    books.update(NOW + LAG, jobs=None)
    assert ending(books, NOW + LAG) == 0, "it has ended once"


def test_a_summary_that_changes_five_seconds_after_an_end_shows_it(books: Books) -> None:
    running(books)
    books.update(jobs=job(gpus=8, phase="Completed", pods={"succeeded": 8}))
    books.reservations.summarised("a", now=NOW + timedelta(seconds=4))
    assert ending(books, NOW) == 8
    books.reservations.summarised("b", now=NOW + timedelta(seconds=5))
    assert ending(books, NOW) == 8
    books.reservations.summarised("a", now=NOW + timedelta(seconds=5))
    assert ending(books, NOW) == 0


def test_pods_of_a_stopped_sub_job_may_run_on_for_their_grace_period(books: Books) -> None:
    running(books)
    books.update(jobs=None)
    grace = timedelta(seconds=30)  # the default of pods
    assert ending(books, NOW + grace + LAG - timedelta(seconds=1)) == 8
    assert ending(books, NOW + grace + LAG) == 0


def test_a_sub_job_that_no_member_had_leaves_nothing(books: Books) -> None:
    books.update(jobs=job(gpus=8), policies=policy(suspended=True))
    books.update(jobs=None)
    assert ending(books, NOW) == 0


def test_only_what_the_summary_may_count_already_settles(books: Books) -> None:
    books.update(jobs=job(), policies=policy(cluster="a"))
    assert books.held() == {"a": 8}
    assert not books.on("a").settling.get(GPU)
    running = vcjob_status("Running", {"running": 8}, since="2026-01-02T03:04:05Z")
    placed = binding(cluster="a", status=running)
    books.update(jobs={**job(), "status": running}, bindings=placed)
    assert books.held() == {"a": 8}
    assert books.on("a").settling[GPU] == 8 * 10**9


def shown(books: Books, gpus: int, **pods: int) -> dict[str, int]:
    """Let nodes show so many pods of a sub-job on cluster a by cluster; the dict can be changed."""
    books.reservations._pods_of = lambda cluster, job: pods.get(cluster) if job == KEY else None
    books.update(jobs=job(gpus=gpus), policies=policy(cluster="a"))
    return pods


def test_nodes_that_show_all_pods_count_them_instead_of_the_reservation(books: Books) -> None:
    pods = shown(books, 2, a=0)
    assert books.reservations.reserves(KEY)
    pods["a"] = 1
    books.update()
    assert books.held() == {"a": 2}
    pods["a"] = 2
    books.update()
    assert books.held() == {}
    assert not books.reservations.reserves(KEY)
    assert books.freed


@pytest.mark.parametrize(
    ("report", "held"),
    [({"running": 1, "succeeded": 1}, {}), ({"pending": 1}, {"a": 2})],
    ids=["a pod has ended", "the pods are created again"],
)
def test_pods_that_were_shown_before_count_until_they_are_created_again(
    books: Books, report: dict[str, int], held: dict[str, int]
) -> None:
    pods = shown(books, 2, a=2)
    assert books.held() == {}
    pods["a"] = 1
    books.update(bindings=binding(cluster="a", status=vcjob_status("Running", report)))
    assert books.held() == held


def test_a_sub_job_whose_nodes_are_no_longer_known_is_reserved_again(books: Books) -> None:
    pods = shown(books, 2, a=2)
    assert books.held() == {}
    assert books.reservations.jobs_on("a") == [KEY]
    pods.clear()
    books.update()
    assert books.held() == {"a": 2}
    pods["a"] = 2
    books.update()
    assert books.held() == {}


def test_pods_on_another_cluster_leave_the_reservation_of_a_moved_sub_job(books: Books) -> None:
    shown(books, 1, a=1, b=0)
    assert books.held() == {}
    books.update(policies=policy(cluster="b"))
    assert books.held() == {"b": 1}
