"""The limit of a queue, the turns of queues, and which sub-jobs of a gang exist already."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_engine.resources import parse_resources
from hyperjob_queueing.queues import Queue, Tree
from hyperjob_queueing.usage import Limit, QueueUsage
from hyperjob_queueing.workload import Shapes
from tests.unit.engine.builders import GPU
from tests.unit.queueing.queueworld import queue, unit

TREES = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.tuples(st.sampled_from("-abcdefgh"), st.integers(1, 3), st.integers(0, 1)),
    max_size=8,
)
USES = st.dictionaries(st.sampled_from("abcdefghx"), st.integers(0, 3), min_size=1)


def test_a_limit_tells_what_a_queue_uses_of_a_resource_that_it_does_not_use() -> None:
    account = QueueUsage(Tree([queue("x", gpus=4)], {}))
    account.add("x", parse_resources({"cpu": "1"}))
    demand = parse_resources({GPU: "6"})
    expected = Limit("x", GPU, 4 * NANO, used=0, missing=2 * NANO, ever=False, asked=6 * NANO)
    assert account.limit("x", demand) == expected
    account.add("x", parse_resources({GPU: "3"}))
    found = account.limit("x", parse_resources({GPU: "2"}))
    assert found == replace(expected, used=3 * NANO, missing=NANO, ever=True, asked=2 * NANO)


def test_sub_jobs_that_were_granted_or_made_are_part_of_a_shape() -> None:
    whole = replace(unit("j", 1, 2, 4), clusters={"j-1": "b"})
    waiting = whole.parts[2:]
    shapes = Shapes()
    alone = shapes.of(whole, waiting, needed=1)
    promised = shapes.of(whole, waiting, needed=1, promised={"j-0": "a", "j-1": "c"})
    assert alone.needs.standing == (("trainer", "b"),)
    assert promised.needs.standing == (("trainer", "a"), ("trainer", "b"))


@given(TREES, USES, USES)
def test_queues_take_turns_as_if_those_before_them_did_not_ask(
    queues: dict[str, tuple[str, int, int]], used: dict[str, int], asked: dict[str, int]
) -> None:
    tree = Tree(
        [
            Queue(name=name, parent="root" if parent == "-" else parent, weight=weight, priority=p)
            for name, (parent, weight, p) in queues.items()
        ],
        {GPU: 8},
    )
    usage = QueueUsage(tree)
    for name, number in used.items():
        usage.add(name, {GPU: number})
    asking = {name: {GPU: number} for name, number in asked.items()}
    turns = []
    while asking:
        turns.append(next(usage.turns(asking)))
        del asking[turns[-1]]
    assert list(usage.turns({name: {GPU: number} for name, number in asked.items()})) == turns
