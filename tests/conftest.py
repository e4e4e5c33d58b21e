"""Fixtures of all tests."""

import gc
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from hyperjob_core.kube.client import Kube
from tests.support.controlplane import ControlPlane
from tests.support.controlplane import control_plane as start_control_plane

# A test that grows without end fails by itself; it takes neither the machine nor other tests along.
_, most = resource.getrlimit(resource.RLIMIT_DATA)
resource.setrlimit(resource.RLIMIT_DATA, (min(4 * 1024**3, most % 2**63), most))

# A shell starts a background job, as cron and some runners do, with SIGINT ignored, which the
# processes of the tests would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, too

# Machines are shared and slow: counts decide, not the clock. The examples of a property
# follow from its source text, and a commit passes or fails everywhere.
# `--hypothesis-profile search` draws new ones, and more: the same examples find nothing new.
search = settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", search)
settings.register_profile("same", search, derandomize=True, max_examples=50)
settings.load_profile("same")
# Hypothesis draws constants of the modules that are loaded, which differ by the tests before.
providers.is_local_module_file = lambda _: False  # type: ignore[attr-defined, assignment]


def pytest_configure(config: pytest.Config) -> None:
    """Let workers take the files in the order below: by default those with few tests come last."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long: the last one would keep one worker busy alone."""
    long = {item.path for item in items if any(map(item.get_closest_marker, ("long", "scenario")))}
    items.sort(key=lambda item: item.path not in long and "unit" in item.path.parts)


def pytest_collection_finish() -> None:
    """Let the garbage collector look at what tests make, not at what all of them import."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run one API server for the session: real with KUBEBUILDER_ASSETS, else embedded."""
    with start_control_plane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    """Connect to the session's API server."""
    async with Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="test") as client:
        yield client


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Make a namespace of this test alone."""
    name = f"test-{uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", name)
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")
