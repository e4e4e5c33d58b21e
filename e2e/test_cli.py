"""The kubectl plugin: status, reasons of waits, logs, and changes of HyperJobs."""

import asyncio
import json
import os

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import clusters_of
from tests.support.stack import KUBECTL


async def plugin(scenario, *words: str, code: int = 0) -> str:
    """Run `kubectl hyperjob …` in the scenario's namespace and expect an exit code."""
    process = await asyncio.create_subprocess_exec(
        KUBECTL,
        *("hyperjob", words[0], "--namespace", scenario.namespace, *words[1:]),
        env={
            **os.environ,
            "KUBECONFIG": str(scenario.world.kubeconfig),
            "PATH": f"{KUBECTL.parent}:{os.environ['PATH']}",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == code, f"{words}: {process.returncode}\n{(out + err).decode()}"
    return out.decode()


async def test_a_running_hyperjob_is_waited_for_shown_suspended_and_resumed(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob("seen", group(world, "one", replicas=2, accelerators=1, seconds=600))
    )
    limit = f"--timeout={world.settings.timeout:g}s"
    await plugin(scenario, "wait", "seen", "--for=phase=Running", limit)
    placed = clusters_of(await scenario.until_phase("seen", "Running"))
    tree = await plugin(scenario, "tree", "seen")
    for name, cluster in placed.items():
        assert f"{name}  Running" in tree
        assert f"on {cluster}" in tree
    answer = json.loads(await plugin(scenario, "why", "seen", "-o", "json"))
    assert answer["outcome"] == "Fine"
    await plugin(scenario, "suspend", "seen")
    await scenario.kubectl("wait", "hj/seen", "--for=condition=Suspended", limit)
    assert await scenario.remains() == []
    await plugin(scenario, "wait", "seen", "--for=phase=Suspended", limit)
    await plugin(scenario, "resume", "seen")
    await plugin(scenario, "wait", "seen", "--for=phase=Running,Completed", limit)
    await scenario.kubectl("wait", "hj/seen", "--for=condition=Running", limit)
    await plugin(scenario, "get", "seen", "-o", "name")


async def test_pods_and_logs_are_reached_through_karmada(scenario):
    world = scenario.world
    cluster = world.largest
    way = f"/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}/proxy/version"
    if "gitVersion" not in await scenario.kubectl("get", "--raw", way, check=False):
        pytest.skip("this Karmada refuses its users the proxy to its members")
    await scenario.apply(
        hyperjob("logs", group(world, "one", pods=2, seconds=600, only_on=[cluster]))
    )
    await scenario.until_phase("logs", "Running")
    tree = json.loads(await plugin(scenario, "tree", "logs", "--pods", "-o", "json"))
    (job,) = tree["replicatedJobs"][0]["jobs"]
    assert len(job["podList"]) == 2
    if world.settings.seconds_annotation:
        pytest.skip("simulated kubelets print no logs")
    await plugin(scenario, "logs", "logs", "--tail=1")


async def test_what_fits_nowhere_is_explained_with_the_next_command(scenario):
    world = scenario.world
    too_many = world.sizes[world.largest] + 1
    await scenario.apply(
        hyperjob("huge", group(world, "one", pods=too_many, accelerators=world.per_pod))
    )
    await scenario.until_phase("huge", "Pending", "Queued")
    answer = json.loads(await plugin(scenario, "why", "huge", "-o", "json", code=4))
    assert answer["causes"][0]["reason"] == "ExceedsClusters"
    assert f" && kubectl edit hj huge -n {scenario.namespace} && " in answer["causes"][0]["next"]
    await plugin(scenario, "wait", "huge", "--for=phase=Running", "--timeout=1s", code=3)
    top = json.loads(await plugin(scenario, "top", "-o", "json"))
    assert top["waiting"][world.accelerator] >= too_many * world.per_pod


async def test_moves_by_the_plugin_end_on_the_other_of_two_clusters_however_often(scenario):
    world = scenario.world
    first, second = world.pair
    await scenario.apply(
        hyperjob("move", group(world, "one", accelerators=1, seconds=600, first_on=[first]))
    )
    limit = f"--timeout={world.settings.timeout:g}s"
    for here, there in ((first, second), (second, first), (first, second)):
        before = clusters_of(await scenario.until_phase("move", "Running"))["move-one-0"]
        assert before == here
        await plugin(scenario, "migrate", "move", "one-0", "--wait", limit)
        after = clusters_of(await scenario.until_phase("move", "Running"))["move-one-0"]
        assert after == there
