"""Trainings in plain Python whose pods are processes of this machine, over several clusters."""

import os
from collections.abc import Iterator

import pytest

from e2e.support import manifests, training
from e2e.support.settings import from_environment
from e2e.support.world import ROOT, World, documents
from hyperjob_core.api.meta import Object


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield clusters whose pods are processes."""
    settings = from_environment()
    if not settings.embedded:
        pytest.skip("the program is not in the images of a Karmada at hand")
    directory = tmp_path_factory.mktemp("processes")
    reading = ["--members=logs", "--progress-interval=1"]
    with training.open_process_world(settings, directory, controller=reading) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> list[Object]:
    """Return the example for torchrun with a program that needs only Python."""
    config_map, hyperjob = documents("torch-training")
    config_map["data"] = {"train.py": (ROOT / "e2e/programs/train.py").read_text()}
    hyperjob["spec"]["plugins"] = {"env": [], "jax": []}
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    for container in training.containers_of(hyperjob):
        container["command"] = ["sh", "-c", 'exec python "$PROGRAM"']
        container["env"].append(address)
    return training.training([config_map, hyperjob], STEPS="60", PAUSE="0.01")


async def test_it_learns_over_two_clusters(scenario, plain):
    lines = await training.learns(scenario, plain)
    assert sum("of 4 in east" in line for line in lines) == 2


async def test_a_killed_process_brings_all_back_from_the_checkpoint(scenario, plain):
    await training.goes_on_after_a_kill(scenario, plain)


async def test_a_suspended_training_leaves_no_process_and_goes_on_when_resumed(scenario, plain):
    await training.goes_on_after_a_suspension(scenario, plain)


async def test_a_training_leaves_a_lost_cluster_and_goes_on_from_the_checkpoint(scenario, plain):
    times = int(os.environ.get("HYPERJOB_E2E_LOSSES", "1"))
    await training.moves_from_a_lost_cluster(scenario, plain, interval=10, times=times)


async def test_a_training_goes_on_in_two_small_clusters_when_its_large_one_is_lost(scenario, plain):
    await training.takes_another_alternative(scenario, plain, interval=10)


async def test_no_step_is_lost_when_a_world_becomes_smaller_and_larger(scenario, plain):
    await training.changes_its_size(scenario, plain)


async def test_no_step_is_lost_in_planned_stops(scenario, plain):
    times = int(os.environ.get("HYPERJOB_E2E_STOPS", "2"))
    await training.stops_without_loss(scenario, plain, times)


async def test_a_command_runs_in_the_process_of_a_rank(scenario):
    container = {"name": "main", "image": "python", "command": ["sleep", "600"]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    task = {"name": "worker", "replicas": 1, "template": {"spec": pod}}
    groups = {"name": "trainer", "replicas": 2, "templateSpec": {"tasks": [task]}}
    await scenario.apply(manifests.hyperjob("entered", groups, plugins={"env": []}))
    await scenario.until_phase("entered", "Running")
    script = 'echo "$HYPERJOB_JOB_NAME"'
    said = await scenario.hyperjob("exec", "entered", "--rank", "1", "--", "sh", "-c", script)
    assert said == "entered-trainer-1\n"
