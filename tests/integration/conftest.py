"""Fixtures of integration tests."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.system import System, running_system

SYSTEM = "test_system_"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give what needs the running system time: the first test of a worker also starts it."""
    if item.path.name.startswith(SYSTEM):
        item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run Karmada, members, webhook and controller for all tests of the system."""
    with running_system(Path(tmp_path_factory.mktemp("system"))) as running:
        yield running


@pytest.fixture
def project(system: System) -> Iterator[str]:
    """Make a namespace in the running system for one test, and end what runs in it."""
    name = f"test-{uuid4().hex[:8]}"
    system.plane.kubectl("create", "namespace", name)
    yield name
    # A bare API server collects no garbage, so the children are named too.
    for kinds in ("hj", "jobs.batch.volcano.sh,propagationpolicies"):
        system.plane.kubectl("delete", kinds, "--all", f"--namespace={name}", "--timeout=30s")
    system.plane.kubectl("delete", "namespace", name, "--wait=false")
