"""Plugins connect the sub-jobs of several clusters to one world of processes."""

import contextlib

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import clusters_of
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import HYPERJOBS, PODS, SERVICE_EXPORTS


def spread(world, **spec):
    """Return a HyperJob of two pods in each of the two largest members."""
    groups = [
        group(world, name, pods=2, accelerators=1, only_on=[member])
        for name, member in zip(("left", "right"), world.pair, strict=True)
    ]
    return hyperjob("torch", *groups, **spec)


def constants(pod):
    """Return the environment variables of a pod with constant values, by name."""
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


async def exports(kube, namespace):
    """Return the exported Services of a cluster; None where it does not serve ServiceExports."""
    with contextlib.suppress(NotFound):
        found = await kube.list(SERVICE_EXPORTS, namespace=namespace)
        return {each["metadata"]["name"] for each in found.items}
    return None


async def test_pods_in_two_clusters_are_told_of_one_world(scenario):
    await scenario.apply(spread(scenario.world, plugins={"env": [], "pytorch": ["--port=1234"]}))
    running = await scenario.until_phase("torch", "Running")
    left, right = scenario.world.pair
    assert clusters_of(running) == {"torch-left-0": left, "torch-right-0": right}

    told = {}
    for member in (left, right):
        pods = (await scenario.members[member].list(PODS, namespace=scenario.namespace)).items
        assert len(pods) == 2
        for pod in pods:
            told[pod["metadata"]["name"]] = constants(pod)
            assert told[pod["metadata"]["name"]]["HYPERJOB_CLUSTER"] == member
    assert {env["PET_NNODES"] for env in told.values()} == {"4"}
    assert {env["PET_RDZV_ID"] for env in told.values()} == {
        f"torch-{running['metadata']['uid']}-0"
    }
    assert {env["HYPERJOB_RANK_OFFSET"] for env in told.values()} == {"0", "2"}
    first, service = "torch-left-0-worker-0", "torch-left-0"
    far = f"{first}.{left}.{service}.{scenario.namespace}.svc.clusterset.local:1234"
    assert told[first]["PET_RDZV_ENDPOINT"] == f"{first}.{service}:1234"
    assert told["torch-right-0-worker-1"]["PET_RDZV_ENDPOINT"] == far
    for member, service in ((left, "torch-left-0"), (right, "torch-right-0")):
        found = await exports(scenario.members[member], scenario.namespace)
        assert found is None or found == {service}

    await scenario.until_phase("torch", "Completed")
    assert await exports(scenario.kube, scenario.namespace) == {"torch-left-0", "torch-right-0"}
    await scenario.kubectl("delete", HYPERJOBS.group_resource, "torch")
    for name in ("torch-left-0", "torch-right-0"):
        await scenario.until_gone(SERVICE_EXPORTS, name)


async def test_a_world_is_not_resized_under_its_pods(scenario):
    await scenario.apply(spread(scenario.world, plugins={"pytorch": []}))
    await scenario.until_phase("torch", "Running", "Completed")
    said = await scenario.kubectl(
        "patch",
        HYPERJOBS.group_resource,
        "torch",
        "--type=json",
        '--patch=[{"op": "replace", "path": "/spec/replicatedJobs/0/replicas", "value": 2}]',
        check=False,
    )
    assert "spec.replicatedJobs[0].replicas: Forbidden" in said
