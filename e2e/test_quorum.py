"""A quorum of sub-jobs trains on while clusters are lost: pods are processes in plain Python."""

from collections.abc import Iterator

import pytest

from e2e.support import training
from e2e.support.manifests import hyperjob
from e2e.support.scenario import Scenario, clusters_of
from e2e.support.settings import from_environment
from e2e.support.unreachable import unreachable
from e2e.support.world import ROOT, World
from hyperjob_core.api.meta import Object

PROGRAM = (ROOT / "e2e/programs/quorum.py").read_text()
NAME = "trains-on"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield clusters whose pods are processes."""
    settings = from_environment()
    if not settings.embedded:
        pytest.skip("the program is not in the images of a Karmada at hand")
    directory = tmp_path_factory.mktemp("quorum")
    with training.open_process_world(settings, directory, controller=["--members=logs"]) as opened:
        yield opened


def documents(*, quorum: int = 2, gpus: int = 1, **variables: str) -> list[Object]:
    """Return three replicated jobs; two fit into one cluster: the test can lose a cluster."""
    given = {"QUORUM": str(quorum), "STEPS": "1000000", "PAUSE": "0.05", **variables}
    container = {
        "name": "trainer",
        "image": "python",
        "command": ["python", "-u", "/program/train.py"],
        "env": [{"name": name, "value": value} for name, value in given.items()],
        "volumeMounts": [
            {"name": "program", "mountPath": "/program"},
            {"name": "runs", "mountPath": "/checkpoints"},
        ],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [
            {"name": "program", "configMap": {"name": "program"}},
            {"name": "runs", "nfs": {"server": "nfs.example.com", "path": "/runs"}},
        ],
    }
    task = {"name": "worker", "replicas": 1, "template": {"spec": pod}}
    template = {
        "tasks": [task],
        "maxRetry": 1,
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "program"},
            "data": {"train.py": PROGRAM},
        },
        hyperjob(
            NAME,
            {"name": "trainer", "replicas": 3, "templateSpec": template},
            quorum=quorum,
            plugins={"env": []},
            checkpoint={"directory": "/checkpoints", "gracePeriodSeconds": 1},
            failurePolicy={"maxRestarts": 20},
        ),
    ]


def attempts(found: Object) -> dict[str, int]:
    return {job["name"]: job.get("attempt", 0) for job in found["status"]["jobs"]}


async def test_a_lost_cluster_costs_the_others_neither_restart_nor_stop(
    scenario: Scenario,
) -> None:
    await scenario.apply(*documents(SCENARIO=scenario.namespace))
    placed = clusters_of(await scenario.until_phase(NAME, "Running"))
    lost = placed[f"{NAME}-trainer-0"]
    gone = {name for name, cluster in placed.items() if cluster == lost}
    async with unreachable(scenario, lost):
        for name in gone:
            training.kill(scenario, name)
        await scenario.until_phase(NAME, "Degraded")
        await training.goes_on(scenario, without=lost)
        found = await scenario.until_phase(NAME, "Running")
        assert attempts(found) == {name: int(name in gone) for name in placed}
        # Volcano may report the killed processes before the cluster becomes unreachable.
        assert found["status"].get("restarts", 0) <= len(gone)
        assert lost not in clusters_of(found).values()
        await training.goes_on(scenario, without=lost)


async def test_a_failed_sub_job_is_made_again_alone_and_sub_jobs_come_and_go(
    scenario: Scenario,
) -> None:
    await scenario.apply(*documents(SCENARIO=scenario.namespace))
    await scenario.until_phase(NAME, "Running")
    training.kill(scenario, f"{NAME}-trainer-1")
    await scenario.until_phase(NAME, "Degraded")
    found = await scenario.until_phase(NAME, "Running")
    assert attempts(found) == {f"{NAME}-trainer-{index}": int(index == 1) for index in range(3)}
    path = '[{"op": "replace", "path": "/spec/replicatedJobs/0/replicas", "value": 4}]'
    await scenario.kubectl("patch", "hyperjob", NAME, "--type=json", "-p", path)
    await training.heard(scenario, f"{NAME}-trainer-3 starts in")
    found = await scenario.until_phase(NAME, "Running")
    assert sorted(attempts(found).values()) == [0, 0, 0, 1]


async def test_it_trains_with_as_many_as_have_room_and_none_starts_again(
    scenario: Scenario,
) -> None:
    async def made() -> list[tuple[int, float]]:
        (journal,) = scenario.world.kubeconfig.parent.rglob(f"{scenario.namespace}/*/**/journal")
        lines = [line.split() for line in journal.read_text().splitlines()]
        return sorted((int(step), float(at)) for step, _, at in lines)

    documents_ = documents(quorum=1, gpus=2, SCENARIO=scenario.namespace)
    await training.comes_and_goes(scenario, documents_, made)


async def test_the_training_ends_as_one(scenario: Scenario) -> None:
    await scenario.apply(*documents(STEPS="40", SCENARIO=scenario.namespace))
    ended = await scenario.until_phase(NAME, "Completed", "Failed")
    assert ended["status"]["state"]["phase"] == "Completed", ended["status"]["state"]
