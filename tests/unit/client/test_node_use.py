"""The accelerators of each node, by who holds them."""

from hyperjob.client.nodeuse import nodes
from hyperjob.client.summary import read
from hyperjob_engine.model.members import NodeState, Taint
from hyperjob_page.pages.nodes import bar_of, states
from tests.unit.engine.views import held, node, view

OURS = read(
    {
        "metadata": {"namespace": "ns", "name": "train", "uid": "u"},
        "spec": {"replicatedJobs": []},
        "status": {"jobs": [{"name": "train-w-0", "phase": "Running", "cluster": "east"}]},
    }
)


def test_each_node_says_who_holds_its_accelerators() -> None:
    busy = node("a", 8, held("one", 4, job="train-w-0"), held("two", 2))
    away = node("b", 8, state=NodeState.CORDONED, taints=(Taint("gpu", "", "NoSchedule"),))
    first, second = nodes({"east": view([busy, away])}, [OURS])
    assert (first.node, first.allocatable, first.free) == ("a", 8, 2)
    assert (first.others, first.hyperjobs) == (2, {"ns/train": 4})
    assert (second.state, second.free, second.taints) == ("Cordoned", 8, ("gpu:NoSchedule",))


def test_nodes_are_in_the_order_in_which_people_count() -> None:
    made = [node(name, 8) for name in ("gpu-10", "gpu-9b", "gpu-1", "cpu", "gpu-9a")]
    found = [each.node for each in nodes({"east": view(made)}, [])]
    assert found == ["cpu", "gpu-1", "gpu-9a", "gpu-9b", "gpu-10"]


def test_the_page_counts_nodes_by_state() -> None:
    found = nodes(
        {
            "east": view(
                [
                    node("a", 8, held("one", 4, job="train-w-0"), held("two", 2)),
                    node("b", 8, held("three", 2)),
                    node("c", 8),
                    node("d", 8, held("four", 8), state=NodeState.CORDONED),
                    node("e", 8, state=NodeState.NOT_READY),
                    node("f", 0),
                ]
            )
        },
        [OURS],
    )
    assert states(found) == [
        ("free", 2),
        ("with pods of HyperJobs", 1),
        ("with other work only", 1),
        ("cordoned", 1),
        ("not ready", 1),
    ]


def test_the_bar_of_a_node_has_each_holder_and_what_nobody_can_use() -> None:
    use, away = nodes(
        {
            "east": view(
                [
                    node("a", 8, held("one", 4, job="train-w-0"), held("two", 2)),
                    node("b", 8, held("three", 2), state=NodeState.CORDONED),
                ]
            )
        },
        [OURS],
    )
    bar = bar_of(use, {"ns/train": "q"}, lambda _: 3)
    assert [(each.kind, each.label, each.number, each.queue) for each in bar.segments] == [
        ("used", "ns/train", 4, "q"),
        ("other", "other work", 2, ""),
        ("free", "free", 2, ""),
    ]
    bar = bar_of(away, {}, lambda _: 0)
    assert [(each.kind, each.label, each.number) for each in bar.segments] == [
        ("other", "other work", 2),
        ("lost", "cordoned", 6),
    ]
    assert bar.free == 0
