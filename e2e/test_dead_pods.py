"""The status says what pods that are processes do, where Volcano calls their vcjob Running."""

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.support import training
from e2e.support.scenario import Scenario
from e2e.support.settings import from_environment
from e2e.support.world import World
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND
from hyperjob_core.kube.resources import HYPERJOBS


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield clusters whose pods are processes, and whose pods the controller reads."""
    settings = from_environment()
    if not settings.embedded:
        pytest.skip("the commands are not in the images of a Karmada at hand")
    directory = tmp_path_factory.mktemp("dead")
    reading = ["--members=pods"]
    with training.open_process_world(settings, directory, controller=reading) as opened:
        yield opened


def task(name: str, script: str, *, replicas: int = 1, policy: str = "Never", **pod: Any) -> Object:
    main = {
        "name": "main",
        "image": "any",
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "100m"}},
        **pod.pop("main", {}),
    }
    spec = {"restartPolicy": policy, "containers": [main], **pod}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def hyperjob(name: str, *tasks: Object) -> Object:
    part = {"name": "t", "replicas": 2, "templateSpec": {"tasks": list(tasks)}}
    spec = {"replicatedJobs": [part]}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


async def told(scenario: Scenario, name: str, reason: str) -> Object:
    """Wait until both sub-jobs of a HyperJob, and itself, have the reason; return its status."""

    def holds(found: Object | None) -> bool:
        status = (found or {}).get("status") or {}
        states = [status.get("state", {}), *status.get("jobs", ())]
        return len(states) == 3 and all(each.get("reason") == reason for each in states)

    found = await scenario.until(HYPERJOBS, name, holds, what=reason)
    status: Object = found["status"]
    return status


async def test_a_head_that_failed_while_workers_wait_is_told(scenario: Scenario) -> None:
    workers = task("worker", "sleep 900", replicas=2)
    await scenario.apply(hyperjob("head", task("head", "sleep 1; exit 3"), workers))
    status = await told(scenario, "head", "TasksFailed")
    assert status["state"]["phase"] == "Degraded"
    assert [each["message"] for each in status["jobs"]] == [
        f"task head: pod head-t-{n}-head-0 ended with exit code 3; the other pods run on"
        for n in (0, 1)
    ]
    assert status["goodput"]["state"] == "degraded"
    events = await scenario.kubectl("get", "events")
    assert "TasksFailed" in events
    assert status["jobs"][0]["message"] in await scenario.hyperjob("why", "head")


@pytest.mark.parametrize(
    ("policy", "code", "words"),
    [
        ("OnFailure", 7, "ended with exit code 7 and is started again and again"),
        ("Always", 0, "ended with exit code 0 and is started again, since restartPolicy is Always"),
    ],
)
async def test_a_crash_loop_is_told_and_rests(
    scenario: Scenario, policy: str, code: int, words: str
) -> None:
    name, server = f"loop-{code}", task("server", "sleep 900")
    worker = task("worker", f"echo boom; exit {code}", policy=policy)
    await scenario.apply(hyperjob(name, server, worker))
    status = await told(scenario, name, "CrashLoop")
    assert status["state"]["phase"] in ("Starting", "Degraded")
    running = await scenario.until_phase(name, "Degraded")
    assert [each["message"] for each in running["status"]["jobs"]] == [
        f"task worker: pod {name}-t-{n}-worker-0: container main {words}" for n in (0, 1)
    ]


async def test_pods_without_their_config_map_are_told_until_it_is_there(scenario: Scenario) -> None:
    mounts = [{"name": "c", "mountPath": "/c"}]
    volumes = [{"name": "c", "configMap": {"name": "late"}}]
    worker = task("worker", "true", main={"volumeMounts": mounts}, volumes=volumes)
    await scenario.apply(hyperjob("lacks", worker))
    status = await told(scenario, "lacks", "PodsBlocked")
    first = status["jobs"][0]["message"]
    assert first == "ConfigMap late not found: pod lacks-t-0-worker-0 waits; 0 of 1 pods run"
    assert "ConfigMap late not found" in await scenario.hyperjob("why", "lacks")
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}, "data": {}}
    await scenario.apply(data)
    await scenario.until_phase("lacks", "Completed")
