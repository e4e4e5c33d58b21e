"""The accelerators of each node, by who holds them."""

from hyperjob.client.summary import read
from hyperjob.client.usage import nodes
from hyperjob_engine.model.members import NodeState, Taint
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
