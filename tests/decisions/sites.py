"""Clusters with their nodes, and Queues, as objects of the API server."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.decisions.draw import Draw
from tests.decisions.hyperjobs import GPU

Object = dict[str, Any]
Amounts = dict[str, int]

SINCE = "2026-01-05T00:00:00Z"
"""The time at which virtual time begins."""
READY = {"type": "Ready", "status": "True", "reason": "ClusterReady", "lastTransitionTime": SINCE}


@dataclass
class Site:
    """A member cluster: the free amounts of its nodes, and what pods of others hold of it.

    `foreign` is in its summary alone; `held` is that of a pod on its first node.
    """

    name: str
    size: list[Amounts]
    spec: Object = field(default_factory=dict)
    free: list[Amounts] = field(init=False)
    foreign: int = 0
    held: int = 0
    down: bool = False
    late: float = 0.0
    """Seconds after which the member shows a change."""

    def __post_init__(self) -> None:
        self.free = [dict(each) for each in self.size]

    @property
    def accelerators(self) -> int:
        return self.total(self.size).get(GPU, 0)

    def total(self, nodes: Iterable[Amounts]) -> Amounts:
        found: Amounts = {}
        for node in nodes:
            for name, amount in node.items():
                found[name] = found.get(name, 0) + amount
        return found

    def cluster(self) -> Object:
        return {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": self.name},
            "spec": self.spec,
            "status": {
                "conditions": [READY],
                "apiEnablements": [
                    {
                        "groupVersion": "batch.volcano.sh/v1alpha1",
                        "resources": [{"name": "jobs", "kind": "Job"}],
                    }
                ],
                "nodeSummary": {"totalNum": len(self.size), "readyNum": len(self.size)},
                "resourceSummary": self.summary(waiting={}),
            },
        }

    def summary(self, *, waiting: Amounts) -> Object:
        """Return the resourceSummary; `waiting` is what pods without a node ask for."""
        whole, free = self.total(self.size), self.total(self.free)
        used = {name: amount - free[name] for name, amount in whole.items()}
        used[GPU] = used.get(GPU, 0) + self.foreign
        return {
            "allocatable": quantities(whole),
            "allocated": quantities(used),
            "allocating": quantities(waiting),
        }

    def nodes(self, beat: str = SINCE) -> Iterable[Object]:
        for index, size in enumerate(self.size):
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"{self.name}-{index}"},
                "spec": {},
                "status": {
                    "allocatable": quantities(size),
                    "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}],
                },
            }


def quantities(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def site_of(draw: Draw, name: str, *, most: int = 3) -> Site:
    """Make a cluster of equal nodes with eight accelerators, some of them with four more."""
    node = {"cpu": draw.pick("cpu", (16, 64, 64)), "memory": 2**39, "pods": 110}
    sizes = [8] * draw.number("nodes", 1, most) + [4] * draw.some("small node", 0.2)
    spec = draw.fields(provider=(0.3, ("x",)), region=(0.7, ("eu", "us")), zone=(0.3, ("1", "2")))
    return Site(name, [{**node, GPU: gpus} for gpus in sizes], spec)


def sites_of(draw: Draw, *, least: int = 1, most: int = 3) -> list[Site]:
    return [site_of(draw.at(name), name) for name in "abcd"[: draw.number("sites", least, most)]]


def queue(name: str, *, state: str = "Open", marks: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": marks or {}},
        "spec": {"weight": 1, "reclaimable": True, **spec},
        "status": {"state": state},
    }


def gpus(*amounts: int) -> list[Object]:
    return [{GPU: str(each)} for each in amounts]


def queue_of(draw: Draw, name: str, parents: tuple[str, ...]) -> Object:
    """Make a queue below any of the parents; empty names no parent."""
    spec = draw.fields(
        weight=(0.7, (1, 2, 5)),
        reclaimable=(0.4, (False,)),
        capability=(0.25, gpus(8, 16, 30)),
        guarantee=(0.2, [{"resource": each} for each in gpus(2, 8)]),
        deserved=(0.25, gpus(4, 12)),
        priority=(0.2, (1, 5)),
        dequeueStrategy=(0.3, ("fifo", "traverse")),
    )
    if parent := draw.pick("parent", parents):
        spec["parent"] = parent
    marks = {}
    if draw.some("no preemption", 0.1):
        marks["training.volcano.sh/preemption"] = "disabled"
    if draw.some("estimate", 0.15):
        marks["training.volcano.sh/running-estimate"] = "20m"
    state = draw.pick("state", (*("Open",) * 18, "Closed", "Closing"))
    return queue(name, state=state, marks=marks, **spec)


def queues_of(draw: Draw) -> list[Object]:
    """Make the queues of HyperJobs, some below another one."""
    tree = [queue_of(draw.at("up"), "up", ("", "root"))] if draw.some("up", 0.5) else []
    parents = ("root", "", "up") if tree else ("root", "")
    return [*(queue_of(draw.at(name), name, parents) for name in ("default", "q0", "q1")), *tree]


def urgent() -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
