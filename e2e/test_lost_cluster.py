"""A member becomes unreachable while sub-jobs run, and reachable again."""

import time

from e2e.support.manifests import group, hyperjob
from e2e.support.unreachable import unreachable, until_ready
from hyperjob_core.kube.resources import VCJOBS

SPARE = 20.0  # real kubelets on a busy machine took 6 s; the default of the controller is 300
JOB = "survivor-trainer-0"


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
        assert still["metadata"]["name"] == JOB, "no controller can reach the old copy"

    await scenario.until(
        VCJOBS, JOB, lambda found: found is None, what="gone", kube=scenario.members[lost]
    )
    (entry,) = (await scenario.until_phase("survivor", "Running"))["status"]["jobs"]
    assert (entry["cluster"], entry["attempt"]) == (other, 1)
    await scenario.kubectl("delete", "hyperjob", "survivor")
    await scenario.until_members_have(0)
    await scenario.until_free()
