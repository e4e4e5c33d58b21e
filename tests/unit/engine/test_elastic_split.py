"""Automatic splits with bounds of their accelerators: sizes, shares, growth and making way."""

import copy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.overlay import size_in, sizes_of, with_alternative
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.subjobs import choosing
from hyperjob_engine.plan import plan
from hyperjob_engine.resources import Resources, subtract, total
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import QueueState, Settings, new_state, update
from hyperjob_queueing.verdict import choice_in, verdict_of
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import GPU, Object, cluster, group, hyperjob, task, template
from tests.unit.engine.views import held, node, seen, view
from tests.unit.engine.views import job as request_of
from tests.unit.engine.views import task as on_nodes
from tests.unit.engine.world import World
from tests.unit.queueing.queueworld import LAG, making_way, one_queue, unit

KEY = "default/hj"
MASTER = task("master", 1, 2)


def split(
    least: int | None = 16, wish: int = 64, most: int | None = None, *tasks: Object, **spec: Any
) -> Object:
    """Make a HyperJob with an automatic split in pods of 8 GPUs."""
    given = {"minAccelerators": least, "maxAccelerators": most}
    bounds = {name: number for name, number in given.items() if number is not None}
    policy = {"mode": "auto", "accelerators": wish, "acceleratorType": GPU, **bounds}
    tasks = tasks or (task(replicas=2, gpus=8),)
    made = group(replicas=1, splitPolicy=policy, templateSpec=template(*tasks))
    return hyperjob(made, checkpoint={"directory": "/c", "intervalSeconds": 60}, **spec)


@dataclass
class Loop(World):
    """Rounds of the queues and passes of one HyperJob; what is placed runs at once."""

    state: QueueState = field(default_factory=lambda: new_state(Settings(lag=LAG)))

    def turn(self, seconds: int = 1, dies_after: int | None = None) -> None:
        """Let time pass, play a round, do a pass, and let members follow.

        If the controller dies after so many actions, it writes no status, and a new one leads.
        """
        self.now += timedelta(seconds=seconds)
        queued = unit_of(self.observe("hj"))
        update(self.state, KEY, queued, now=self.now)
        schedule(self.state, self.observe("hj").clusters, now=self.now)
        seen = self._decided(self.observe("hj"))
        decided = plan(seen)
        for action in decided.actions[:dies_after]:
            self._apply("hj", action)
        if dies_after is not None:
            self.lead()
        elif decided.status is not None:
            self.hyperjobs["hj"]["status"] = copy.deepcopy(decided.status)
        self.garbage_goes()
        self.karmada()
        self.run()

    def lead(self) -> None:
        """Let a new controller know the queues and the other HyperJob."""
        known = self.state.entries.get("ns/other")
        self.state = one_queue()
        if known is not None:
            held = known.unit.held | known.granted
            unit = replace(known.unit, held=held, clusters=dict(known.reserved_clusters))
            update(self.state, unit.key, unit, now=self.now)

    def _decided(self, seen: Observed) -> Observed:
        """Return what a pass sees: the choice of the round, and no room that others hold."""
        verdict = verdict_of(self.state, KEY)
        chosen = choosing(seen.hyperjob, choice_in(self.state, KEY))
        clusters = tuple(
            replace(each, free=subtract(each.free, self.held(each.name))) for each in seen.clusters
        )
        return replace(seen, hyperjob=chosen, verdict=verdict, clusters=clusters)

    def held(self, cluster: str) -> Resources:
        """Return what the other HyperJob holds of a cluster."""
        other = self.state.entries.get("ns/other")
        parts = other.holding.values() if other is not None else ()
        return total(part.request.demand for part, where in parts if where == cluster)

    def run(self) -> None:
        """Let each vcjob that is in a usable cluster run there."""
        for name, raw in self.jobs.items():
            bound = self.bindings.get(f"{name}-job", {}).get("spec", {}).get("clusters")
            pods = sum(each["replicas"] for each in raw["spec"]["tasks"])
            if bound and self.clusters[bound[0]["name"]].usable:
                since = raw.get("status", {}).get("state", {}).get("lastTransitionTime")
                state = {"phase": "Running", "lastTransitionTime": since or rfc3339(self.now)}
                raw["status"] = {"state": state, "running": pods}
                known = self.bindings[f"{name}-job"]
                known["status"] = {
                    "aggregatedStatus": [
                        {"clusterName": bound[0]["name"], "applied": True, "status": raw["status"]}
                    ]
                }

    def turns(self, number: int = 8, seconds: int = 1) -> None:
        for _ in range(number):
            self.turn(seconds)

    @property
    def shares(self) -> dict[str, int]:
        """Return the accelerators of the vcjobs by cluster."""
        found: dict[str, int] = {}
        for name, raw in self.jobs.items():
            pin = self.policies[name]["spec"]["placement"]["clusterAffinities"][0]["clusterNames"]
            gpus = sum(
                each["replicas"]
                * int(each["template"]["spec"]["containers"][0]["resources"]["requests"][GPU])
                for each in raw["spec"]["tasks"]
            )
            found[pin[0]] = found.get(pin[0], 0) + gpus
        return found

    @property
    def size(self) -> tuple[str, str]:
        (known,) = self.hyperjobs["hj"]["status"]["alternatives"]
        return known["name"], known["reason"]


def loop(made: Object, **gpus: int) -> Loop:
    found = Loop(clusters={name: cluster(name, free) for name, free in gpus.items()})
    found.hyperjobs["hj"] = made
    found.lead()
    return found


def test_a_larger_size_of_a_split_asks_for_at_least_the_accelerators_that_it_adds() -> None:
    made = loop(split(8, 8, 3216), a=8)
    made.turns()
    found = unit_of(made.observe("hj")).more
    assert found
    for each in found:
        asked = sum(part.request.demand[GPU] for part in each.parts) // 10**9
        assert asked >= int(dict(each.size)["trainer"]) - 8


@pytest.mark.parametrize(
    ("made", "sizes"),
    [
        pytest.param(split(16, 40), [40, 32, 24, 16], id="whole pods"),
        pytest.param(split(16, 32, 48), [48, 40, 32, 24, 16], id="both ways"),
        pytest.param(split(None, 16, 24), [24, 16], id="more alone"),
        pytest.param(split(None, 16), [], id="no bounds"),
        pytest.param(
            split(8, 400, 512),
            [512, 472, 432, 400, 392, 352, 312, 272, 232, 192, 152, 112, 72, 32, 8],
            id="equal steps",
        ),
        pytest.param(
            split(10, 28, None, MASTER, task(replicas=2, gpus=8)),
            [28, 20, 10],
            id="none that gives two masters one worker",
        ),
        pytest.param(split(16, 32, quorum=1), [], id="refused with a quorum"),
        pytest.param(split(16, 32, None, task(replicas=2)), [32, 30, 28, 26], id="pods of one"),
    ],
)
def test_the_sizes_of_a_split_are_whole_pods(made: Object, sizes: list[int]) -> None:
    options = parse_hyperjob(made).replicated_jobs[0].options
    found = [each.size for each in options]
    assert found[: len(sizes)] == sizes
    assert len(found) <= 16
    (raw,) = made["spec"]["replicatedJobs"]
    policy = with_alternative(raw, str(found[-1]) if found else None)["splitPolicy"]
    assert policy["accelerators"] == (found[-1] if found else raw["splitPolicy"]["accelerators"])
    if found:
        assert policy.keys() == {"mode", "accelerators", "acceleratorType"}
        assert [found[0], found[-1]] == [sizes_of(raw)[0], sizes_of(raw)[-1]]


@pytest.mark.parametrize(
    ("room", "shares", "size"),
    [
        pytest.param({"a": 100}, {"a": 64}, ("64", "LargestWithRoom"), id="room for all"),
        pytest.param(
            {"a": 40, "b": 8}, {"a": 40, "b": 8}, ("48", "LargestWithRoom"), id="room for some"
        ),
        pytest.param(
            {"a": 12, "b": 8}, {"a": 8, "b": 8}, ("16", "LargestWithRoom"), id="the fewest"
        ),
        pytest.param({"a": 8}, {}, ("16", "Smallest"), id="room for fewer"),
    ],
)
def test_a_split_starts_with_as_many_accelerators_as_have_room(
    room: dict[str, int], shares: dict[str, int], size: tuple[str, str]
) -> None:
    made = loop(split(16, 64), **room)
    made.turns()
    assert (made.shares, made.size) == (shares, size)


def test_a_split_takes_more_than_it_would_like_only_alone() -> None:
    alone = loop(split(16, 32, 64), a=48)
    alone.turns()
    assert alone.shares == {"a": 48}
    beside = loop(split(16, 32, 64), a=48)
    other = unit("other", 64, age=50)
    update(beside.state, other.key, other, now=beside.now)
    beside.turns()
    assert beside.shares == {"a": 32}


def test_what_a_lost_cluster_leaves_goes_on_at_once_and_grows_when_it_is_back() -> None:
    made = loop(split(16, 64), a=40, b=24)
    made.turns()
    assert made.shares == {"a": 40, "b": 24}
    made.clusters["b"] = cluster("b", 24, unusable="lost", not_ready_since=made.now - 99 * LAG)
    made.turns(4)
    assert (made.shares, made.size) == ({"a": 40}, ("40", "LargestThatIsLeft"))
    made.clusters["b"] = cluster("b", 48)
    made.turns(5)
    assert made.shares == {"a": 40}, "not soon after its start"
    made.turns(5, seconds=300)
    made.turns(8)
    assert made.size == ("64", "Grew")
    assert made.shares == {"a": 32, "b": 32}
    status = made.hyperjobs["hj"]["status"]
    assert status["stop"] is None
    assert not status.get("restarts")
    assert status["goodput"]["stopped"]["size"] == "trainer=64", "what it lost was made with that"


@pytest.mark.parametrize("seconds", [0, 1, 30, 58])
def test_what_comes_while_a_split_stops_to_grow_takes_nothing_of_what_it_had(seconds: int) -> None:
    made = loop(split(16, 64), a=40, b=24)
    made.clusters["b"] = cluster("b", 24, unusable="lost", not_ready_since=made.now - 99 * LAG)
    made.turns()
    made.clusters["b"] = cluster("b", 24)
    while not made.hyperjobs["hj"]["status"].get("stop"):
        made.turn(20)
    assert (made.size, made.shares) == (("64", "Grew"), {"a": 40})
    made.turns(seconds)
    wait(made, 8, 8, 8)
    made.turns(99)
    assert made.shares.get("a") == 40
    assert made.size == (("64", "Grew") if seconds else ("40", "LargestThatIsLeft"))
    made.turns(8)
    assert made.hyperjobs["hj"]["status"]["jobs"][0]["attempt"] == 1, "it stopped once for that"


def wait(made: Loop, *gpus: int, **fields: Any) -> QueuedHyperJob:
    """Let another HyperJob wait; the loop starts it with the room of its grant."""
    other = unit("other", *gpus, age=50, **fields)
    update(made.state, other.key, other, now=made.now)
    return other


@pytest.mark.parametrize(
    ("priority", "asks", "shares", "size"),
    [
        pytest.param(1000, (8,), {"a": 40, "b": 16}, ("56", "MadeWay"), id="pods of the last one"),
        pytest.param(1000, (24,), {"a": 40}, ("40", "MadeWay"), id="all of the last one"),
        pytest.param(1000, (24, 16), {"a": 24}, ("24", "MadeWay"), id="also of the first one"),
        pytest.param(0, (8,), {"a": 40, "b": 24}, ("64", "LargestWithRoom"), id="not urgent"),
    ],
)
def test_a_split_makes_way_with_pods_and_goes_on_where_the_rest_ran(
    priority: int, asks: tuple[int, ...], shares: dict[str, int], size: tuple[str, str]
) -> None:
    made = loop(split(16, 64), a=40, b=24)
    made.turns()
    other = wait(made, *asks, priority=priority)
    made.turns(4)
    if not priority:
        assert (made.shares, made.size) == (shares, size)
        return
    assert made.size == size
    assert made.hyperjobs["hj"]["status"]["stop"]["cause"] == "Preempted"
    made.turns(70)
    assert made.shares == shares
    assert len(made.state.entries[other.key].holding) == len(asks)


@pytest.mark.parametrize(
    ("pods", "size"),
    [(1, "24"), (2, "16"), (3, "8"), (4, "")],
    ids=["one node", "two", "all that it can spare", "it stops"],
)
def test_no_more_nodes_make_way_than_the_other_needs(pods: int, size: str) -> None:
    made = loop(split(8, 32), a=32)
    made.turns()
    names = [f"p{index}" for index in range(4)]
    own = [replace(held(each, 8, job="hj-trainer-0"), namespace="default") for each in names]
    other = unit("other", 8 * pods, priority=1000, age=50)
    request = replace(request_of(on_nodes(pods, 8)), name="other-0")
    parts = (replace(other.parts[0], request=request),)
    update(made.state, other.key, replace(other, parts=parts), now=made.now)
    update(made.state, KEY, unit_of(made.observe("hj")), now=made.now)
    nodes = view(node(f"n{index}", 8, each) for index, each in enumerate(own))
    schedule(made.state, (seen(nodes),), now=made.now)
    assert making_way(made.state) == {KEY: (("trainer", size),) if size else ()}


def test_a_stopped_split_waits_with_no_size_until_its_old_objects_are_gone() -> None:
    made = loop(split(16, 16, 48), a=8, b=8)
    made.turns()
    wait(made, 8, 8, priority=1000)
    made.turn()
    made.jobs.clear()
    for policy in made.policies.values():
        policy["metadata"]["deletionTimestamp"] = rfc3339(made.now)
    left = unit_of(made.observe("hj"))
    assert (left.parts, left.variants) == ((), ())


def test_what_a_split_has_beyond_its_wish_is_for_any_that_waits() -> None:
    made = loop(split(16, 32, 64), a=40, b=24)
    made.turns()
    assert made.shares == {"a": 40, "b": 24}
    wait(made, 24)
    made.turns(2)
    assert made.size == ("40", "MadeWay")
    made.turns(70)
    assert made.shares == {"a": 40}


def test_shares_that_it_kept_are_shared_out_anew_where_they_have_no_room() -> None:
    made = loop(split(16, 64), a=40, b=24, c=0)
    made.turns()
    wait(made, 24, priority=1000)
    made.turns(80)
    assert made.shares == {"a": 40}
    assert made.held("b") == {GPU: 24 * NANO, "pods": 24 * NANO}
    since = made.now - 99 * LAG
    made.clusters["a"] = cluster("a", 40, unusable="lost", not_ready_since=since)
    made.clusters |= {"c": cluster("c", 24), "d": cluster("d", 16)}
    made.turns(16)
    assert (made.shares, made.size) == ({"c": 24, "d": 16}, ("40", "LargestThatIsLeft"))


three_numbers = st.lists(st.integers(1, 10), min_size=3, max_size=3).map(sorted)


@settings(max_examples=50, deadline=None)
@given(
    free=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    bounds=three_numbers,
    another=st.none() | three_numbers,
    quorum=st.booleans(),
    acts=st.lists(
        st.tuples(
            st.sampled_from(["lost", "back", "urgent", "gone", "time", "dies"]), st.integers(0, 5)
        ),
        max_size=5,
    ),
)
def test_it_is_within_the_bounds_of_its_alternative_in_whole_pods_whatever_happens(
    free: list[int],
    bounds: list[int],
    another: list[int] | None,
    quorum: bool,
    acts: list[tuple[str, int]],
) -> None:
    """It is a split, or with a quorum sub-jobs of a pod, of which each has its own alternative."""
    room = {f"c{place}": 8 * number for place, number in enumerate(free)}
    raw = split(*(8 * each for each in bounds))
    within = {"": bounds, "own": bounds, "other": bounds if quorum else another}
    (group_,) = raw["spec"]["replicatedJobs"]
    if quorum:
        del group_["splitPolicy"]
        group_ |= dict(zip(("minReplicas", "replicas", "maxReplicas"), bounds, strict=True))
        group_["templateSpec"]["tasks"][0]["replicas"] = 1
        raw["spec"]["quorum"] = 1
    if another is not None:
        other: Object = {"name": "other", "clusterNames": ["c0"]}
        if not quorum:
            policy = split(*(8 * each for each in another))["spec"]["replicatedJobs"][0]
            other["splitPolicy"] = policy["splitPolicy"]
        group_["alternatives"] = [{"name": "own"}, other]
    made = loop(raw, **room)
    for act, number in [("time", 0), *acts]:
        name = f"c{number % len(free)}"
        match act:
            case "lost":
                since = made.now - 99 * LAG
                lost = cluster(name, room[name], unusable="lost", not_ready_since=since)
                made.clusters[name] = lost
            case "back":
                made.clusters[name] = cluster(name, room[name])
            case "urgent":
                update(made.state, "ns/other", None, now=made.now)
                wait(made, 8 * (number + 1), priority=1000)
            case "gone":
                update(made.state, "ns/other", None, now=made.now)
            case "dies":
                made.turn(dies_after=number % 3)
            case "time":
                made.turns(3, seconds=300)
        for turn in range(12):
            made.turn(10)
            (known,) = made.hyperjobs["hj"]["status"]["alternatives"]
            size = size_in(known["name"]) * (8 if quorum else 1)
            shape = known["name"].rpartition(" ")[2] if " " in known["name"] else ""
            least, _, most = within[shape] or bounds
            assert 8 * least <= size <= 8 * most
            running = made.hyperjobs["hj"]["status"]["state"]["phase"] == "Running"
            settled = turn == 11 or not quorum  # a pass deletes what an earlier one gave up
            if running and settled and not made.hyperjobs["hj"]["status"].get("stop"):
                assert sum(made.shares.values()) == size
                assert all(number % 8 == 0 for number in made.shares.values())
            for where, number in made.shares.items():
                assert number + made.held(where).get(GPU, 0) // NANO <= room[where]
    held = made.state.entries[KEY].holding.values() if KEY in made.state.entries else ()
    charged = sum(part.request.demand[GPU] for part, _ in held)
    others = made.state.entries.get("ns/other")
    kept = sum(p.request.demand[GPU] for p, _ in others.holding.values()) if others else 0
    assert made.state.usage.used("default").get(GPU, 0) == charged + kept
