"""Small scenarios for the simulator's tests."""

from typing import Any

from hyperjob_sandbox.simulate.jobs import JobNumbers, submission
from hyperjob_sandbox.simulate.sites import queue, site, urgent_class
from hyperjob_sandbox.simulate.workload import Scenario, Site

NODE = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
MINUTE, HOUR = 60.0, 3600.0


def clusters(*nodes: int) -> list[Site]:
    """Clusters c0, c1, ... with so many nodes of eight GPUs."""
    return [site(f"c{place}", [("gpu", NODE, number)]) for place, number in enumerate(nodes)]


def jobs(*rows: tuple[float, float, int], **fields: Any) -> list[Any]:
    """Jobs j0, j1, ... of arrival, duration and accelerators."""
    most = fields.pop("max_domains", 4)
    return [
        submission(
            JobNumbers(name=f"j{place}", arrival=at, duration=for_, gpus=gpus, **fields),
            max_domains=most,
        )
        for place, (at, for_, gpus) in enumerate(rows)
    ]


def scenario(sites: list[Site], submitted: list[Any], **fields: Any) -> Scenario:
    fields.setdefault("queues", [queue("default")])
    fields.setdefault("startup", 0.0)
    fields.setdefault("priority_classes", [urgent_class()])
    return Scenario(sites=sites, jobs=submitted, **fields)
