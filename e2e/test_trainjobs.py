"""Kubeflow's TrainerClient trains over clusters whose pods are processes of this machine."""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.support import training
from e2e.support.agreement import watched
from e2e.support.killing import SEED, killing
from e2e.support.kubeflow import PROGRAM, PYTHON, played
from e2e.support.scenario import Scenario, clusters_of, phase_of
from e2e.support.settings import from_environment
from e2e.support.unreachable import unreachable
from e2e.support.world import World
from hyperjob_core.api.trainer import COMPLETE, RUNS_AS, RUNS_AS_HYPERJOB
from hyperjob_core.api.wire import condition
from hyperjob_core.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    HYPERJOBS,
    RESOURCE_BINDINGS,
    TRAINJOBS,
)
from hyperjob_trainjobs.fields import RUNTIME, TRAINJOB
from tests.support.stack import kubectl
from tests.support.trainjobs import mpi_runtime, runtime, trainjob

Object = dict[str, Any]
MPI_NODE = """
import os, socket
server = socket.create_server((os.environ["POD_IP"], 2222))
while True:
    peer, _ = server.accept()
    peer.sendall(f"node {os.environ['JOB_COMPLETION_INDEX']} of {os.environ['WHO']}".encode())
    peer.close()
"""
MPI_LAUNCHER = """
import socket, time
for line in open("/etc/mpi/hostfile"):
    host, slots = line.split()
    while True:
        try:
            with socket.create_connection((host, 2222)) as peer:
                print(peer.recv(100).decode(), slots, flush=True)
                break
        except OSError:
            time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield clusters whose pods are processes, with Trainer's CRDs and two runtimes."""
    settings = from_environment()
    if not settings.embedded:
        pytest.skip("the functions run in an image with Python, which a Karmada at hand may lack")
    if not PYTHON.exists():
        pytest.skip("no package kubeflow: run make .venv-kubeflow/.kubeflow")
    directory = tmp_path_factory.mktemp("trainjobs")
    reading = ["--members=logs", "--progress-interval=1"]
    with training.open_process_world(
        settings, directory, controller=reading, trainjobs=True
    ) as opened:
        plain = runtime("plain", policy={"numNodes": 1})
        plain["metadata"]["labels"][RUNS_AS] = RUNS_AS_HYPERJOB
        job = plain["spec"]["template"]["spec"]["replicatedJobs"][0]
        job["template"]["spec"]["backoffLimit"] = 1
        for each in (runtime("jax", policy={"numNodes": 1, "jax": {}}), plain):
            kubectl(opened.kubeconfig, "apply", "-f", "-", stdin=json.dumps(each))
        yield opened
        kubectl(opened.kubeconfig, "delete", CLUSTER_TRAINING_RUNTIMES.group_resource, "--all")


async def nothing_is_left(scenario: Scenario) -> None:
    """Wait until the deletion of the TrainJobs has removed everything that they caused."""
    for resource in (TRAINJOBS, HYPERJOBS, RESOURCE_BINDINGS):
        for each in (await scenario.kube.list(resource, namespace=scenario.namespace)).items:
            await scenario.until_gone(resource, each["metadata"]["name"])
    await scenario.until_members_have(0)


async def test_a_function_trains_over_two_clusters_as_the_client_shows(scenario: Scenario) -> None:
    found = await played(scenario, "two_clusters")
    nodes = [f"node-{rank}" for rank in range(4)]
    assert found["runtimes"] == ["jax", "plain"]
    assert (found["running"]["status"], found["running"]["nodes"]) == ("Running", 4)
    assert sorted(found["running"]["steps"]) == nodes
    followed = [f"step {step} rank 3 of 4 sum 6" for step in range(1, 21)]
    assert found["followed"] == followed
    assert found["ended"]["status"] == "Complete"
    assert found["ended"]["steps"] == dict.fromkeys(nodes, "Succeeded")
    assert found["seen"][-1] == "Running"
    assert found["logs"] == [line.replace("rank 3", "rank 0") for line in followed]
    assert [each["status"] for each in found["listed"]] == ["Complete"]
    assert found["others"] == []
    assert {"TrainJob", "Pod"} <= {kind for kind, _ in found["events"]}
    assert ["TrainJob", "AllJobsCompleted"] in found["events"]
    assert found["left"] == []
    await nothing_is_left(scenario)


async def test_without_the_backend_the_client_shows_trainjobs_and_no_pods(
    scenario: Scenario,
) -> None:
    found = await played(scenario, "unmodified")
    assert found["runtimes"] == ["jax", "plain"]
    assert (found["ended"]["status"], found["ended"]["steps"]) == ("Complete", {})
    assert (found["job"], found["listed"]) == (found["ended"], 1)
    assert (found["logs"], found["packages"], found["left"]) == ([], "", [])
    assert found["events"] == []
    await nothing_is_left(scenario)


async def test_the_packages_of_a_runtime_are_those_of_a_member(scenario: Scenario) -> None:
    found = await played(scenario, "packages")
    assert found == {"line": f"Python: {sys.version.splitlines()[0]}", "left": []}
    await nothing_is_left(scenario)


async def test_a_function_that_raises_fails_the_trainjob_with_its_traceback(
    scenario: Scenario,
) -> None:
    found = await played(scenario, "failed")
    assert found["error"] == "TrainJob NAME is Failed"
    assert found["job"]["status"] == "Failed"
    assert found["logs"][-1] == "ValueError: no data"
    await nothing_is_left(scenario)


async def test_the_options_of_the_client_reach_the_pods_until_the_deadline(
    scenario: Scenario,
) -> None:
    found = await played(scenario, "options")
    assert (found["name"], found["lines"][0], found["followed"]) == ("mine", "hello me", True)
    await nothing_is_left(scenario)


async def test_what_cannot_be_carried_over_is_refused_to_the_client(scenario: Scenario) -> None:
    found = await played(scenario, "refused")
    assert "metadata.annotations[training.volcano.sh/spread]" in found["error"]
    assert "clusters must not be more than the 2 nodes" in found["error"]
    await nothing_is_left(scenario)


async def test_a_deleted_trainjob_leaves_nothing(scenario: Scenario) -> None:
    found = await played(scenario, "deleted")
    assert found == {"log": "waits", "left": []}
    await nothing_is_left(scenario)


async def test_the_launcher_of_mpi_finds_its_nodes_in_the_hostfile_and_ends_them(
    scenario: Scenario,
) -> None:
    made = mpi_runtime(f"mpi-{scenario.namespace}")
    node, launcher = made["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = node["template"]["spec"]["template"]["spec"]["containers"]
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container |= {
        "command": ["python", "-c", MPI_NODE],
        "env": [{"name": "WHO", "value": "me"}, address],
    }
    del launcher["dependsOn"]  # that the launcher waits by ssh is a unit test
    reference = {"name": made["metadata"]["name"]}
    trainer = {"numNodes": 2, "numProcPerNode": 4, "command": ["python", "-c", MPI_LAUNCHER]}
    await scenario.apply(
        made, trainjob("tj", scenario.namespace, runtimeRef=reference, trainer=trainer)
    )
    try:
        await scenario.until_phase("tj", "Completed", "Failed")
        lines = await training.said(scenario)
        assert [each for each in lines if each.startswith("node")] == [
            "node 0 of me slots=4",
            "node 1 of me slots=4",
        ]
        await complete(scenario)
        await scenario.kubectl("delete", TRAINJOBS.group_resource, "tj")
        await nothing_is_left(scenario)
    finally:
        await scenario.kubectl(
            "delete", CLUSTER_TRAINING_RUNTIMES.group_resource, made["metadata"]["name"]
        )


@pytest.mark.skipif(not PYTHON.exists(), reason="no package kubeflow")
def test_every_field_of_trainer_is_decided_and_no_decision_is_about_another() -> None:
    done = subprocess.run(
        [PYTHON, PROGRAM.with_name("trainerfields.py")], capture_output=True, check=True, timeout=60
    )
    fields = json.loads(done.stdout)
    for name, table in (("trainjob", TRAINJOB), ("runtime", RUNTIME)):
        decided = dict.fromkeys(table, False)
        for field in fields[name]:
            found = [path for path in table if field == path or field.startswith(f"{path}.")]
            assert len(found) == 1, f"{name}: {field}: {found}"
            decided[found[0]] = True
        assert [path for path, is_there in decided.items() if not is_there] == []
        print(f"{name}: {len(fields[name])} fields, each decided once")  # noqa: T201


STEPS = (
    "import time\nfor step in range({}):\n    print('step', step, flush=True)\n    time.sleep(0.1)"
)


def over_two_clusters(scenario: Scenario, steps: int) -> Object:
    """Return a TrainJob whose nodes fill two clusters."""
    trainer = {
        "numNodes": 2,
        "command": ["python", "-c", STEPS.format(steps)],
        "env": [{"name": "SCENARIO", "value": scenario.namespace}],
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": scenario.world.per_pod}},
    }
    reference = {"name": "jax"}
    return trainjob(
        "tj", scenario.namespace, spread='{"clusters": 2}', runtimeRef=reference, trainer=trainer
    )


async def suspended(scenario: Scenario, *, on: bool) -> None:
    await scenario.kubectl(
        "patch",
        TRAINJOBS.group_resource,
        "tj",
        "--type=merge",
        "-p",
        f'{{"spec":{{"suspend":{on}}}}}'.lower(),
    )


async def complete(scenario: Scenario) -> None:
    await scenario.until(
        TRAINJOBS,
        "tj",
        lambda found: condition((found or {}).get("status") or {}, COMPLETE),
        what=COMPLETE,
    )


async def test_a_trainjob_ends_as_its_hyperjob_though_the_controller_is_killed(
    scenario: Scenario,
) -> None:
    print(f"HYPERJOB_CHAOS_SEED={SEED}")  # noqa: T201 - shown when the test fails
    controller = scenario.world.stack.controller
    async with (
        watched(scenario, "tj", controller) as contradictions,
        killing(controller, random.Random(f"{SEED} trainjob")),
    ):
        await scenario.apply(over_two_clusters(scenario, 100000))
        await scenario.until_phase("tj", "Running")
        await suspended(scenario, on=True)
        await scenario.until_phase("tj", "Suspended")
        await suspended(scenario, on=False)
        await scenario.until_phase("tj", "Running")
        await scenario.kubectl("delete", TRAINJOBS.group_resource, "tj")
        await nothing_is_left(scenario)
        await scenario.apply(over_two_clusters(scenario, 20))
        await scenario.until_phase("tj", "Completed")
        await complete(scenario)
    print(contradictions)  # noqa: T201
    assert contradictions.looks > 0
    assert contradictions.longest_ready < 5, contradictions
    await scenario.kubectl("delete", TRAINJOBS.group_resource, "tj")
    await nothing_is_left(scenario)


async def commanded(scenario: Scenario, *words: str) -> str:
    """Return what a command of kubectl-hyperjob prints."""
    done = await asyncio.to_thread(
        subprocess.run,
        [
            *(sys.executable, "-m", "hyperjob", *words, "-n", scenario.namespace),
            *("--kubeconfig", scenario.world.kubeconfig),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return str(done.stdout)


async def test_a_trainjob_leaves_a_lost_cluster_as_its_hyperjob_does(scenario: Scenario) -> None:
    controller = scenario.world.stack.controller
    async with watched(scenario, "tj", controller) as contradictions:
        await scenario.apply(over_two_clusters(scenario, 100000))
        found = await scenario.until_phase("tj", "Running")
        assert "step " in await commanded(scenario, "logs", "trainjob/tj")
        assert "tj-node-1-0" in await commanded(scenario, "tree", "trainjob/tj")
        member = clusters_of(found)["tj-node-0-0"]
        async with unreachable(scenario, member):
            training.kill_with(scenario, "JOB_COMPLETION_INDEX=0")
            await scenario.until(
                HYPERJOBS,
                "tj",
                lambda now: (
                    now is not None
                    and phase_of(now) == "Running"
                    and member not in clusters_of(now).values()
                ),
                what=f"Running without {member}",
            )
        await scenario.kubectl("delete", TRAINJOBS.group_resource, "tj")
    print(contradictions)  # noqa: T201
    assert contradictions.longest_ready < 5, contradictions
    await nothing_is_left(scenario)
