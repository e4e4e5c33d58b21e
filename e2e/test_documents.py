"""The manifests of the design documents run to their end: verbatim where they fit, else scaled."""

import pytest

from e2e.support.manifests import adapted
from e2e.support.scenario import clusters_of, condition_of
from e2e.support.world import document
from hyperjob_core.kube.resources import PROPAGATION_POLICIES

DOCUMENTS = {
    "a job too big for one cluster": "llm-training",
    "groups on different hardware": "ascend-heterogeneous-training",
    "the pytorch plugin": "torchrun-gang",
    "one torchrun over two clusters": "torchrun-across-clusters",
    "the mpi plugin": "mpi-gang",
}


@pytest.mark.parametrize("name", DOCUMENTS.values(), ids=list(DOCUMENTS))
async def test_a_document_runs_to_its_end(scenario, name):
    given = document(name)
    given["metadata"].pop("namespace", None)
    if not scenario.world.settings.embedded:
        given = adapted(scenario.world, given)
    wanted = {
        f"{name}-{group['name']}-{index}": group
        for group in given["spec"]["replicatedJobs"]
        for index in range(group.get("replicas", 1))
    }
    async with scenario.sightings() as sightings:
        await scenario.apply(given)
        running = await scenario.until_phase(name, "Running", "Completed", "Failed")
        ended = await scenario.until_phase(name, "Completed", "Failed")

    assert condition_of(ended, "Completed").get("status") == "True", ended["status"]
    assert not condition_of(ended, "Failed")
    assert sightings.jobs == set(wanted)
    assert set(await scenario.children(name)) == set(wanted)
    assert set(await scenario.children(name, PROPAGATION_POLICIES)) == set(wanted)
    placed = clusters_of(ended)
    assert placed == clusters_of(running), "a sub-job does not wander"
    assert placed == {each.job: each.member for each in sightings.seen}
    for job, group in wanted.items():
        if "clusterNames" in group:
            assert placed[job] in group["clusterNames"]
    status = ended["status"]
    assert status["state"]["phase"] == "Completed"
    assert status["observedGeneration"] == ended["metadata"]["generation"]
    assert {job["phase"] for job in status["jobs"]} == {"Completed"}


async def test_what_kubectl_shows_tells_the_clusters(scenario):
    given = document("llm-training")
    if not scenario.world.settings.embedded:
        given = adapted(scenario.world, given)
    await scenario.apply(given)
    ended = await scenario.until_phase("llm-training", "Completed", "Failed")
    clusters = sorted(set(clusters_of(ended).values()))

    table = await scenario.kubectl("get", "hj", "-o", "wide")
    header, row = table.splitlines()
    shown = ("NAME", "STATUS", "JOBS", "RUNNING", "PROGRESS", "CLUSTERS")
    assert tuple(header.split())[: len(shown)] == shown
    cells = {name: row[header.index(name) :].partition("   ")[0] for name in shown}
    assert cells == {
        "NAME": "llm-training",
        "STATUS": "Completed",
        "JOBS": "2/2",
        "RUNNING": "0",
        "PROGRESS": "",
        "CLUSTERS": ",".join(clusters),
    }
    described = await scenario.kubectl("describe", "hj", "llm-training")
    for job, cluster in clusters_of(ended).items():
        assert job in described
        assert cluster in described
