"""One world for all scenarios, and a namespace for each."""

from collections.abc import AsyncIterator, Iterator

import pytest

from e2e.support.scenario import Scenario, open_scenario
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each scenario as long as a slow cluster may need."""
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield what the environment names, or an embedded control plane."""
    with open_world(from_environment(), tmp_path_factory.mktemp("e2e")) as opened:
        yield opened


@pytest.fixture(scope="session")
def world(shared_world: World) -> World:
    """Return the world of all scenarios; a module that needs another one says so itself."""
    return shared_world


@pytest.fixture
async def scenario(world: World) -> AsyncIterator[Scenario]:
    """Yield a namespace of its own; at the end nothing of it is left in any member."""
    async with open_scenario(world) as made:
        yield made
