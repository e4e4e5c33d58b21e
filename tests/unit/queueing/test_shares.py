"""Shares that remember: a queue that has consumed less than another has its turn sooner."""

import json
import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_queueing.consumed import (
    FAIR_SHARING,
    Consumed,
    Consumption,
    consumed_text,
    parse_consumed,
)
from hyperjob_queueing.evict import next_change
from hyperjob_queueing.queues import ADMISSION_MODE, EXEMPT, Queue, parse_queue
from hyperjob_queueing.reserve import begin
from hyperjob_queueing.state import QueueState, Settings, new_state, update
from tests.unit.engine.builders import GPU, NOW
from tests.unit.queueing.queueworld import LAG, QueueWorld, queue, unit

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
STEP = timedelta(minutes=5)
SMALL = (4, 8, 16, 32)


def fresh(half_life: timedelta | None = DAY) -> QueueState:
    return new_state(Settings(lag=LAG, half_life=half_life))


def remembering(*queues: Queue, half_life: timedelta | None = DAY, **gpus: int) -> QueueWorld:
    made = QueueWorld(gpus, state=fresh(half_life))
    made.set_queues(*queues)
    return made


def restart(made: QueueWorld, queues: tuple[Queue, ...]) -> None:
    """Let a new leader learn everything from the objects: HyperJobs, and records of Queues."""
    before = made.state.shares.consumption
    made.state = fresh(before.half_life)
    for each in queues:
        record = before.record(each.name)
        if record is not None:
            raw = {"metadata": {"annotations": {FAIR_SHARING: consumed_text(record)}}}
            found = parse_consumed(raw)
            made.state.shares.consumption.restore(each.name, found)
    made.set_queues(*queues)
    for key, each in made.units.items():
        update(made.state, key, each, now=made.now)


@dataclass
class Company:
    """Queues in whose lines HyperJobs of random sizes always wait; what they use, in GPU hours.

    What is kept for a head counts as used by its queue.
    """

    made: QueueWorld
    sizes: dict[str, tuple[int, ...]]
    used: dict[str, float] = field(default_factory=dict)
    number: int = 0
    draw: Random = field(default_factory=lambda: Random(7))

    def come(self, name: str) -> None:
        self.number += 1
        size = self.draw.choice(self.sizes[name])
        job, parts = f"{name}-{self.number}", [128] * (size // 128) or [size]
        self.made.lengths[job] = int(3600 * self.draw.uniform(0.5, 1))
        self.made.submit(replace(unit(job, *parts, queue=name), created=rfc3339(self.made.now)))

    def count(self, seconds: float) -> None:
        last = self.made.state.last
        for name in self.sizes:
            kept = sum(each.get(GPU, 0) for each in last.kept.values()) // NANO
            own = kept if last.kept_for.startswith(f"ns/{name}-") else 0
            amount = (self.made.used(name) + own) * seconds / 3600
            self.used[name] = self.used.get(name, 0) + amount

    def run(self, span: timedelta) -> None:
        until, made = self.made.now + span, self.made
        while made.now < until:
            for name in self.sizes:
                for _ in range(16 - len(made.state.lines.line(name))):
                    self.come(name)
            made.decide()
            before = made.now
            ends = min(made.ends.values(), default=before + STEP)
            self.count((min(ends, before + STEP) - before).total_seconds())
            if ends <= before + STEP and made.ends:
                made.advance()
            else:
                made.now = before + STEP

    def first(self, name: str) -> timedelta | None:
        found = [at for key, at in self.made.started.items() if key.startswith(f"ns/{name}-")]
        return min(found) - NOW if found else None


def full_of_others(half_life: timedelta | None = DAY, *, lends: bool = False) -> Company:
    """Return 256 GPUs that b has used for a day, with HyperJobs of 256 in the line of a."""
    queues = queue("a", reclaimable=lends), queue("b", reclaimable=lends)
    company = Company(remembering(*queues, half_life=half_life, x=128, y=128), {"b": SMALL})
    company.run(DAY)
    company.sizes, company.used = {"a": (256,), "b": SMALL}, {}
    return company


@pytest.mark.parametrize("lends", [False, True])
def test_a_queue_whose_hyperjobs_are_larger_than_its_share_alternates_with_another(
    *, lends: bool
) -> None:
    company = full_of_others(lends=lends)
    company.run(DAY)
    first = company.first("a")
    assert first - DAY <= HOUR + STEP
    company.used = {}
    company.run(2 * DAY)
    assert company.used["a"] / sum(company.used.values()) == pytest.approx(0.5, rel=0.08)


def test_without_memory_such_a_hyperjob_waits_until_its_queue_has_lost_patience() -> None:
    company = full_of_others(half_life=None)
    company.run(6 * HOUR)
    assert company.first("a") is None


def test_without_a_half_life_neither_records_nor_exemptions_change_the_order() -> None:
    raw = {"metadata": {"name": "a", "annotations": {ADMISSION_MODE: EXEMPT}}}
    made = remembering(parse_queue(raw), queue("b"), half_life=None, x=18)
    made.state.shares.consumption.restore("b", Consumed({GPU: 100 * NANO}, NOW))
    made.state.shares.consumption.restore("a", Consumed({GPU: 900 * NANO}, NOW))
    made.submit(unit("a0", 5, queue="a"), unit("b0", 8, queue="b"))
    made.decide()
    made.submit(unit("b1", 4, queue="b", age=1), unit("a1", 4, queue="a", age=2))
    made.decide()
    assert made.running() == {"a0", "b0", "a1"}


def test_a_new_leader_goes_on_with_what_queues_have_consumed() -> None:
    queues = queue("a"), queue("b", weight=2)
    made = remembering(*queues, x=64)
    company = Company(made, {"a": (8, 32), "b": SMALL})
    for _ in range(24):
        company.run(HOUR)
        before = made.state
        restart(made, queues)
        for state in (before, made.state):
            begin(state, made.clusters(), now=made.now)
        for name in ("a", "b"):
            found, known = (each.shares.consumption.of(name) for each in (made.state, before))
            assert found[GPU] == pytest.approx(known[GPU], abs=21 * NANO / 100)


def waits_for_a_turn() -> QueueWorld:
    """A HyperJob larger than the share of a waits, where b has used all for a day, and 8 end."""
    made = remembering(queue("a"), queue("b"), x=256)
    made.submit(unit("theirs", 200, queue="b"), unit("ends", 56, queue="b"))
    made.lengths |= {"theirs": 10**6, "ends": 86400}
    made.decide()
    made.submit(replace(unit("head", 256, queue="a"), created=rfc3339(NOW + DAY)))
    made.advance()
    made.submit(unit("small", 8, queue="b", age=3))
    made.decide()
    return made


def test_a_turn_lasts_an_hour_at_most_comes_once_and_counts_as_use() -> None:
    made = waits_for_a_turn()
    until = rfc3339(made.now + HOUR)
    assert made.running() == {"theirs"}
    turn = "its queue has consumed less of its share than another and has its turn"
    assert made.message("head").endswith(f"{turn}: what becomes free is kept for it until {until}")
    assert (
        "kept for ns/head, first in queue a, whose queue has consumed less of its share"
        in made.message("small")
    )
    wait = next_change(made.state, now=made.now)
    assert wait is not None
    assert wait <= HOUR, "a round ends the turn, though nothing changes"
    made.now += HOUR
    made.decide()
    assert made.running() == {"theirs", "small"}
    kept = 56 * NANO * (1 - 0.5 ** (1 / 24))
    assert made.state.shares.consumption.of("a")[GPU] == pytest.approx(kept, rel=1e-6)
    latest = rfc3339(NOW + DAY + 48 * HOUR)
    large = "it is larger than the share of its queue, and has its turn about"
    assert made.message("head").endswith(f"; {large} {latest} at the latest")
    made.now += 20 * HOUR
    made.decide()
    assert not made.state.turn.head


@pytest.mark.parametrize(
    ("size", "exempt", "other", "has"),
    [
        pytest.param(256, "", {}, True, id="larger than the share of its queue"),
        pytest.param(128, "", {}, False, id="as large as the share"),
        pytest.param(256, "a", {}, False, id="its own queue is exempt"),
        pytest.param(256, "b", {}, False, id="the other queue is exempt"),
        pytest.param(256, "", {"priority": 1}, False, id="the other queue has a higher priority"),
        pytest.param(256, "", {"reclaimable": True}, False, id="the other queue is reclaimable"),
    ],
)
def test_a_head_has_a_turn_that(
    *, size: int, exempt: str, other: dict[str, object], has: bool
) -> None:
    """What runs in the other queue has made way before: it does not again."""
    queues = queue("a"), queue("b", **other)
    made = remembering(*(replace(q, remembers=q.name != exempt) for q in queues), x=256)
    made.submit(replace(unit("theirs", 256, queue="b"), again=True))
    made.lengths["theirs"] = 10**6
    made.decide()
    made.now += DAY
    made.submit(unit("head", size, queue="a", age=1))
    made.decide()
    assert bool(made.state.turn.head) is has


def test_what_a_new_controller_finds_lent_goes_back_at_once_though_one_hyperjob_has_it() -> None:
    made = remembering(queue("lent", reclaimable=True), queue("owner", weight=8), x=144)
    made.submit(unit("borrower", 144, queue="lent"))
    made.lengths["borrower"] = 10**6
    made.decide()
    made.submit(unit("owner", 100, queue="owner", age=1))
    made.decide()
    assert made.reclaimed == ["borrower"]


@pytest.mark.parametrize(
    ("lends", "exempt", "hours", "made_way"),
    [
        pytest.param(True, "", 24, True, id="reclaimable, and ahead by a day"),
        pytest.param(True, "", 2, False, id="ahead by less than a sixth"),
        pytest.param(False, "", 24, False, id="not reclaimable"),
        pytest.param(True, "b", 24, False, id="exempt"),
        pytest.param(True, "again", 24, False, id="whose HyperJob stopped before"),
    ],
)
def test_a_head_larger_than_the_share_of_its_queue_stops_others_of_a_queue_that_is(
    *, lends: bool, exempt: str, hours: int, made_way: bool
) -> None:
    others = replace(queue("b", reclaimable=lends), remembers=exempt != "b")
    made = remembering(queue("a"), others, x=256)
    theirs = replace(unit("theirs", 200, queue="b"), again=exempt == "again")
    made.submit(theirs, unit("small", 56, queue="b", age=1))
    made.lengths |= dict.fromkeys(("theirs", "small", "head"), 10**6)
    made.decide()
    made.now += timedelta(hours=hours)
    made.submit(unit("head", 192, queue="a", age=2))
    made.decide()
    assert made.reclaimed == ["theirs"] * made_way
    made.decide()
    assert made.running() == ({"head", "small"} if made_way else {"theirs", "small"})


def test_a_hyperjob_above_the_share_stays_until_its_queue_has_consumed_more_than_the_other() -> (
    None
):
    """The queue b has used all for a day. Then a uses it, and b takes it back once a is ahead."""
    made = remembering(queue("a", reclaimable=True), queue("b", reclaimable=True), x=256)
    made.submit(unit("theirs", 256, queue="b"))
    made.lengths |= {"theirs": 86400, "large": 10**7, "back": 10**6}
    made.decide()
    made.advance()
    made.submit(unit("large", 256, queue="a", age=1))
    made.decide()
    made.now += STEP
    made.submit(unit("back", 100, queue="b", age=2))
    made.decide()
    assert made.running() == {"large"}
    while not made.reclaimed:
        wait = next_change(made.state, now=made.now)
        assert wait is not None, "nothing else would look again"
        made.now += max(wait, STEP)
        made.decide()
    consumed = [made.state.shares.consumption.of(name)[GPU] for name in ("a", "b")]
    assert 0.16 <= (consumed[0] - consumed[1]) / (128 * NANO) <= 0.18


def test_what_runs_on_idle_accelerators_above_the_share_goes_back_at_once() -> None:
    """Both have consumed equally much when b borrows: its HyperJob is large, and earned nothing."""
    made = remembering(queue("a"), queue("b", reclaimable=True), x=256)
    made.submit(unit("ours", 128, queue="a"), unit("theirs", 128, queue="b"))
    made.lengths |= dict.fromkeys(("ours", "theirs"), 86400) | {"lent": 10**6}
    made.decide()
    made.now += DAY
    made.advance()
    made.submit(unit("lent", 200, queue="b"))
    made.decide()
    assert made.running() == {"lent"}
    made.now += 6 * HOUR
    made.submit(unit("owner", 128, queue="a", age=1))
    made.decide()
    assert made.reclaimed == ["lent"]


@given(
    limits=st.tuples(*[st.none() | st.integers(0, 64)] * 2),
    sizes=st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 64)), min_size=1, max_size=8),
    hours=st.lists(st.integers(1, 30), min_size=1, max_size=8),
)
@settings(max_examples=40, deadline=None)
def test_with_memory_rounds_are_deterministic_and_no_queue_is_above_its_capability(
    limits: tuple[int | None, ...], sizes: list[tuple[str, int]], hours: list[int]
) -> None:
    queues = [
        queue(name, gpus=most, reclaimable=True) for name, most in zip("ab", limits, strict=True)
    ]
    worlds = [remembering(*queues, x=32, y=32) for _ in range(2)]
    for made in worlds:
        for number, (name, size) in enumerate(sizes):
            parts = [32] * (size // 32) or [size]
            made.submit(unit(f"j{number}", *parts, queue=name, age=number))
            made.lengths[f"j{number}"] = 3600 * (1 + number)
    for span in hours:
        first, second = ([made.decide(), sorted(made.running())] for made in worlds)
        assert first == second
        for made in worlds:
            for name, most in zip("ab", limits, strict=True):
                assert most is None or made.used(name) <= most
            until = made.now + span * HOUR
            while any(end <= until for end in made.ends.values()):
                made.advance()
            made.now = until


@given(
    uses=st.lists(st.integers(0, 10**400), min_size=1, max_size=8),
    minutes=st.lists(st.integers(1, 10**5), min_size=8, max_size=8),
)
def test_what_is_consumed_lies_between_the_least_and_the_most_that_was_used(
    uses: list[int], minutes: list[int]
) -> None:
    found, now = Consumption(DAY), NOW
    found.restore("q", Consumed({GPU: uses[0]}, now))
    for use, wait in zip(uses, minutes, strict=False):
        now += timedelta(minutes=wait)
        found.follow({"q": {GPU: use}}, now=now)
        assert min(uses) <= found.of("q").get(GPU, 0) <= max(uses)


@given(use=st.integers(0, 10**15), parts=st.lists(st.integers(1, 10**5), min_size=1, max_size=9))
def test_the_number_of_steps_makes_no_difference_to_what_is_consumed(
    use: int, parts: list[int]
) -> None:
    stepwise, at_once, now = Consumption(DAY), Consumption(DAY), NOW
    for each in (stepwise, at_once):
        each.restore("q", Consumed({GPU: 10**14}, now))
    for part in parts:
        now += timedelta(seconds=part)
        stepwise.follow({"q": {GPU: use}}, now=now)
    at_once.follow({"q": {GPU: use}}, now=now)
    assert stepwise.of("q").get(GPU, 0) == pytest.approx(at_once.of("q").get(GPU, 0), abs=10**4)


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "{}", '{"lastUpdate":"soon"}', '{"consumedResources":{"a":"1"}}', "1" * 9999],
)
def test_a_record_that_cannot_be_read_is_none(text: str) -> None:
    assert parse_consumed({"metadata": {"annotations": {FAIR_SHARING: text}}}) is None


def test_a_record_names_few_resources_accelerators_first_and_comes_back() -> None:
    many = {f"example.com/r{n:02}": NANO for n in range(40)}
    found = Consumption(DAY)
    found.restore("q", Consumed({**many, GPU: 1_500_000_001}, NOW))
    record = found.record("q")
    value = json.loads(consumed_text(record))
    assert (value["consumedResources"][GPU], len(value["consumedResources"])) == ("1501m", 16)
    assert value["lastUpdate"] == rfc3339(NOW)


WEIGHTS = {"one": 1, "two": 2, "three": 3}


def saturated(sizes: tuple[int, ...], lengths: tuple[int, int], *, seed: int) -> QueueWorld:
    """Two clusters of 96 and a line in every queue that never ends."""
    chance = random.Random(seed)
    made = QueueWorld({"a": 96, "b": 96})
    made.set_queues(*(queue(name, weight=weight) for name, weight in WEIGHTS.items()))
    for name in WEIGHTS:
        for number in range(400):
            job = f"{name}-{number}"
            made.submit(unit(job, chance.choice(sizes), queue=name, age=number))
            made.lengths[job] = chance.randint(*lengths)
    return made


def shares(made: QueueWorld, seconds: int) -> dict[str, float]:
    """Run on, and return what part of all that ran each queue had on average."""
    until = made.now + timedelta(seconds=seconds)
    sums = dict.fromkeys(WEIGHTS, 0.0)
    while made.now < until:
        before = made.now
        used = {name: made.used(name) for name in WEIGHTS}
        made.advance()
        made.decide()
        for name in WEIGHTS:
            sums[name] += used[name] * (made.now - before).total_seconds()
    return {name: amount / sum(sums.values()) for name, amount in sums.items()}


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [((4,), (60, 60)), ((2, 4, 8), (30, 90)), ((1, 8), (50, 70))],
    ids=["like jobs", "mixed sizes and lengths", "small and large"],
)
def test_shares_are_the_weights_within_five_percent(
    sizes: tuple[int, ...], lengths: tuple[int, int]
) -> None:
    made = saturated(sizes, lengths, seed=7)
    made.decide()
    shares(made, 2 * lengths[1])  # warm up
    found = shares(made, 6 * lengths[1])
    for name, weight in WEIGHTS.items():
        assert found[name] == pytest.approx(weight / 6, rel=0.05), found


def test_an_idle_queues_share_is_lent_and_comes_back_within_one_jobs_length() -> None:
    made = saturated((4,), (60, 60), seed=1)
    late = [each for each in list(made.units.values()) if each.parts[0].queue == "three"]
    for each in late:
        made.end(each.key)
    made.decide()
    assert made.used("one") + made.used("two") == 192
    assert made.used("one") == pytest.approx(64, abs=4)
    made.now += timedelta(seconds=20)
    made.submit(*late)
    made.decide()
    assert made.used("three") == 0
    returned = made.now + timedelta(seconds=60)
    while made.used("three") < 96:
        made.advance()
        made.decide()
        assert made.now <= returned
    assert made.used("one") == 32
    assert made.used("two") == 64


def test_a_higher_queue_is_served_first_and_a_guarantee_holds_against_it() -> None:
    made = QueueWorld({"a": 64})
    made.set_queues(queue("low", guarantee=16), queue("high", priority=10))
    for number in range(40):
        made.submit(unit(f"high-{number}", 4, queue="high", age=number))
        made.submit(unit(f"low-{number}", 4, queue="low", age=number))
    made.decide()
    assert (made.used("high"), made.used("low")) == (48, 16)
