"""The memory for all members together: the largest member pays, and the others stay known."""

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_controller.members import reader as members_reader
from hyperjob_controller.members.member import MOST_BYTES, Budget
from hyperjob_core.kube.resources import PODS
from tests.support.apiserver import ApiServer
from tests.unit.controller.test_members_reader import World
from tests.unit.controller.test_pass import until
from tests.unit.engine.test_members_fold import node, pod

ROOT = Path(__file__).parents[3]
MOST = 300_000
"""About 200 pods."""


class Kept:
    """A member, which drops what is kept of it beyond the budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.why: list[str] = []

    def exceed(self, why: str) -> None:
        self.why.append(why)


def test_beyond_the_budget_the_largest_member_pays_and_no_other() -> None:
    budget = Budget(1000)
    honest, one, other = (Kept(budget) for _ in range(3))
    budget.charge(honest, 300)
    for _ in range(100):
        for each in (one, other):
            budget.charge(each, 50)
    assert honest.why == []
    assert one.why
    assert other.why
    assert one.why[0] == "400 of 1050 bytes of all members are of this one, and 1000 are the most"


def test_what_a_member_no_longer_keeps_counts_no_more() -> None:
    budget = Budget(1000)
    one, other = Kept(budget), Kept(budget)
    budget.charge(one, 900)
    budget.charge(one, -500)
    budget.charge(other, 600)
    budget.clear(other)
    budget.charge(one, 600)
    assert one.why == other.why == []


def crowd(server: ApiServer, count: int, **labels: str) -> None:
    for number in range(count):
        made: dict[str, Any] = pod(f"p{number}", "n1", 1)
        made["metadata"]["labels"] = {**labels, "index": str(number)}
        server.put(PODS, made)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members_reader, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(members_reader, "_LONGEST_PAUSE", 0.1)


async def test_nothing_is_kept_of_two_members_that_are_too_large_together(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(most=MOST)
    crowd(world.join("honest", node("n1")), 20)
    large = {name: world.join(name, node("n1")) for name in ("east", "west")}
    for server in large.values():
        crowd(server, 300, team="a")

    def troubles() -> dict[str, str]:
        state = world.reader.state(world.clock.now)
        return {name: each["trouble"] for name, each in state.items() if "trouble" in each}

    async with world.running():
        await until(lambda: world.views() == ["honest"] and troubles().keys() == large.keys())
        assert all(f"and {MOST} are the most" in each for each in troubles().values())
        said = Counter(each.msg for each in caplog.records if each.levelno >= logging.WARNING)
        assert list(said) == [
            "The controller keeps nothing of a member: decisions use the sums of its Cluster"
        ]
        for server in large.values():
            for number in range(20, 300):
                server.remove(PODS, f"default/p{number}")
        await until(lambda: world.views() == ["east", "honest", "west"])
        assert troubles() == {}
    assert world.reported("faulty") == []


async def test_many_changes_of_a_member_cause_other_lists_and_no_trouble() -> None:
    world = World(most=MOST)
    east = world.join("east", node("n1"))
    crowd(east, 50)

    def shown(label: str) -> bool:
        view = world.reader.views(world.clock.now).get("east")
        pods = [each for node in view.nodes for each in node.pods]
        return len(pods) == 50 and all(("turn", label) in each.labels for each in pods)

    async with world.running():
        await until(lambda: world.views() == ["east"])
        for turn in range(20):
            crowd(east, 50, turn=str(turn))
            await until(lambda turn=turn: shown(str(turn)))
        assert "trouble" not in world.reader.state(world.clock.now)["east"]
    assert world.reported("faulty") == []


def test_the_chart_gives_a_controller_four_times_the_budget() -> None:
    values = yaml.safe_load((ROOT / "charts/hyperjob/values.yaml").read_text())
    assert values["controller"]["resources"]["limits"]["memory"] == "1Gi"
    assert 4 * MOST_BYTES == 2**30
