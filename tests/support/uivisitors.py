"""The page with its own account, served to visitors with bearer tokens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hyperjob_core.kube.client import Kube
from hyperjob_page.access.acting import acting_as
from hyperjob_page.access.cluster import ClusterAccess
from hyperjob_page.pages.answers import Context
from hyperjob_page.running import Running, running
from hyperjob_page.serve import serving

KEY = b"0123456789abcdef0123456789abcdef"


@asynccontextmanager
async def served_to_visitors(kubeconfig: Path) -> AsyncIterator[tuple[Running, str]]:
    """Serve the page with the rights of each visitor; yield its sources and its address."""
    async with (
        Kube.connect(kubeconfig=kubeconfig) as own,
        running(own, examine=False) as known,
        acting_as(kubeconfig=kubeconfig) as acting,
        ClusterAccess(
            own,
            acting=acting,
            key=KEY,
            hosts=["127.0.0.1"],
            namespaces=lambda: known.world.namespaces,
        ) as access,
        serving(
            Context(world=known.world, use=known.use, attention=known.attention, access=access),
            "127.0.0.1",
            0,
        ) as port,
    ):
        yield known, f"http://127.0.0.1:{port}"
