"""Nothing here is collected without torch, which is too large for the plain test environment."""

from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec

import pytest

from e2e.support.scenario import Scenario, open_scenario
from e2e.support.settings import Settings
from e2e.support.training import open_process_world
from e2e.support.world import World

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give clusters whose pods are processes; torch takes long to import on a small machine."""
    directory = tmp_path_factory.mktemp("torch")
    reading = ["--members=logs", "--progress-interval=1"]
    with open_process_world(Settings(timeout=400), directory, controller=reading) as opened:
        yield opened


@pytest.fixture
async def scenario(world: World) -> AsyncIterator[Scenario]:
    """Give a namespace of its own."""
    async with open_scenario(world) as made:
        yield made
