"""How placement packs pods on nodes: its bounds, its trials, its counts, and the sets it tries."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.model.members import ANY_NODE
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.ground import Ground, Kind
from hyperjob_engine.placement.items import Bundle, Item, PodsOfTask, Unfit, kind_of
from hyperjob_engine.placement.packing import (
    _blame,
    _hold_in_any_order,
    _is_exact,
    _loss,
    _one_block_fits,
    _orders,
)
from hyperjob_engine.placement.search import _bound, _domain_sets, _holds, assign
from hyperjob_engine.placement.trial import Trial
from tests.unit.controller.builders import GPU, cluster, request
from tests.unit.controller.views import held, job, node, task, view

RACKS = {"r0": (1, ["n0"]), "r1": (1, ["n1"])}
TWO = Ground(view([node("n0"), node("n1")], tiers=RACKS))
ON = "requiredDuringSchedulingIgnoredDuringExecution"


def kind(gpus: int, **how: Any) -> Kind:
    return kind_of(job(task(1, gpus, **how)).pods[0])


def apart(app: str, *others: str, key: str = "kubernetes.io/hostname") -> Kind:
    """Pods of one GPU with a label; with `others` they are apart from pods with these labels."""
    rule = {"key": "app", "operator": "In", "values": list(others)}
    term = {"topologyKey": key, "labelSelector": {"matchExpressions": [rule]}}
    affinity = {"podAntiAffinity": {ON: [term]}} if others else {}
    return kind(1, labels={"app": app}, affinity=affinity)


WHOLE, HALF, ONE = kind(8), kind(4), kind(1)


@pytest.mark.parametrize(
    ("ours", "others", "lost"),
    [
        ((("cpu", 4),), (("cpu", 4),), 1),
        ((("cpu", 4),), (("cpu", 5),), 2),
        ((("cpu", 4), (GPU, 1)), (("cpu", 5), (GPU, 3)), 3),
        ((("cpu", 4),), (("memory", 9),), 0),
        ((), (("cpu", 4),), 0),
    ],
)
def test_a_pod_takes_the_room_of_as_many_others_as_its_largest_resource_does(
    ours: tuple[tuple[str, int], ...], others: tuple[tuple[str, int], ...], lost: int
) -> None:
    assert _loss(Kind(ours, ANY_NODE), Kind(others, ANY_NODE)) == lost


@pytest.mark.parametrize(
    ("pods", "domain", "hold"),
    [
        pytest.param({WHOLE: 2}, None, True, id="two whole nodes"),
        pytest.param({WHOLE: 3}, None, False, id="three of two whole nodes"),
        pytest.param({WHOLE: 1, ONE: 1}, None, True, id="a small one takes one node at most"),
        pytest.param({WHOLE: 1, ONE: 2}, None, False, id="two small ones may take both nodes"),
        pytest.param({WHOLE: 1}, 0, True, id="one in one rack"),
        pytest.param({WHOLE: 1, ONE: 1}, 0, False, id="two in one rack"),
        pytest.param({apart("x"): 1, apart("y", "x"): 1}, None, True, id="one keeps off a node"),
        pytest.param({apart("x"): 2, apart("y", "x"): 1}, None, False, id="two may keep off both"),
        pytest.param({apart("x", "x"): 2}, None, True, id="one on each node"),
        pytest.param({apart("x", "x"): 3}, None, False, id="three for two nodes"),
        pytest.param({apart("x"): 1, apart("y", "x", key="zone"): 1}, None, False, id="by zone"),
        pytest.param({apart("x", "x", key="zone"): 1}, None, False, id="alone in a zone"),
    ],
)
def test_pods_hold_in_any_order_if_each_kind_has_room_beside_the_worst_of_the_others(
    pods: dict[Kind, int], domain: int | None, hold: bool
) -> None:
    assert _hold_in_any_order(TWO, Counter(pods), Counter(pods), domain) is hold


def test_the_sum_over_nodes_is_exact_for_all_pods_that_are_apart_by_node_at_most() -> None:
    kinds = [ONE, apart("x", "x"), apart("x", "y", key="zone"), apart("x", "x", key="zone")]
    assert [_is_exact(each) for each in kinds] == [True, True, True, False]


def block(*tasks: tuple[Kind, int], tier: int = 1, parts: tuple[Any, ...] = ()) -> Bundle:
    return Bundle(tier, "", tuple((PodsOfTask(each, n), 1) for each, n in tasks), parts)


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({block((WHOLE, 1)): 1}, True),
        ({block((WHOLE, 2)): 1}, False),
        ({block((WHOLE, 2), tier=2): 1}, True),
        ({block((WHOLE, 1)): 2}, False),
        ({block((ONE, 1), parts=((block((ONE, 1)), 1),)): 1}, False),
        ({block((ONE, 1)): 1, block((HALF, 1)): 1}, False),
        ({PodsOfTask(ONE, 1): 1}, False),
    ],
)
def test_one_block_without_parts_is_accepted_at_once_where_a_hypernode_holds_it(
    wanted: dict[Any, int], fits: bool
) -> None:
    assert _one_block_fits(TWO, wanted) is fits


def test_all_orders_of_three_kinds_are_tried_and_two_of_more() -> None:
    kinds = [kind(gpus) for gpus in (1, 2, 3, 4)]
    assert [list(order) for order in _orders(kinds)] == [kinds, kinds[::-1]]
    assert len(_orders(kinds[:3])) == 6
    assert {tuple(order) for order in _orders(kinds[:2])} == {
        tuple(kinds[:2]),
        (kinds[1], kinds[0]),
    }
    assert _orders(kinds[:2])[0] == {kinds[0]: 0, kinds[1]: 1}


def test_pods_that_keep_earlier_ones_out_are_blamed_by_the_same_kind_else_by_their_first() -> None:
    wanted: dict[Item, int] = {PodsOfTask(HALF, 2): 3, PodsOfTask(ONE, 5): 1}
    assert _blame(wanted, Unfit(ONE, 9, 4)) == Unfit(ONE, 5, 0)
    rack = block((WHOLE, 1))
    assert _blame(wanted, Unfit(WHOLE, 9, 4, rack)) == Unfit(HALF, 6, 0, rack)


def trial(*kinds: Kind, on: Ground = TWO, **how: Any) -> Trial:
    return Trial(on, order={each: number for number, each in enumerate(kinds)}, **how)


@pytest.mark.parametrize(
    ("items", "failed"),
    [
        ({PodsOfTask(WHOLE, 2): 1}, None),
        ({PodsOfTask(WHOLE, 5): 1}, Unfit(WHOLE, 5, 2)),
        ({PodsOfTask(HALF, 1): 3, PodsOfTask(WHOLE, 1): 1}, Unfit(WHOLE, 1, 0)),
        ({block((WHOLE, 1)): 2}, None),
        ({block((WHOLE, 1)): 3}, Unfit(WHOLE, 3, 2, block((WHOLE, 1)))),
        ({block((HALF, 3)): 2}, Unfit(HALF, 6, 0, block((HALF, 3)))),
        ({block((HALF, 2)): 1, PodsOfTask(HALF, 3): 1}, Unfit(HALF, 3, 2)),
    ],
)
def test_a_trial_names_the_first_pods_without_a_node(
    items: dict[Any, int], failed: Unfit | None
) -> None:
    assert trial(HALF, WHOLE).place(items) == failed


def test_pods_of_others_take_what_they_find_and_the_rest_of_them_does_not_count() -> None:
    tried = trial(WHOLE, ONE)
    tried.settle({WHOLE: 5})
    assert tried.place({PodsOfTask(ONE, 1): 1}) == Unfit(ONE, 1, 0)
    again = trial(WHOLE, ONE)
    again.settle({WHOLE: 1})
    assert again.place({PodsOfTask(ONE, 8): 1}) is None


def test_the_first_pods_of_all_tasks_come_before_the_second_ones() -> None:
    tasks = {PodsOfTask(WHOLE, 3): 1, PodsOfTask(ONE, 2): 2}
    turns = trial(ONE, WHOLE)._in_turn(tasks)
    assert turns == [ONE, ONE, WHOLE, ONE, ONE, WHOLE, WHOLE]
    assert trial()._in_turn({}) == []
    shuffled = [trial(ONE, WHOLE, shuffle=number)._in_turn(tasks) for number in range(1, 9)]
    for each in shuffled:
        assert (Counter(each[:3]), Counter(each[3:6]), each[6:]) == (
            {ONE: 2, WHOLE: 1},
            {ONE: 2, WHOLE: 1},
            [WHOLE],
        )
    assert len({tuple(each) for each in shuffled}) > 2


@given(size=st.integers(1, 200), draw=st.integers(0, 9), number=st.integers(0, 99))
def test_a_draw_orders_equal_nodes_and_leaves_none_out(size: int, draw: int, number: int) -> None:
    positions = list(range(5, 5 + size))
    drawn = trial(draw=draw)._drawn(positions, number)
    assert sorted(drawn) == positions
    assert draw > 0 or drawn == positions


def test_draws_differ() -> None:
    firsts = {trial(draw=draw)._drawn(range(100), 0)[0] for draw in range(9)}
    assert len(firsts) > 4


# Nodes of a rack each: 8 GPUs, 5 of 8, and 8 of a node that takes no pods of HALF's selector.
MIXED = Ground(
    view(
        [
            node("n0", labels={"zone": "x"}),
            node("n1", 8, held("p", 3), labels={"zone": "y"}),
            node("n2", labels={"zone": "x"}),
        ],
        tiers={"r0": (1, ["n0", "n1"]), "r1": (1, ["n2"])},
    )
)


def prefers(*weights: tuple[int, str]) -> Kind:
    terms = [
        {
            "weight": weight,
            "preference": {
                "matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]
            },
        }
        for weight, zone in weights
    ]
    soft = {"preferredDuringSchedulingIgnoredDuringExecution": terms}
    return kind(1, affinity={"nodeAffinity": soft})


@pytest.mark.parametrize(
    ("wish", "leanings"),
    [
        (ONE, [0, 0, 0]),
        (prefers((1, "x")), [200, 0, 200]),
        (prefers((1, "x"), (3, "y")), [66, 200, 66]),
        (prefers((9, "z")), [0, 0, 0]),
    ],
)
def test_preferred_nodes_score_up_to_200_in_whole_percent_of_the_best(
    wish: Kind, leanings: Sequence[int]
) -> None:
    assert list(MIXED.leanings(wish)) == leanings
    assert list(MIXED.leanings(wish)) == leanings, "the answer that it keeps"


def test_nodes_are_counted_for_each_kind_for_each_hypernode_and_by_equal_ones() -> None:
    rack, other = MIXED.network.lowest[0], MIXED.network.lowest[2]
    assert list(MIXED.counts(HALF)) == [2, 1, 2]
    assert (MIXED.most(HALF), MIXED.most_in(HALF, rack), MIXED.most_in(HALF, other)) == (5, 3, 2)
    assert MIXED.free_in(rack)[GPU] == 13 * 10**9
    assert sorted(MIXED.alike(HALF, None)) == sorted([(rack, [0]), (rack, [1]), (other, [2])])
    assert sorted(MIXED.alike(WHOLE, rack)) == [(rack, [0])]
    assert [MIXED.domain(1, key) for key in ("kubernetes.io/hostname", "zone", "row")] == [
        "n1",
        "y",
        None,
    ]


def wanted(name: str, gpus: int, **how: Any) -> PlacementRequest:
    return request(f"hj-{name}", gpus, **how)


def test_a_set_of_clusters_takes_at_most_what_its_clusters_hold_of_each_kind_alone() -> None:
    kinds = [wanted("a", 8), wanted("b", 3, preferred="y", required=True)]
    room = FreeRoom.of([cluster("x", 17), cluster("y", 9)], ())
    holds = [_holds(kinds, room, name) for name in "xy"]
    assert holds == [[2, 0], [1, 3]]
    assert _bound([5, 2], holds) == 3 + 2
    assert _bound([2, 9], holds) == 2 + 3
    assert _bound([5, 5], []) == 0
    taken = FreeRoom.of([cluster("x", -4)], ())
    assert _holds([wanted("a", 8)], taken, "x") == [0], "more is in use than there is"


def test_the_sets_that_could_hold_most_come_first_and_all_have_the_clusters_in_use() -> None:
    clusters = [cluster("a", 8), cluster("b", 16), cluster("c", 24), cluster("d", 8)]
    mates = [wanted(str(number), 8) for number in range(3)]
    room = FreeRoom.of(clusters, [("trainer", "a")])
    sets = [(sorted(names), most) for names, most in _domain_sets(mates, room, 2)]
    assert sets == [(["a", "c"], 3), (["a", "b"], 3), (["a", "d"], 2)]
    assert list(_domain_sets(mates, room, 1)) == [(frozenset("a"), 3)], "no further cluster"
    mixed = [*mates, wanted("small", 4)]
    assert [most for _, most in _domain_sets(mixed, room, 2)] == [4, 4, 3]


@pytest.mark.parametrize(("least", "placed"), [(0, {"a": 2}), (2, {"a": 2}), (3, {})])
def test_with_one_cluster_the_largest_is_chosen_unless_too_few_fit(
    least: int, placed: dict[str, int]
) -> None:
    room = FreeRoom.of([cluster("a", 16), cluster("b", 8)], ())
    mates = [wanted(str(number), 8) for number in range(3)]
    found = assign(mates, room, max_domains=1, least=least)
    assert Counter(found.assigned.values()) == placed
    assert not room.assigned, "the room that was given stays"


def test_a_search_finds_the_order_in_which_all_fit() -> None:
    room = FreeRoom.of([cluster("a", 10), cluster("b", 9)], ())
    mates = [wanted(str(number), gpus) for number, gpus in enumerate((6, 5, 4, 4))]
    found = assign(mates, room, max_domains=None)
    assert len(found.assigned) == 4
