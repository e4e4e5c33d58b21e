"""The accelerators of each node, by who holds them."""

from hyperjob.client.nodeuse import nodes
from hyperjob.client.summary import read
from hyperjob_engine.model.members import NodeState, Taint
from tests.unit.controller.views import held, node, view

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
