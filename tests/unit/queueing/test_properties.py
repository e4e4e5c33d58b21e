"""What holds of our own queue admission whatever is submitted, ends and changes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hyperjob_engine.model.line import WaitCode
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.place import assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources, subtract, total
from hyperjob_queueing.admit import Grant, closed, is_guaranteed, try_to_admit
from hyperjob_queueing.queues import NoConfirmation
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import Settings, admitted, block_of, new_state, set_queues, update
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import GPU, NOW, cluster
from tests.unit.queueing.queueworld import LAG, QueueWorld, queue, unit, world

NANO = 10**9
QUEUES = ("x", "y", "z")

queue_sets = st.tuples(
    *(
        st.builds(
            queue,
            st.just(name),
            gpus=st.none() | st.integers(0, 40),
            state=st.sampled_from(("Open", "Open", "Open", "Closed")),
            weight=st.integers(1, 4),
            priority=st.integers(0, 1),
            dequeueStrategy=st.sampled_from(("traverse", "traverse", "fifo")),
            guarantee=st.sampled_from((0, 0, 0, 8)),
            parent=st.sampled_from(("root", "up")),
        )
        for name in QUEUES
    ),
    st.builds(queue, st.just("up"), gpus=st.none() | st.integers(8, 60)),
)
cluster_sets = st.dictionaries(st.sampled_from("abc"), st.integers(4, 32), min_size=1)


@st.composite
def submissions(draw: st.DrawFn, *, most: int = 12) -> list[QueuedHyperJob]:
    made = []
    for number in range(draw(st.integers(1, most))):
        sizes = draw(st.lists(st.integers(1, 24), min_size=1, max_size=3))
        made.append(
            unit(
                f"j{number}",
                *sizes,
                queues=tuple(draw(st.sampled_from(QUEUES)) for _ in sizes)
                if draw(st.booleans())
                else (draw(st.sampled_from(QUEUES)),) * len(sizes),
                priority=draw(st.integers(0, 2)),
                age=draw(st.integers(0, 5)),
                minimum=draw(st.none() | st.integers(1, len(sizes))),
                max_domains=draw(st.none() | st.integers(1, 2)),
                only_on=("a",) if draw(st.booleans()) and draw(st.booleans()) else (),
            )
        )
    return made


def check_limits(made: QueueWorld) -> None:
    """Nothing is above a capability, above what a cluster has, or half a gang."""
    tree = made.state.usage.tree
    for name, known in tree.queues.items():
        if GPU in known.capability:
            used = sum(
                part.request.demand[GPU]
                for each in made.units.values()
                for part in each.parts
                if part.name in each.held and name in tree.path(part.queue)
            )
            assert used <= known.capability[GPU], name
    for found in made.clusters():
        assert found.free[GPU] >= 0, found.name
    for each in made.units.values():
        assert not each.made or len(each.made) >= each.minimum


def check_nobody_waits_in_vain(made: QueueWorld) -> None:
    """Whoever waits breaks a rule: tried alone now, beside what heads keep, it is not admitted."""
    state = made.state
    for entry in state.entries.values():
        waiting = entry.waiting
        if waiting is None:
            continue
        block = block_of(state, entry)
        if closed(waiting.shape.queues, state.usage):
            assert block.code in (WaitCode.NOT_OPEN, WaitCode.BEHIND)
        elif block.code is not WaitCode.BEHIND:
            space = (
                state.last.open if is_guaranteed(waiting.parts, state.usage) else state.last.room
            )
            tried = try_to_admit(waiting.parts, waiting.shape.needs, state.usage, space)
            assert not isinstance(tried, Grant), (entry.unit.key, block)


@given(cluster_sets, queue_sets, submissions(), st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_rule_is_broken_and_nobody_waits_in_vain(clusters, queues, units, data) -> None:
    made = world([], *queues, **clusters)
    waiting = list(units)
    for _ in range(8):
        if waiting and data.draw(st.booleans()):
            made.submit(waiting.pop(0))
        elif made.ends and data.draw(st.booleans()):
            made.end(data.draw(st.sampled_from(sorted(made.ends))))
            made.now += LAG
        else:
            made.submit(*waiting)
            waiting.clear()
        # Shares have changed with a round, so the next may begin with another line; that ends soon.
        rounds = iter(range(len(units) + 1))
        while made.decide():
            next(rounds)
        check_limits(made)
        check_nobody_waits_in_vain(made)


def any_way(
    parts: list[tuple[int, str]], least: int, limits: dict[str, int], clusters: dict[str, int]
) -> bool:
    """Tell by trying all whether so many parts, each (GPUs, queue), fit limits and clusters."""
    if not least:
        return True
    if not parts:
        return False
    (gpus, name), rest = parts[0], parts[1:]
    above = [each for each in (name, "up") if each in limits]
    if all(limits[each] >= gpus for each in above):
        lower = {**limits, **{each: limits[each] - gpus for each in above}}
        for where, free in clusters.items():
            left = {**clusters, where: free - gpus}
            if free >= gpus and any_way(rest, least - 1, lower, left):
                return True
    return any_way(rest, least, limits, clusters)


@settings(max_examples=150)
@given(
    cluster_sets,
    st.lists(st.tuples(st.sampled_from((4, 6, 8, 16)), st.sampled_from("xxy")), max_size=5),
    st.dictionaries(st.sampled_from(("x", "y", "up")), st.integers(4, 30)),
    st.integers(1, 4),
)
@example({"a": 32}, [(8, "x"), (8, "x")], {"x": 20}, 2)
@example({"a": 8, "b": 8}, [(8, "x"), (8, "x")], {"x": 24}, 2)
def test_a_gang_is_admitted_exactly_when_enough_of_it_fits_in_some_way(
    clusters, parts, limits, least
) -> None:
    """Sub-jobs are of unequal sizes and queues, and fewer than all must start together."""
    parts = [(16, "x"), *parts]
    least = min(least, len(parts))
    queues = [queue(name, gpus=limits.get(name), parent="up") for name in "xy"]
    made = world([], *queues, queue("up", gpus=limits.get("up")), **clusters)
    sizes, names = zip(*parts, strict=True)
    made.submit(unit("gang", *sizes, queues=names, minimum=least))
    made.decide()
    assert bool(made.running()) is any_way(parts, least, limits, clusters)
    check_limits(made)


@given(cluster_sets, queue_sets, submissions(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_order_of_events_changes_nothing(clusters, queues, units, shuffler) -> None:
    one, other = world([], *queues, **clusters), world([], *queues, **clusters)
    one.submit(*units)
    shuffled = list(units)
    shuffler.shuffle(shuffled)
    other.submit(*shuffled)
    assert one.decide() == other.decide()
    assert one.units == other.units


@given(cluster_sets, queue_sets, submissions(), st.integers(1, 6))
@settings(max_examples=40)
def test_a_new_book_goes_on_where_the_old_one_was(clusters, queues, units, ended) -> None:
    made = world(units, *queues, **clusters)
    made.decide()
    for key in sorted(made.ends)[:ended]:
        made.end(key)
    made.now += LAG + timedelta(seconds=1)
    made.submit(*made.units.values())  # as the pass that made the vcjobs of those just granted does
    restarted = replace(
        made, state=new_state(Settings(lag=LAG)), units=dict(made.units), ends=dict(made.ends)
    )
    restarted.set_queues(*queues)
    restarted.submit(*made.units.values())
    for name in ("root", "up", *QUEUES):
        assert restarted.used(name) == made.used(name)
    assert restarted.decide() == made.decide()
    assert restarted.units == made.units


@given(cluster_sets, submissions(), st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nobody_who_passes_delays_the_head(clusters, units, data) -> None:
    """The first that waits starts when it would start if nobody were behind it.

    The room of a HyperJob that passed and has ended counts again after at most LAG.
    """
    units = [
        replace(each, parts=tuple(replace(part, queue="default") for part in each.parts))
        for each in units
    ]
    lengths = {each.key[3:]: data.draw(st.integers(1, 50)) for each in units}
    running = [each for each in units if data.draw(st.booleans())]
    behind = sorted((each for each in units if each not in running), key=lambda each: each.order)
    starts = []
    for waiting in (behind, behind[:1]):
        made = QueueWorld(dict(clusters), lengths)
        made.set_queues(queue("default"))
        made.submit(*running)
        made.decide()
        for each in running:  # who did not fit at first is not part of the story
            if not made.units[each.key].made:
                made.end(each.key)
        made.submit(*waiting)
        made.decide()
        head = behind[0].key if behind else ""
        while made.ends and head and head not in made.started:
            made.advance()
            made.decide()
        if head and head not in made.started:
            made.now += LAG
            made.decide()
        starts.append(made.started.get(head))
    if None in starts:
        assert starts[0] == starts[1]
    else:
        assert starts[0] - starts[1] <= LAG


@given(cluster_sets, queue_sets, submissions(most=8), st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nobody_waits_for_ever(clusters, queues, units, data) -> None:
    """When all that run have ended, whoever still waits could not run on empty clusters either."""
    made = world(units, *queues, **clusters)
    made.lengths = {each.key[3:]: data.draw(st.integers(1, 50)) for each in units}
    made.decide()
    for _ in range(len(units) * 4):
        if made.ends:
            made.advance()
        made.now += LAG
        if not made.decide() and not made.ends:  # the last round may have evicted the last one
            break
    assert not made.ends
    for entry in made.state.entries.values():
        block = block_of(made.state, entry)
        assert block.code in (WaitCode.NOT_OPEN, WaitCode.BEHIND) or entry.waiting is not None
    capacity = total(found.allocatable for found in made.clusters())
    assert made.used("root") == 0
    assert capacity
    made.now += LAG
    assert made.round() == []


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[Cluster], list[QueuedHyperJob]]:
    """Make clusters that others use in part, and HyperJobs that all wait."""
    clusters = [
        cluster(name, draw(st.integers(0, 24)), total=24)
        for name in draw(st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]))
    ]
    units = []
    for number in range(draw(st.integers(1, 8))):
        sizes = draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))
        units.append(
            unit(
                f"j{number}",
                *sizes,
                priority=draw(st.integers(0, 1)),
                age=draw(st.integers(0, 4)),
                minimum=draw(st.just(len(sizes)) | st.integers(1, len(sizes))),
                max_domains=draw(st.none() | st.just(1)),
                only_on=("a",) if draw(st.integers(0, 3)) == 0 else (),
            )
        )
    return clusters, units


def one_after_the_other(clusters: list[Cluster], units: list[QueuedHyperJob]) -> set[str]:
    """Return what starts: each in order takes what is free, if its gang has room there."""
    free, started = {each.name: each.free for each in clusters}, set[str]()
    for each in sorted(units, key=lambda unit: unit.order):
        requests = [part.request for part in each.parts]
        found = fill(clusters, free, requests, each.max_domains)
        if len(found) >= each.minimum:
            started.add(each.key)
            for request in requests:
                if request.name in found:
                    where = found[request.name]
                    free[where] = subtract(free[where], request.demand)
    return started


def fill(
    clusters: list[Cluster],
    free: Mapping[str, Resources],
    requests: Sequence[PlacementRequest],
    max_domains: int | None,
) -> Mapping[str, str]:
    room = Room(clusters)
    room.free = dict(free)
    return assign(requests, room, max_domains=max_domains).assigned


@given(lines())
def test_a_state_with_one_queue_without_limits_orders_and_starts_as_one_line(
    made: tuple[list[Cluster], list[QueuedHyperJob]],
) -> None:
    clusters, units = made
    state = new_state(Settings(lag=LAG), NoConfirmation())
    set_queues(state, ())
    for each in units:
        update(state, each.key, each, now=NOW)
    schedule(state, clusters, now=NOW)
    started = {each.key for each in units if admitted(state, each.key)}
    assert started == one_after_the_other(clusters, units)
