"""Gangs of pods are placed whole on nodes, tightly, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.model.request import PodGroup
from hyperjob_engine.resources import whole
from hyperjob_sandbox.simulate.nodes import Nodes

GPU, AMD = "nvidia.com/gpu", "amd.com/gpu"


def groups(*pods: tuple[int, int]) -> list[PodGroup]:
    return [PodGroup({GPU: whole(gpus)}, number) for gpus, number in pods]


@pytest.mark.parametrize(
    ("pods", "fits"),
    [([(8, 2)], True), ([(8, 3)], False), ([(5, 2)], True), ([(5, 3)], False), ([(4, 4)], True)],
)
def test_a_gang_fits_where_each_pod_finds_a_node(pods: list[tuple[int, int]], fits: bool) -> None:
    nodes = Nodes([("n", {GPU: 8}, 2)])
    assert (nodes.place("job", groups(*pods)) is not None) == fits
    assert nodes.free() == (16 - sum(a * b for a, b in pods) if fits else 16)


def test_small_pods_fill_nodes_that_are_in_use() -> None:
    nodes = Nodes([("n", {GPU: 8}, 2)])
    nodes.place("a", groups((2, 1)))
    nodes.place("b", groups((3, 1)))
    assert sorted(node.free.get(GPU, 0) for node in nodes.all) == [whole(3), whole(8)]
    assert nodes.splinters() == 3


def test_a_node_with_two_kinds_of_accelerators_counts_those_of_which_it_has_the_most() -> None:
    nodes = Nodes([("n", {GPU: 8, AMD: 4}, 1)])
    seen = [(nodes.free(), nodes.splinters())]
    for number in (6, 2):
        nodes.place(f"job-{number}", groups((1, number)))
        seen.append((nodes.free(), nodes.splinters()))
    nodes.place("other", [PodGroup({AMD: whole(1)}, 1)])
    assert [*seen, (nodes.free(), nodes.splinters())] == [(8, 0), (2, 2), (0, 0), (0, 0)]


def test_a_node_that_is_out_has_nothing_free() -> None:
    nodes = Nodes([("n", {GPU: 8}, 2)])
    nodes.place("job", groups((3, 1)))
    used = next(node for node in nodes.all if node.held)
    assert (nodes.free(), nodes.splinters()) == (13, 5)
    used.out = True
    assert (nodes.free(), nodes.splinters()) == (8, 0)
    assert nodes.allocatable() == {GPU: whole(8), "pods": whole(110)}


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 6)), max_size=12))
def test_what_is_given_back_is_free_again(asked: list[tuple[int, int]]) -> None:
    nodes = Nodes([("n", {GPU: 8}, 4)])
    held = {}
    for number, each in enumerate(asked):
        spots = nodes.place(str(number), groups(each))
        if spots is not None:
            held[str(number)] = spots
    assert all(0 <= node.free.get(GPU, 0) <= whole(8) for node in nodes.all)
    for key, spots in held.items():
        nodes.give_back(key, spots)
    assert nodes.free() == 32
    assert not any(node.held for node in nodes.all)
