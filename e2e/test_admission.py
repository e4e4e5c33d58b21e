"""Admission refuses invalid HyperJobs at apply, with these messages."""

import pytest

from e2e.support.manifests import group, hyperjob, task


def duplicated(world):
    made = group(world, "one")
    made["templateSpec"]["tasks"].append(task(world, "worker", pods=1))
    return hyperjob("bad", made)


def too_many_available(world):
    return hyperjob("bad", group(world, "one", pods=2, minAvailable=3))


def half_an_accelerator(world):
    made = group(world, "one")
    container = made["templateSpec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {world.accelerator: "500m"}}
    return hyperjob("bad", made)


def without_containers(world):
    made = group(world, "one")
    made["templateSpec"]["tasks"][0]["template"]["spec"]["containers"] = []
    return hyperjob("bad", made)


REFUSED = {
    "two tasks of one name": (
        duplicated,
        'spec.replicatedJobs[0].templateSpec.tasks[1]: Duplicate value: {"name":"worker"}',
    ),
    "more available than pods": (
        too_many_available,
        "spec.replicatedJobs[0].templateSpec.minAvailable: Invalid value: 3",
    ),
    "half an accelerator": (
        half_an_accelerator,
        "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec.containers[0].resources.limits",
    ),
    "no container": (
        without_containers,
        "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec.containers: Required value",
    ),
}


@pytest.mark.parametrize(("make", "said"), REFUSED.values(), ids=list(REFUSED))
async def test_a_template_that_volcano_would_refuse_is_refused_at_apply(scenario, make, said):
    answer = await scenario.refused(make(scenario.world))
    assert said in answer


async def test_requests_become_limits_of_the_sub_jobs_and_the_hyperjob_stays_as_it_was(scenario):
    world = scenario.world
    made = group(world, "one", seconds=1)
    container = made["templateSpec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {world.accelerator: 1}}
    await scenario.apply(hyperjob("bare", made))
    ended = await scenario.until_phase("bare", "Completed", "Failed")
    assert ended["spec"]["replicatedJobs"] == [made]
    child = (await scenario.children("bare"))["bare-one-0"]["spec"]
    given = child["tasks"][0]["template"]["spec"]["containers"][0]["resources"]
    assert str(given["limits"][world.accelerator]) == "1"
    assert (child["queue"], child["schedulerName"], child["minAvailable"]) == (
        "default",
        "volcano",
        1,
    )
    assert ended["status"]["state"]["phase"] == "Completed"
