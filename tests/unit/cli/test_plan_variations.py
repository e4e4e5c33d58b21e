"""`hyperjob plan` over four unlike clusters: where unlike HyperJobs stand, and why others wait."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hyperjob.cli.plan import plan
from hyperjob_core.yamltext import to_yaml
from tests.unit.cli.test_plan import admitted_by

GPU, NPU = "nvidia.com/gpu", "huawei.com/Ascend910"
CLUSTERS = """
clusters:
- {name: a, nodes: [{count: 4, allocatable: {cpu: 64, memory: 256Gi, nvidia.com/gpu: 8}}]}
- {name: b, nodes: [{count: 4, allocatable: {cpu: 64, memory: 256Gi, nvidia.com/gpu: 8}}]}
- {name: npu, nodes: [{count: 2, allocatable: {cpu: 64, memory: 256Gi, huawei.com/Ascend910: 8}}]}
- {name: cpu, nodes: [{count: 2, allocatable: {cpu: 32, memory: 512Gi}}]}
"""
Object = dict[str, Any]


def task(pods: int, init: Object | None = None, **requests: object) -> Object:
    named = {{"gpu": GPU, "npu": NPU}.get(name, name): amount for name, amount in requests.items()}
    spec: Object = {"containers": [{"name": "c", "image": "i", "resources": {"requests": named}}]}
    if init is not None:
        spec["initContainers"] = [{"name": "x", "image": "i", "resources": {"requests": init}}]
    return {"name": "w", "replicas": pods, "template": {"spec": spec}}


def group(name: str, *tasks: Object, **fields: Any) -> Object:
    named = [each | {"name": f"w{number}"} for number, each in enumerate(tasks)]
    return {"name": name, "templateSpec": {"tasks": named}, **fields}


def split(mode: str, accelerators: int) -> Object:
    return {"mode": mode, "accelerators": accelerators, "acceleratorType": GPU}


CASES: dict[str, tuple[list[Object], Object, str]] = {
    "two of 24 on 32 and 32": (
        [group("t", task(24, gpu=1), replicas=2)],
        {},
        "t-0 a 24, t-1 b 24",
    ),
    "one domain, though the sum would fit": (
        [group("t", task(20, gpu=1), replicas=2)],
        {"maxDomains": 1},
        "b has room but maxDomains 1 is used up",
    ),
    "more than one cluster has, shared equally": (
        [group("t", task(1, gpu=1), splitPolicy=split("auto", 50))],
        {},
        "t-0 a 25, t-1 b 25",
    ),
    "one more than all have": (
        [group("t", task(1, gpu=1), splitPolicy=split("auto", 65))],
        {},
        "its automatic split needs 65 nvidia.com/gpu, there is room for 64: 32 on a, 32 on b",
    ),
    "three shares of 64 on two clusters of 32": (
        [group("t", task(2, gpu=8), replicas=3, splitPolicy=split("static", 64))],
        {},
        "3 sub-jobs must start together, there is room for 2 and too little even on empty",
    ),
    "each kind where it is": (
        [group("g", task(8, gpu=2)), group("n", task(16, npu=1)), group("c", task(4, cpu=8))],
        {},
        "g-0 a 16, n-0 npu 16, c-0 cpu 0",
    ),
    "memory is what is scarce": (
        [group("t", task(3, memory="400Gi"))],
        {},
        "t-0 needs 1200Gi memory: each of a, b, cpu lacks 176Gi memory (has 1Ti)",
    ),
    "an init container asks for more than the others": (
        [group("t", task(32, {"cpu": 10}, gpu=1, cpu=1))],
        {},
        "t-0 needs 32 nvidia.com/gpu: each of a, b lacks 64 cpu (has 256)",
    ),
    "a master without accelerators": (
        [group("t", task(1, cpu=1), task(4, gpu=8), replicas=2)],
        {},
        "t-0 a 32, t-1 b 32",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("admission", ["none", "volcano-global"])
def test_a_plan(tmp_path: Path, case: str, admission: str) -> None:
    groups, fields, expected = CASES[case]
    raw = {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": "hj"},
        "spec": {"replicatedJobs": groups, **fields},
    }
    jobs, clusters = tmp_path / "job.yaml", tmp_path / "clusters.yaml"
    jobs.write_text(to_yaml(raw))
    clusters.write_text(CLUSTERS)
    with admitted_by(admission):
        result = CliRunner().invoke(
            plan, ["-f", str(jobs), "--clusters", str(clusters), "-o", "json"]
        )
    (item,) = json.loads(result.output)["items"]
    if result.exit_code:
        assert (item["verdict"], result.exit_code) == ("CannotRun", 4)  # the clusters are empty
        assert expected in item["message"]
    else:
        stands = (
            f"{each['name'].removeprefix('hj-')} {each['cluster']} {each.get('accelerators', 0)}"
            for each in item["jobs"]
        )
        assert ", ".join(stands) == expected
