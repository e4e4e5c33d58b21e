"""A TrainJob from its creation to its deletion on any Karmada, by kubectl and by TrainerClient."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest

from e2e.support.kubeflow import PYTHON, played
from e2e.support.scenario import Scenario, clusters_of
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world
from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import COMPLETE, HOSTFILE, RUNS_AS, RUNS_AS_HYPERJOB, SUSPENDED
from hyperjob_core.api.wire import condition, mapping, objects
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PODS,
    RESOURCE_BINDINGS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
)
from tests.support.trainjobs import job, mpi_runtime, runtime, trainjob


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield a world whose webhook and controller follow TrainJobs."""
    settings = from_environment()
    if not (settings.embedded or settings.local):
        pytest.skip("an installed release may have been installed without TrainJobs")
    with open_world(settings, tmp_path_factory.mktemp("trainjobs"), trainjobs=True) as opened:
        yield opened


@pytest.fixture
async def runtimes(scenario: Scenario) -> AsyncIterator[None]:
    """Create the runtimes `long` and `short`, named for the time that their pods take."""
    for name, seconds in (("long", 600), ("short", 3)):
        made = runtime(name, job("trainer"), policy={"numNodes": 1})
        made |= {"kind": TRAINING_RUNTIMES.kind}
        made["metadata"] |= {"namespace": scenario.namespace}
        made["metadata"]["labels"][RUNS_AS] = RUNS_AS_HYPERJOB
        pod = made["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        pod["metadata"] = scenario.world.pod_metadata(seconds=seconds, exit_code=0)
        (container,) = pod["spec"]["containers"]
        container |= {"image": scenario.world.settings.image}
        container |= {"command": ["sh", "-c", f"sleep {seconds}"]}
        await scenario.apply(made)
    yield
    await scenario.kubectl("delete", TRAINJOBS.group_resource, "--all")
    for resource in (HYPERJOBS, RESOURCE_BINDINGS):
        for each in (await scenario.kube.list(resource, namespace=scenario.namespace)).items:
            await scenario.until_gone(resource, each["metadata"]["name"])
    await scenario.until_members_have(0)


def made_of(scenario: Scenario, name: str) -> Object:
    """Return a TrainJob over two clusters with a runtime."""
    limits = {scenario.world.accelerator: scenario.world.per_pod}
    return trainjob(
        "tj",
        scenario.namespace,
        spread=json.dumps({"clusters": list(scenario.world.pair)}),
        labels={},
        runtimeRef={"name": name, "kind": TRAINING_RUNTIMES.kind},
        trainer={"numNodes": 2, "resourcesPerNode": {"limits": limits}},
    )


async def until_status(scenario: Scenario, kind: str, status: str = "True") -> Object:
    """Wait until the TrainJob has a condition."""
    return await scenario.until(
        TRAINJOBS,
        "tj",
        lambda found: condition(mapping((found or {}).get("status")), kind).get("status") == status,
        what=f"{kind} {status}",
    )


def counted(found: Object | None) -> Object:
    """Return the numbers of sub-jobs in the status of a TrainJob."""
    return next(iter(objects(mapping((found or {}).get("status")).get("jobsStatus"))), {})


async def test_a_trainjob_is_suspended_resumed_and_deleted_with_its_pods(
    scenario: Scenario, runtimes: None
) -> None:
    await scenario.apply(made_of(scenario, "long"))
    found = await scenario.until_phase("tj", "Running")
    assert set(clusters_of(found).values()) <= set(scenario.world.pair)
    await scenario.until(
        TRAINJOBS, "tj", lambda now: counted(now).get("active") == 2, what="active"
    )
    for suspend in ("true", "false"):
        body = f'{{"spec":{{"suspend":{suspend}}}}}'
        await scenario.kubectl("patch", "trainjob", "tj", "--type=merge", "-p", body)
        await until_status(scenario, SUSPENDED, suspend.capitalize())
        if suspend == "true":
            await scenario.until_members_have(0)
    await scenario.until_phase("tj", "Running")
    await scenario.kubectl("delete", "trainjob", "tj")
    await scenario.until_gone(HYPERJOBS, "tj")
    await scenario.until_members_have(0)


async def test_a_trainjob_completes_and_counts_its_sub_jobs(
    scenario: Scenario, runtimes: None
) -> None:
    await scenario.apply(made_of(scenario, "short"))
    found = await until_status(scenario, COMPLETE)
    assert counted(found)["succeeded"] == 2


async def test_an_mpi_trainjob_ends_with_its_launcher(scenario: Scenario, runtimes: None) -> None:
    made = mpi_runtime() | {"kind": TRAINING_RUNTIMES.kind}
    made["metadata"] |= {"namespace": scenario.namespace}
    times = {"launcher": 5.0, "node": 600.0}
    for each in made["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = each["template"]["spec"]["template"]
        pod["metadata"] = scenario.world.pod_metadata(seconds=times[each["name"]], exit_code=0)
        (container,) = pod["spec"]["containers"]
        container |= {"image": scenario.world.settings.image}
        container |= {"command": ["sh", "-c", f"sleep {times[each['name']]}"]}
        each.pop("dependsOn", None)  # the image has no ssh
    reference = {"name": "mpi", "kind": TRAINING_RUNTIMES.kind}
    ours = {RUNS_AS: RUNS_AS_HYPERJOB}
    given = trainjob(
        "tj", scenario.namespace, labels=ours, runtimeRef=reference, trainer={"numNodes": 2}
    )
    await scenario.apply(made, given)
    found = await scenario.until_phase("tj", "Running")
    member = scenario.members[clusters_of(found)["tj-launcher-0"]]
    pod = await member.get(PODS, "tj-launcher-0-launcher-0-0", namespace=scenario.namespace)
    hosts = [line.split()[0] for line in pod["metadata"]["annotations"][HOSTFILE].splitlines()]
    theirs = [
        await member.get(PODS, f"tj-launcher-0-node-{rank}-0", namespace=scenario.namespace)
        for rank in (0, 1)
    ]
    assert hosts == [f"{each['spec']['hostname']}.{each['spec']['subdomain']}" for each in theirs]
    if not scenario.world.settings.embedded:  # the embedded Volcano has no plugin ssh
        mounted = pod["spec"]["containers"][0]["volumeMounts"]
        assert "/root/.ssh" in [each["mountPath"] for each in mounted]
    assert counted(await until_status(scenario, COMPLETE))["succeeded"] == 1


@pytest.mark.skipif(not PYTHON.exists(), reason="no package kubeflow")
async def test_trainer_client_reads_the_pods_of_members_through_karmada(
    scenario: Scenario, runtimes: None
) -> None:
    found = await played(scenario, "anywhere")
    assert found["runtimes"] == ["long", "short"]
    assert found["running"]["status"] == "Running"
    assert sorted(found["running"]["steps"]) == ["node-0", "node-1"]
    assert found["ended"]["status"] == "Complete"
    assert ["TrainJob", "AllJobsCompleted"] in found["events"]
    assert found["left"] == []
