"""Clusters, queues and classes of a scenario as objects of the control plane. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import VCJOB_API_VERSION, VCJOB_KIND
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube.resources import CLUSTERS, PRIORITY_CLASSES, QUEUES
from hyperjob_core.virtualtime import START
from hyperjob_engine.resources import (
    Resources,
    accelerator_of,
    parse_resources,
    quantities,
    scale,
    total,
)
from hyperjob_queueing.queues import Tree, parse_queue
from hyperjob_sandbox.simulate.workload import NodeGroup, Scenario, Site

Groups = Sequence[tuple[str, Mapping[str, object], int]]

URGENT: Final = "urgent"
_NODE: Final = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}
_USUAL: Final = {"east": 8, "north": 16, "south": 16, "west": 32}


def usual_sites() -> list[Site]:
    """Return four clusters of 8 to 32 nodes with eight GPUs each, the default clusters."""
    return [site(name, [("gpu", _NODE, number)]) for name, number in _USUAL.items()]


def site(name: str, nodes: Sequence[NodeGroup] | Groups, *, spec: Object | None = None) -> Site:
    """Return a member cluster with groups of nodes: name, allocatable and number of each.

    `spec` is the spec of its Cluster. The Cluster reports no resource models: Karmada's default
    models have no accelerators.
    """
    groups = [NodeGroup(*each) for each in nodes]
    allocatable = _allocatable(groups)
    number = sum(each.number for each in groups)
    since = rfc3339(START)
    kept = {key: value for key, value in (spec or {}).items() if key != "resourceModels"}
    cluster: Object = {
        **CLUSTERS.head,
        "metadata": {"name": name},
        "spec": kept,
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
            "apiEnablements": [
                {
                    "groupVersion": VCJOB_API_VERSION,
                    "resources": [{"name": "jobs", "kind": VCJOB_KIND}],
                }
            ],
            "nodeSummary": {"totalNum": number, "readyNum": number},
            "resourceSummary": {"allocatable": quantities(allocatable)},
        },
    }
    return Site(name=name, cluster=cluster, nodes=groups)


def queue(name: str, spec: Object | None = None) -> Object:
    """Return an Open Queue; without a spec the Queue lends its unused share."""
    return {
        **QUEUES.head,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True} if spec is None else spec,
        "status": {"state": "Open"},
    }


def urgent_class() -> Object:
    """Return the PriorityClass of the generator's urgent jobs."""
    return {
        **PRIORITY_CLASSES.head,
        "metadata": {"name": URGENT},
        "value": 1000,
    }


def shares_of(scenario: Scenario) -> dict[str, float]:
    """Return the share of each queue, as a part of all accelerators."""
    have = _allocatable(each for member in scenario.sites for each in member.nodes)
    measure = accelerator_of(have)
    if measure is None:
        return {}
    tree = Tree((parse_queue(each) for each in scenario.queues), have)
    return {name: amount / have[measure] for name, amount in tree.entitled(measure).items()}


def _allocatable(groups: Iterable[NodeGroup]) -> Resources:
    return total(scale(parse_resources(each.allocatable), each.number) for each in groups)


def missing_queues(queues: Iterable[Object], wanted: Iterable[str]) -> list[str]:
    """Return the queues of jobs without a Queue object."""
    known = {each["metadata"]["name"] for each in queues}
    return sorted(set(wanted) - known)
