"""Whatever HyperJobs and namespaces come and go, the controller's memory returns to its start."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any

import pytest

from hyperjob_core.kube.resources import HYPERJOBS, key_of
from hyperjob_core.registry import REGISTRY
from hyperjob_sandbox.simulate.workload import Submission
from tests.unit.controller.wholeworld import Plane, World, scenario_of, submission

pytestmark = pytest.mark.long

COUNT = 2000
KEPT = 16
"""Entries that a container may have more than before, of the latest events."""
BOUNDED = {
    "_bindings._known": 1024,
    "recorder._series": 4096,
    "recorder._buckets": 4096,
    "past._runs": 4096,
    "._young": 8192,
    "._old": 8192,
}
"""Caches that keep the latest entries, by the end of their path, with their bound."""
CONTAINERS = (dict, list, set, frozenset, deque, OrderedDict)


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object of this project, and the variables of a function."""
    if type(value).__module__.startswith(
        ("hyperjob_controller", "hyperjob_core", "hyperjob_engine", "hyperjob_queueing")
    ):
        yield from getattr(value, "__dict__", {}).items()
        for kind in type(value).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if hasattr(value, name):
                    yield name, getattr(value, name)
    elif callable(value) and not isinstance(value, type):
        yield "self", getattr(value, "__self__", None)
        for number, cell in enumerate(getattr(value, "__closure__", None) or ()):
            yield f"cell {number}", cell.cell_contents


def sizes(root: Any) -> dict[str, int]:
    """Return the number of entries of each container that an object refers to, by its path."""
    found: dict[str, int] = {}
    seen: set[int] = {id(root)}
    stack: list[tuple[str, Any]] = [("", root)]
    while stack:
        path, value = stack.pop()
        for name, part in parts(value):
            if part is None or id(part) in seen:
                continue
            seen.add(id(part))
            where = f"{path}.{name}"
            if hasattr(part, "__len__") and not isinstance(part, str | bytes):
                found[where] = len(part)
            if isinstance(part, CONTAINERS):
                few = list(part.values() if isinstance(part, dict) else part)[:50]
                stack += [(f"{where}[{number}]", each) for number, each in enumerate(few)]
            stack.append((where, part))
    return found


def bound_of(path: str) -> int:
    return next((most for end, most in BOUNDED.items() if path.endswith(end)), 0)


def visitors(count: int, *, arrival: float, label: str) -> list[Submission]:
    """Return HyperJobs of `count / 4` namespaces; one of four runs, the others are suspended."""
    found = []
    for number in range(count):
        each = submission(
            f"{label}{number}",
            arrival=arrival + number * 0.05,
            duration=30.0,
            namespace=f"{label}-{number % (count // 4)}",
            replicas=1,
            gpus=1,
        )
        each.hyperjob["spec"]["suspend"] = bool(number % 4)
        found.append(each)
    return found


def test_two_thousand_hyperjobs_in_five_hundred_namespaces_leave_nothing_behind() -> None:
    phases = [
        visitors(40, arrival=1.0, label="few"),
        visitors(COUNT, arrival=1000.0, label="many"),
        visitors(40, arrival=2500.0, label="last"),  # old entries go at the next event
    ]
    jobs = [each for phase in phases for each in phase]
    world = World(scenario_of(jobs, nodes=40), plane=Plane, workers=8)
    seen: list[dict[str, int]] = []
    samples: list[int] = []

    async def look() -> None:
        time = asyncio.get_running_loop().time
        for moment in (400.0, 1600.0, 2900.0):
            await asyncio.sleep(moment - time())
            for raw in world.plane.items(HYPERJOBS):
                world.plane.remove(HYPERJOBS, key_of(raw))
            await asyncio.sleep(300.0)
            seen.append(sizes(world.manager))
            families = (*REGISTRY.collect(), *world.manager.scrape.collect())
            samples.append(sum(len(each.samples) for each in families))

    world.play(look, hours=0.95)
    before, after = seen[0], seen[-1]
    found = [
        f"{path}: {before.get(path, 0)} to {size}"
        for path, size in after.items()
        if size > before.get(path, 0) + KEPT and size > bound_of(path)
    ]
    assert "\n".join(found) == ""
    assert len(before) > 250, "the search finds the containers"
    assert samples[-1] <= samples[0] + KEPT
