"""What several modules run on: the embedded API server, and the control plane of the commands."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from hyperjob_sandbox.apiserver.server import ApiServer
from tests.support.cliworld import CliWorld, open_world
from tests.support.rawapi import GADGET_CRD, RawApi, connected


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(crds=[GADGET_CRD]) as server:
        yield server


@pytest.fixture
async def api(server: ApiServer, tmp_path: Path) -> AsyncIterator[RawApi]:
    """Connect to the server as an administrator."""
    async with connected(server, tmp_path) as api:
        yield api


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CliWorld]:
    async with AsyncExitStack() as stack:
        yield await open_world(stack, tmp_path_factory.mktemp("world"))
