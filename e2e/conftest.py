"""A world shared by all scenarios, and a namespace for each scenario."""

from collections.abc import AsyncIterator, Iterator

import pytest

from e2e.support.scenario import Scenario, open_scenario
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world


def pytest_itemcollected(item: pytest.Item) -> None:
    """Set the time limit of each scenario, for slow clusters."""
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(600))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put modules with a world of their own first: the shared world stays until the last scenario.

    The webhook of one world excludes another world on the same Karmada. They take longest, too.
    """
    items.sort(key=lambda item: "shared_world" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield the control plane that the environment names, or an embedded control plane."""
    with open_world(from_environment(), tmp_path_factory.mktemp("e2e")) as opened:
        yield opened


@pytest.fixture(scope="session")
def world(shared_world: World) -> World:
    """Return the shared world; a module may override this fixture."""
    return shared_world


@pytest.fixture
async def scenario(world: World) -> AsyncIterator[Scenario]:
    """Yield a scenario in a new namespace; at the end no member has objects of it."""
    async with open_scenario(world) as made:
        yield made
