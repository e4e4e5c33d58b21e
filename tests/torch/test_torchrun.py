"""Real torchrun over clusters whose pods are processes: the worlds that plugin pytorch makes."""

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.support import training
from e2e.support.manifests import hyperjob
from e2e.support.scenario import Scenario

Object = dict[str, Any]
SCRIPT = Path(__file__).with_name("all_reduce.py")

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(1200)]


def config_map() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "program"},
        "data": {"all_reduce.py": SCRIPT.read_text()},
    }


def task(name: str, *, replicas: int = 1, gpus: int = 1) -> Object:
    container = {
        "name": "trainer",
        "image": "pytorch",
        "command": ["sh", "-c", 'exec torchrun "$PROGRAM"'],
        "env": [
            {"name": "PROGRAM", "value": "/program/all_reduce.py"},
            {"name": "OMP_NUM_THREADS", "value": "1"},
        ],
        "volumeMounts": [{"name": "program", "mountPath": "/program"}],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "program", "configMap": {"name": "program"}}],
    }
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def twice(*tasks: Object) -> Object:
    """Return two sub-jobs of these tasks, each of which fills a cluster."""
    group = {"name": "t", "replicas": 2, "templateSpec": {"tasks": list(tasks)}}
    return hyperjob("world", group, plugins={"env": [], "pytorch": ["--timeout=300"]})


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(twice(task("worker", replicas=2)), id="one task, whose first pod leads"),
        pytest.param(twice(task("master"), task("worker")), id="a master and a worker"),
        pytest.param(twice(task("node", gpus=2)), id="two processes in each pod"),
    ],
)
async def test_the_processes_of_both_clusters_are_one_world(
    scenario: Scenario, made: Object
) -> None:
    await scenario.apply(config_map(), made)
    ended = await scenario.until_phase("world", "Completed", "Failed")
    lines = await training.said(scenario)
    assert ended["status"]["state"]["phase"] == "Completed", "\n".join(lines)
    told = [json.loads(line) for line in lines if line.startswith("{")]
    assert sorted(each["rank"] for each in told) == [0, 1, 2, 3]
    assert {(each["world"], each["sum"]) for each in told} == {(4, 0b1111)}
    placed = {job["name"]: job["cluster"] for job in ended["status"]["jobs"]}
    assert {(each["job"], each["cluster"]) for each in told} == set(placed.items())
    assert len(set(placed.values())) == 2
    assert {each["run"] for each in told} == {f"world-{ended['metadata']['uid']}-0"}
