"""A member cluster: what it reports of its nodes and of the pods of its vcjobs."""

from hyperjob_engine.model.request import PodGroup
from hyperjob_engine.resources import whole
from hyperjob_sandbox.simulate.member import Member, Pods
from hyperjob_sandbox.simulate.nodes import Nodes

GPU = "nvidia.com/gpu"


def pods(key: str, gpus: int, number: int) -> Pods:
    return Pods(key, f"uid-{key}", (PodGroup({GPU: whole(gpus), "cpu": whole(1)}, number),))


def test_a_summary_has_the_nodes_that_are_not_out_and_the_pods_with_and_without_nodes() -> None:
    nodes = Nodes([("n", {GPU: 8, "cpu": 32, "pods": 10}, 3)])
    nodes.all[-1].out = True
    placed: list[str] = []
    member = Member("east", nodes, placed=lambda each: placed.append(each.key))
    member.take(pods("runs", 4, 2))
    member.take(pods("waits", 8, 3))
    assert placed == ["runs"]
    allocatable, allocated, allocating = member.summary()
    assert allocatable == {GPU: whole(16), "cpu": whole(64), "pods": whole(20)}
    assert allocated == {GPU: whole(8), "cpu": whole(2)}
    assert allocating == {GPU: whole(24), "cpu": whole(3)}
    member.drop("runs")
    assert member.summary() == (allocatable, {}, allocating)
