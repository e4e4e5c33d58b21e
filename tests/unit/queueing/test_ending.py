"""A share ends with the pods: a stopped sub-job counts until their grace period is over."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.wire import rfc3339
from hyperjob_queueing.evict import evicted_for, next_change
from hyperjob_queueing.messages import stale_messages
from hyperjob_queueing.queues import Queue, Tree, bounded
from hyperjob_queueing.reserve import begin
from hyperjob_queueing.state import count_ending, update
from hyperjob_queueing.stopped import EndingPods, from_text, to_text
from hyperjob_queueing.usage import QueueUsage
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import GPU, NOW
from tests.unit.queueing.queueworld import LAG, QueueWorld, queue, unit

MINUTE = timedelta(minutes=1)


class Lingering(QueueWorld):
    """Each sub-job that exists has pods in its member, which may outlive it by ten minutes."""

    grace = 10 * MINUTE

    def make(self, key: str) -> None:
        super().make(key)
        made = self.units[key]
        self.units[key] = replace(made, grace=dict.fromkeys(made.made, self.grace))
        update(self.state, key, self.units[key], now=self.now)

    def give_back(self, key: str) -> None:
        self.units[key] = replace(self.units[key], grace={})
        super().give_back(key)


def limited(*units: QueuedHyperJob, gpus: int | None = 8) -> Lingering:
    """A queue with a capability of 8 GPUs on a cluster of 64."""
    made = Lingering({"a": 64})
    made.set_queues(queue("default", gpus=gpus))
    made.submit(*units)
    made.decide()
    return made


def test_delete_and_recreate_gives_no_second_share_while_the_pods_run_on() -> None:
    made = limited(unit("first", 8))
    made.end("ns/first")
    made.submit(unit("second", 8, age=1))
    assert made.decide() == []
    assert made.used("default") == 8
    assert "pods of stopped sub-jobs hold 8 of it" in made.message("second")
    made.now += MINUTE
    assert made.decide() == []
    assert next_change(made.state, now=made.now) == 9 * MINUTE
    made.now += 9 * MINUTE
    assert made.decide() == ["ns/second"]
    assert made.used("default") == 8


def test_the_head_says_for_whose_stopped_pods_it_waits_and_until_when() -> None:
    made = Lingering({"a": 32}, shows_after=10 * MINUTE)
    made.set_queues(queue("x", reclaimable=True), queue("y"))
    made.submit(unit("lent", 32, queue="x"))
    made.decide()
    made.now += 2 * LAG
    made.submit(unit("owner", 16, queue="y", age=5))
    assert made.round() == ["ns/lent"]
    assert evicted_for(made.state, "ns/lent") == "ns/owner"
    assert made.message("owner").endswith("; takes back what its queue lent to ns/lent")
    made.give_back("ns/lent")
    made.decide()
    due = [each.key for each in stale_messages(made.state, now=made.now) if each.news]
    assert "ns/owner" in due, "it is told at once"
    end = rfc3339(made.now + 10 * MINUTE)
    waits = f"waits for the pods of ns/lent, stopped, to end by {end}"
    assert made.message("owner").endswith(f"; {waits}")


NONE: frozenset[str] = frozenset()
FIRST = frozenset({"first-0"})
STOPS: dict[str, tuple[dict[str, Any], int, int]] = {
    "it is suspended": ({"parts": (), "held": NONE, "made": NONE, "grace": {}}, 8, 0),
    "its pods ended with it": (
        {"made": NONE, "ended": FIRST, "grace": dict.fromkeys(FIRST, timedelta())},
        0,
        0,
    ),
    "it ended before its pods, as by minSuccess": (
        {"made": NONE, "ended": FIRST, "grace": {}},
        8,
        0,
    ),
    "it is created again beside its old pods": ({"made": NONE, "grace": {}}, 16, 8),
}


@pytest.mark.parametrize(("change", "now", "later"), STOPS.values(), ids=list(STOPS))
def test_a_stopped_sub_job_holds_its_share_until_its_pods_have_ended(
    change: dict[str, Any], now: int, later: int
) -> None:
    made = limited(unit("first", 8))
    update(made.state, "ns/first", replace(made.units["ns/first"], **change), now=made.now)
    assert made.used("default") == now
    made.set_queues(queue("default", gpus=9))
    assert made.used("default") == now, "a change of the queues counts them again"
    if not later:
        made.end("ns/first")
        assert made.used("default") == now, "the end of the HyperJob changes nothing"
    made.now += 10 * MINUTE
    made.submit(unit("never", 99, age=1))
    made.decide()
    assert made.used("default") == later


@given(
    graces=st.lists(st.integers(0, 100), min_size=1, max_size=6),
    ends=st.lists(st.integers(0, 100), min_size=6, max_size=6),
    end=st.integers(0, 250),
)
def test_no_pods_count_longer_than_their_grace_period(
    graces: list[int], ends: list[int], end: int
) -> None:
    made = limited(gpus=None)
    start = made.now
    for number, grace in enumerate(graces):
        made.grace = timedelta(seconds=grace)
        made.submit(unit(f"j{number}", 1, age=number))
        made.decide()
    stops = sorted(zip(ends, range(len(graces)), strict=False))
    for seconds, number in stops:
        made.now = start + timedelta(seconds=seconds)
        made.end(f"ns/j{number}")
    made.now = max(made.now, start + timedelta(seconds=end))
    made.submit(unit("waits", 65, age=99))
    made.decide()
    left = [1 for at, n in stops if at + graces[n] > (made.now - start).total_seconds()]
    assert made.used("default") == sum(left)


@pytest.mark.parametrize("queued", [0, 5])
def test_pods_that_end_later_than_others_free_their_share_later(queued: int) -> None:
    made = limited(unit("long", 4), unit("short", 4, age=1))
    known = made.units["ns/short"]
    short = replace(known, grace=dict.fromkeys(known.made, MINUTE))
    update(made.state, "ns/short", short, now=made.now)
    made.end("ns/long")
    made.end("ns/short")
    made.submit(unit("next", 4, age=2), *(unit(f"q{n}", 8, age=3 + n) for n in range(queued)))
    made.now += MINUTE
    assert made.decide() == ["ns/next"]


def test_a_preemption_waits_for_the_pods_that_it_stopped_and_stops_no_other() -> None:
    made = limited(unit("a", 4), unit("b", 4, age=1))
    made.now += 2 * LAG
    made.submit(unit("urgent", 4, priority=9, age=9))
    assert made.decide() == ["ns/b"]
    for _ in range(4):
        assert made.decide() == []
        made.now += 2 * MINUTE
    made.now += 2 * MINUTE
    assert made.decide() == ["ns/urgent"]
    assert made.reclaimed == ["b"]


def test_stopping_pods_do_not_count_against_all_that_the_clusters_have() -> None:
    tree = Tree([bounded(Queue(name="default"), {GPU: 8})], {GPU: 8})
    usage = QueueUsage(tree)
    usage.add_ending("default", {GPU: 8})
    assert usage.limit("default", {GPU: 8}) is None
    own = Queue(name="default", capability={GPU: 4})
    usage = QueueUsage(Tree([bounded(own, {GPU: 8})], {GPU: 8}))
    usage.add_ending("default", {GPU: 3})
    limit = usage.limit("default", {GPU: 2})
    assert (limit.missing, limit.ending) == (1, 3)


class Seen(Lingering):
    """A queue world whose members show the pods of stopped sub-jobs."""

    pods: dict[str, int] | None = None

    def decide(self) -> list[str]:
        def left(_cluster: str, job: str) -> int | None:
            return None if self.pods is None else self.pods.get(job, 0)

        begin(self.state, self.clusters(), now=self.now, pods_left=left)
        return super().decide()


def stopped() -> Seen:
    made = Seen({"a": 64})
    made.set_queues(queue("default", gpus=8))
    made.submit(unit("first", 8))
    made.decide()
    made.end("ns/first")
    made.submit(unit("second", 8, age=1))
    return made


PODS = {"ns/first-0": 8}
SHOWN: dict[str, list[tuple[float, dict[str, int] | None, bool]]] = {
    "the member shows no pod any more": [(0, PODS, False), (1, {}, True)],
    "pods have ended that outlived their grace period": [
        (0, PODS, False),
        (11, PODS, False),
        (11, {}, True),
    ],
    "the grace period of pods is over that no member has shown": [(0, {}, False), (10, {}, True)],
    "it is over, and their member is not known any more": [
        (0, PODS, False),
        (11, PODS, False),
        (11.1, None, True),
    ],
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_share_is_free_once(case: str) -> None:
    """Each look has its minutes, the pods that members show then, and whether the share is free."""
    made = stopped()
    began = made.now
    for minutes, pods, is_free in SHOWN[case]:
        made.now, made.pods = began + minutes * MINUTE, pods
        assert made.decide() == (["ns/second"] if is_free else [])
        if minutes > 10 and not is_free:
            assert next_change(made.state, now=made.now) == timedelta(seconds=5)


def test_a_recreated_sub_job_is_not_taken_for_the_pods_that_it_replaces() -> None:
    made = stopped()
    made.end("ns/second")
    made.pods = {"ns/first-0": 8}
    made.decide()
    made.set_queues(queue("default", gpus=64))
    made.submit(unit("first", 8))
    assert made.decide() == ["ns/first"]
    assert made.used("default") == 16
    made.now += 10 * MINUTE
    made.decide()
    assert made.used("default") == 8


def test_pods_count_although_their_sub_job_holds_its_share_until_its_binding_is_gone() -> None:
    made = limited(unit("first", 4))
    known = made.units["ns/first"]
    leaving = replace(known, made=frozenset())
    update(made.state, "ns/first", leaving, now=made.now)
    update(made.state, "ns/first", replace(leaving, grace={}), now=made.now)
    made.end("ns/first")
    assert made.used("default") == 4, "its vcjob went first, then its ResourceBinding"
    made.now += 10 * MINUTE
    made.decide()
    assert made.used("default") == 0


def test_a_new_leader_counts_the_pods_that_its_predecessor_stopped() -> None:
    before = limited(unit("first", 8))
    before.end("ns/first")
    left = to_text(before.state.ending)
    after = Lingering({"a": 64})
    for pods in from_text(left):
        count_ending(after.state, pods)
    after.set_queues(queue("default", gpus=8))
    after.submit(unit("second", 8, age=1))
    assert after.decide() == []
    assert after.used("default") == 8
    after.now += 10 * MINUTE
    assert after.decide() == ["ns/second"]


POD_LISTS = st.lists(
    st.builds(
        EndingPods,
        st.integers(0, 10**6).map(lambda number: NOW + timedelta(seconds=number)),
        st.sampled_from(["a", "b", '\u00e9"']),
        st.dictionaries(st.sampled_from([GPU, "cpu"]), st.integers(0, 2**63)),
        st.just("ns/x"),
        st.text(max_size=9),
        st.sampled_from(["a", "b"]),
        st.booleans(),
    ),
    max_size=9,
)


@given(POD_LISTS)
def test_what_is_left_to_the_next_leader_is_read_as_it_was_written(pods: list[EndingPods]) -> None:
    assert sorted(from_text(to_text(pods)), key=repr) == sorted(pods, key=repr)


def test_more_pods_than_fit_are_left_as_a_sum_for_each_queue() -> None:
    pods = [
        EndingPods(NOW + n * MINUTE, f"q{n % 2}", {GPU: n}, f"ns/{n:0200}", f"{n}", "a")
        for n in range(2000)
    ]
    text = to_text(pods)
    assert len(text) <= 128 * 1024
    found = from_text(text)
    assert sum(each.demand[GPU] for each in found) == sum(range(2000))
    sums = {each.queue: each for each in found if not each.key}
    assert sums.keys() == {"q0", "q1"}
    singles = {each.name for each in found if each.key}
    last = max(n for n in range(0, 2000, 2) if str(n) not in singles)
    assert sums["q0"].until == NOW + last * MINUTE


def test_the_text_stays_below_the_limit_of_annotations_with_thousands_of_queues() -> None:
    pods = [EndingPods(NOW, f"queue-{n:060}", {GPU: 1}, "ns/x", "y", "a") for n in range(5000)]
    assert len(to_text(pods)) <= 128 * 1024


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "no JSON",
        "[1, [], [1, 2, 3, 4, 5, 6, 7]]",
        '[["no time", "q", {}, "ns/x", "y", "a", false]]',
        '[["2026-01-02T03:04:05.000000Z", "q", {"cpu": -1}, "ns/x", "y", "a", false]]',
        '[["2026-01-02T03:04:05.000000Z", "q", {"cpu": "1"}, "ns/x", "y", "a", false]]',
        '[["2026-01-02T03:04:05.000000Z", 1, {}, "ns/x", "y", "a", false]]',
        '[["2026-01-02T03:04:05.000000Z", "q", {}, "ns/x", null, "a", false]]',
    ],
)
def test_a_text_that_a_person_has_changed_is_read_as_far_as_it_has_the_form(text: str) -> None:
    assert from_text(text) == []


@pytest.mark.parametrize("estimate", [None, timedelta(seconds=1), timedelta(days=9)])
def test_no_estimate_makes_a_preemptor_wait_longer_than_the_grace_period(
    estimate: timedelta | None,
) -> None:
    """The pods of `liar` ignore SIGTERM for all of their hour; others come for the room meanwhile.

    It passed the head of its line whatever its estimate was: an estimate promises nothing.
    """
    made = Lingering({"a": 20}, shows_after=60 * MINUTE)
    made.grace = 60 * MINUTE
    made.set_queues(queue("default"))
    made.submit(unit("run", 8), unit("head", 16, age=1))
    made.submit(replace(unit("liar", 8, age=2), estimate=estimate))
    made.decide()
    assert made.running() == {"run", "liar"}
    made.now += 10 * MINUTE
    made.submit(unit("urgent", 12, priority=1, age=600))
    made.decide()
    assert (made.reclaimed, made.running()) == (["liar"], {"run"})
    began = made.now
    while "urgent" not in made.running():
        assert made.now < began + 60 * MINUTE
        made.now += 10 * MINUTE
        made.submit(unit(f"small-{(made.now - began) // MINUTE}", 1, age=700))
        made.decide()
    assert made.running() == {"run", "urgent"}
