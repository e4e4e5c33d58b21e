"""A member is lost in the middle: Karmada looks for it where nobody answers, and finds it again."""

import contextlib
import time

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario
from hyperjob.api.meta import Object
from hyperjob.kube.client import PatchType
from hyperjob.kube.resources import CLUSTERS, VCJOBS

NOWHERE = "https://127.0.0.1:9"
SPARE = 20.0  # real kubelets on a busy machine took 6 s; by default a cluster is lost after 300
JOB = "survivor-trainer-0"


@contextlib.asynccontextmanager
async def unreachable(scenario: Scenario, member: str):
    """Have Karmada look for a member elsewhere; at the end it is found again and Ready."""
    found = await scenario.kube.get(CLUSTERS, member)
    if found["spec"].get("syncMode") == "Pull":
        pytest.skip(f"{member} is not called by Karmada, it calls")

    async def point_to(endpoint: str) -> None:
        body = {"spec": {"apiEndpoint": endpoint}}
        await scenario.kube.patch(CLUSTERS, member, body, kind=PatchType.MERGE)

    try:
        await point_to(NOWHERE)
        yield
    finally:
        await point_to(found["spec"]["apiEndpoint"])
        await until_ready(scenario, member, ready=True)


async def until_ready(scenario: Scenario, member: str, *, ready: bool) -> None:
    """Wait until a cluster is Ready, or is not."""
    await scenario.until(
        CLUSTERS, member, lambda found: is_ready(found) == ready, what=f"Ready: {ready}"
    )


def is_ready(cluster: Object | None) -> bool:
    """Tell whether a cluster is Ready."""
    conditions = ((cluster or {}).get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def test_what_a_lost_cluster_had_runs_elsewhere_in_time_and_once_only(scenario):
    world = scenario.world
    lost, other = world.pair
    trainer = group(world, "trainer", accelerators=1, seconds=600, first_on=[lost, other])
    policy = {"maxRestarts": 1, "rules": [{"action": "MigrateJob", "onClusterLost": True}]}
    await scenario.apply(hyperjob("survivor", trainer, failurePolicy=policy))
    started = await scenario.until_phase("survivor", "Running")
    assert [job["cluster"] for job in started["status"]["jobs"]] == [lost]

    async with unreachable(scenario, lost):
        await until_ready(scenario, lost, ready=False)
        known = time.monotonic()
        await scenario.until(
            VCJOBS,
            JOB,
            lambda found: ((found or {}).get("status") or {}).get("running") == 1,
            what=f"Running on {other}",
            kube=scenario.members[other],
        )
        took = time.monotonic() - known
        assert took < world.lost_timeout + SPARE, f"it took {took:.1f} s"
        moved = await scenario.until_phase("survivor", "Running")
        assert moved["status"]["restarts"] == 1
        (entry,) = moved["status"]["jobs"]
        assert (entry["cluster"], entry["attempt"]) == (other, 1)
        assert entry["excludedClusters"] == [lost]
        still = await scenario.members[lost].get(VCJOBS, JOB, namespace=scenario.namespace)
        assert still["metadata"]["name"] == JOB, "nobody can reach the old copy"

    await scenario.until(
        VCJOBS, JOB, lambda found: found is None, what="gone", kube=scenario.members[lost]
    )
    (entry,) = (await scenario.until_phase("survivor", "Running"))["status"]["jobs"]
    assert (entry["cluster"], entry["attempt"]) == (other, 1)
    await scenario.kubectl("delete", "hyperjob", "survivor")
    await scenario.until_members_have(0)
    await scenario.until_free()
