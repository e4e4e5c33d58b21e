"""Make a member unreachable: its Cluster gets an address where no server listens."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from e2e.support.scenario import Scenario
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.resources import CLUSTERS

_NOWHERE = "https://127.0.0.1:9"


@contextlib.asynccontextmanager
async def unreachable(scenario: Scenario, member: str) -> AsyncIterator[None]:
    """Change the address of a member's Cluster; restore it at the end, and wait until Ready."""
    found = await scenario.kube.get(CLUSTERS, member)
    if found["spec"].get("syncMode") == "Pull":
        pytest.skip(f"{member} is not called by Karmada, it calls")

    async def point_to(endpoint: str) -> None:
        body = {"spec": {"apiEndpoint": endpoint}}
        await scenario.kube.patch(CLUSTERS, member, body, kind=PatchType.MERGE)

    try:
        await point_to(_NOWHERE)
        yield
    finally:
        await point_to(found["spec"]["apiEndpoint"])
        await until_ready(scenario, member, ready=True)


async def until_ready(scenario: Scenario, member: str, *, ready: bool) -> None:
    """Wait until a cluster is Ready, or not Ready."""
    await scenario.until(
        CLUSTERS, member, lambda found: is_ready(found) == ready, what=f"Ready: {ready}"
    )


def is_ready(cluster: Object | None) -> bool:
    """Return whether a cluster is Ready."""
    conditions = ((cluster or {}).get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
