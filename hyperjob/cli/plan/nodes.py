"""Describe the nodes of a clusters file as resource models of Karmada's Cluster. Pure.

The models let the plan refuse a pod that is larger than every node.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.resources import is_extended, parse_resources

NodeGroup = tuple[Mapping[str, object], int]
"""The allocatable resources of a node, and the number of such nodes."""


def with_node_sizes(cluster: Object, groups: Iterable[NodeGroup]) -> Object:
    """Return an idle Cluster with one grade for each size of its nodes.

    A Cluster with no device, or with several kinds of devices, stays unchanged: grades of
    several resources have no upper limit.
    """
    sizes: Counter[tuple[str, int]] = Counter()
    bare = 0
    for allocatable, number in groups:
        devices = {n: a // NANO for n, a in parse_resources(allocatable).items() if is_extended(n)}
        if not devices:
            bare += number
        for name, amount in devices.items():
            sizes[name, amount] += number
    names = {name for name, _ in sizes}
    if len(names) != 1:
        return cluster
    (device,) = names
    steps = sorted({0, *(amount for _, amount in sizes)})
    counts = {amount: sizes[device, amount] + (bare if not amount else 0) for amount in steps}
    ends = [*steps[1:], steps[-1] + 1]
    models = [
        {"grade": grade, "ranges": [{"name": device, "min": str(least), "max": str(end)}]}
        for grade, (least, end) in enumerate(zip(steps, ends, strict=True))
    ]
    modelings = [{"grade": grade, "count": counts[least]} for grade, least in enumerate(steps)]
    status = cluster["status"]
    summary = {**status["resourceSummary"], "allocatableModelings": modelings}
    return {
        **cluster,
        "spec": {**cluster["spec"], "resourceModels": models},
        "status": {**status, "resourceSummary": summary},
    }
