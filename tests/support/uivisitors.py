"""The page with its own account, served to visitors with bearer tokens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hyperjob_core.kube.client import Kube
from hyperjob_core.serving.listener import listening
from hyperjob_page.access.cluster import ClusterAccess, acting_as
from hyperjob_page.pages.answers import Context
from hyperjob_page.serve import make_app
from hyperjob_page.world import LiveState

KEY = b"0123456789abcdef0123456789abcdef"


@asynccontextmanager
async def served_to_visitors(kubeconfig: Path) -> AsyncIterator[tuple[LiveState, str]]:
    """Serve the page with the rights of each visitor; yield its sources and its address."""
    async with (
        Kube.connect(kubeconfig=kubeconfig) as own,
        LiveState(own).running() as world,
        acting_as(kubeconfig=kubeconfig) as acting,
        ClusterAccess(
            own,
            acting=acting,
            key=KEY,
            hosts=["127.0.0.1"],
            namespaces=lambda: world.namespaces,
        ) as access,
        listening(make_app(Context(world=world, access=access)), "127.0.0.1", 0) as (_, port),
    ):
        yield world, f"http://127.0.0.1:{port}"
