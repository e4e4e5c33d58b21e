"""Amounts of resources, and which of the extended ones count accelerators."""

from collections.abc import Iterator

import pytest

from hyperjob_core.api.quantity import MAX
from hyperjob_engine.expansion.expand import expand
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.resources import (
    accelerator_of,
    add_rows,
    amount_text,
    devices_in,
    fits,
    is_companion,
    is_counted,
    is_device,
    lacking,
    order_of,
    parse_resources,
    parse_rows,
    pod_request,
    scale,
    subtract,
    total,
    whole,
)
from tests.unit.engine.builders import GPU, group, hyperjob, task, template


def container(**resources: object) -> dict[str, object]:
    return {"name": "c", "resources": resources}


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1e400", MAX), ("-1e400", -MAX), ("9223372036854775808", MAX), ("9.3E", MAX), (1e308, MAX)],
)
def test_no_amount_is_larger_than_kubernetes_counts(text: object, amount: int) -> None:
    assert parse_resources({GPU: text, "cpu": "1"}) == {GPU: amount, "cpu": whole(1)}


CPU = container(requests={"cpu": "1"})
REQUESTS: dict[str, tuple[dict[str, object], dict[str, str]]] = {
    "containers are added up": (
        {"containers": [container(requests={"cpu": "100m"}), CPU]},
        {"cpu": "1100m"},
    ),
    "a limit stands in for a missing request": (
        {"containers": [container(limits={"cpu": "2", GPU: "4"}, requests={"cpu": "1"})]},
        {"cpu": "1", GPU: "4"},
    ),
    "the largest init container counts if it is larger than all containers": (
        {
            "containers": [CPU],
            "initContainers": [container(requests={"cpu": each}) for each in ("3", "2")],
        },
        {"cpu": "3"},
    ),
    "a sidecar counts beside containers and beside later init containers": (
        {
            "containers": [CPU],
            "initContainers": [
                container(requests={"cpu": "500m"}) | {"restartPolicy": "Always"},
                CPU,
            ],
        },
        {"cpu": "1500m"},
    ),
    "overhead is added": ({"containers": [CPU], "overhead": {"cpu": "250m"}}, {"cpu": "1250m"}),
    "requests of the pod override the sum": (
        {
            "containers": [container(requests={"cpu": "1", GPU: "1"})],
            "resources": {"requests": {"cpu": "4"}},
        },
        {"cpu": "4", GPU: "1"},
    ),
    "what is no quantity is left out": (
        {"containers": [container(requests={"cpu": "x", GPU: 2, "a/b": True}), "no", {}]},
        {GPU: "2"},
    ),
    "no containers, no request": ({}, {}),
}


@pytest.mark.parametrize(("pod", "expected"), REQUESTS.values(), ids=list(REQUESTS))
def test_a_pod_requests(pod: dict[str, object], expected: dict[str, str]) -> None:
    assert pod_request(pod) == parse_resources(expected)


def test_amounts_are_exact() -> None:
    tenth = parse_resources({"cpu": "100m"})
    assert scale(tenth, 10) == parse_resources({"cpu": "1"})
    assert total([parse_resources({"memory": "1Gi"}), parse_resources({"memory": "1"})]) == {
        "memory": (2**30 + 1) * 10**9
    }


def test_what_is_absent_is_not_free() -> None:
    demand = parse_resources({GPU: "1", "cpu": "1"})
    assert not fits(demand, parse_resources({"cpu": "8"}))
    assert lacking(demand, parse_resources({"cpu": "500m"})) == parse_resources(
        {GPU: "1", "cpu": "500m"}
    )


def test_overcommitted_resources_are_not_counted_twice_against_a_demand() -> None:
    free = subtract(parse_resources({GPU: "4"}), parse_resources({GPU: "10"}))
    assert lacking(parse_resources({GPU: "8"}), free) == parse_resources({GPU: "8"})


def test_the_last_unit_that_is_missing_is_told() -> None:
    assert lacking({GPU: 2, "cpu": 0}, {GPU: 1}) == {GPU: 1}
    assert lacking({GPU: 1, "cpu": 1}, {GPU: 1}) == {"cpu": 1}
    assert lacking({GPU: 1}, {GPU: -5}) == {GPU: 1}
    assert lacking({GPU: -1}, {}) == {}


def test_a_reader_sees_accelerators_first_then_devices_then_the_native_ones_then_pods() -> None:
    names = ["pods", "cpu", "example.com/fpga", "memory", "nvidia.com/gpu", "amd.com/gpu"]
    assert sorted(names, key=order_of) == [
        "amd.com/gpu", "nvidia.com/gpu", "example.com/fpga", "cpu", "memory", "pods",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        (GPU, True),
        ("example.com/fpga", True),
        ("rdma/hca_a", False),
        ("nvidia.com/gpumem", False),
        ("hugepages-2Mi", False),
    ],
)
def test_use_is_shown_of_devices_and_not_of_their_parts_or_of_interfaces(
    name: str, counted: bool
) -> None:
    assert is_counted(name) is counted


@pytest.mark.parametrize(
    ("name", "text", "printed"),
    [
        (GPU, "2000", f"2000 {GPU}"),
        ("memory", "1536Mi", "1536Mi memory"),
        ("memory", "1234567890", "1.15Gi memory"),
        ("cpu", "1500m", "1500m cpu"),
        ("cpu", "99500m", "99.5 cpu"),
        ("cpu", "33333333333n", "33.3 cpu"),
    ],
)
def test_amounts_are_printed_as_people_write_them(name: str, text: str, printed: str) -> None:
    assert amount_text(name, parse_resources({name: text})[name]) == printed


@pytest.mark.parametrize(
    ("amounts", "accelerator"),
    [
        ({"nvidia.com/gpu": "8", "cpu": "64", "rdma/hca_a": "100"}, "nvidia.com/gpu"),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000"},
         "volcano.sh/vgpu-number"),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "50"},
         "nvidia.com/gpu"),
        ({"huawei.com/Ascend910B": "1", "huawei.com/Ascend910B-memory": "16384"},
         "huawei.com/Ascend910B"),
        ({"hygon.com/dcunum": "2", "hygon.com/dcumem": "16000", "hygon.com/dcucores": "60"},
         "hygon.com/dcunum"),
        ({"nvidia.com/mig-3g.20gb": "2", "rdma/hca_a": "100"}, "nvidia.com/mig-3g.20gb"),
        ({"cambricon.com/vmlu": "1", "cambricon.com/mlu370.smlu.vmemory": "20"},
         "cambricon.com/vmlu"),
        ({"volcano.sh/gpu-memory": "1024", "volcano.sh/gpu-number": "1"}, "volcano.sh/gpu-number"),
        ({"ascend910c": "16"}, "ascend910c"),
        ({"example.com/npu": "1", "example.com/npu-memory": "16000"}, "example.com/npu"),
        ({"vpc.amazonaws.com/efa": "32", "aws.amazon.com/neuron": "16"}, "aws.amazon.com/neuron"),
        ({"aws.amazon.com/neuroncore": "2"}, "aws.amazon.com/neuroncore"),
        ({"example.com/fpga": "2", "example.com/lens": "1"}, "example.com/fpga"),
        ({"volcano.sh/gpu-memory": "1024"}, "volcano.sh/gpu-memory"),
        ({"gpu.intel.com/i915": "2", "gpu.intel.com/memory.max": "16G",
          "gpu.intel.com/millicores": "2k", "gpu.intel.com/tiles": "4"}, "gpu.intel.com/i915"),
        ({"enflame.com/drs-gcu": "1", "enflame.com/gcu-core": "30"}, "enflame.com/drs-gcu"),
        ({"cambricon.com/mlunum": "1", "cambricon.com/mlumem": "10240"}, "cambricon.com/mlunum"),
        ({"networking.gke.io.networks/gpu-nic0": "1", "nvidia.com/gpu": "1"}, "nvidia.com/gpu"),
        ({"example.com/h100": "1", "rdma/hca_a": "8"}, "example.com/h100"),
        ({"example.com/widget": "1", "example.com/gadget": "2"}, "example.com/gadget"),
        ({"cpu": "4", "rdma/hca_a": "100"}, None),
        ({"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "1Gi"}, None),
        ({"nvidia.com/gpu": "0"}, None),
    ],
)  # fmt: skip
def test_an_accelerator_is_what_is_counted_and_not_what_has_the_largest_number(
    amounts: dict[str, str], accelerator: str | None
) -> None:
    assert accelerator_of(parse_resources(amounts)) == accelerator


@pytest.mark.parametrize(
    ("limits", "number"),
    [
        ({"aliyun.com/gpu-mem": 24}, 1),
        ({"tencent.com/vcuda-core": 50, "tencent.com/vcuda-memory": 30}, 1),
        ({"volcano.sh/gpu-memory": 1024}, 1),
        ({"huawei.com/npu-core": 8}, 1),
        ({"aliyun.com/gpu-mem": 24, "aliyun.com/gpu-count": 2}, 2),
        ({"aws.amazon.com/neuroncore": 2}, 2),
        ({"rdma/hca_a": 100}, None),
    ],
)
def test_a_pod_with_the_memory_or_cores_of_a_device_alone_has_one_device(
    limits: dict[str, int], number: int | None
) -> None:
    worker = task(replicas=3, gpus=0)
    worker["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
    job = parse_hyperjob(hyperjob(group(replicas=1, templateSpec=template(worker))))
    (size,) = expand(job)[0].sizes
    assert size.accelerators == (number and 3 * number)
    assert devices_in(pod_request(worker["template"]["spec"])) == (number or 0)


@pytest.mark.parametrize(
    "name",
    ["volcano.sh/vgpu-cores", "nvidia.com/gpumem-percentage", "huawei.com/Ascend310P-memory"],
)
def test_a_companion_that_a_cluster_does_not_list_is_not_asked_for(name: str) -> None:
    assert is_companion(name)
    assert not is_device(name)
    demand = parse_resources({"volcano.sh/vgpu-number": "1", name: "50"})
    free = parse_resources({"volcano.sh/vgpu-number": "8"})
    assert fits(demand, free)
    assert lacking(demand, free) == {}


def test_a_companion_that_a_cluster_lists_is_asked_for() -> None:
    demand = parse_resources({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000"})
    free = parse_resources({"volcano.sh/vgpu-number": "8", "volcano.sh/vgpu-memory": "2000"})
    assert not fits(demand, free)
    assert list(lacking(demand, free)) == ["volcano.sh/vgpu-memory"]


def test_an_unknown_resource_that_no_cluster_lists_is_missing() -> None:
    assert not fits(parse_resources({"example.com/fpga": "1"}), {})


def test_the_memory_of_a_virtual_gpu_counts_for_each_of_them() -> None:
    limits = {"volcano.sh/vgpu-number": "4", "volcano.sh/vgpu-memory": "3000"}
    pod = {"containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}]}
    assert pod_request(pod)["volcano.sh/vgpu-memory"] == parse_resources({"x": "12000"})["x"]


@pytest.fixture
def _rows_of_an_administrator() -> Iterator[None]:
    add_rows(
        parse_rows("example.com/lens:example.com/lens-memory+example.com/lens-share,e.io/rdma")
    )
    yield
    add_rows(())


@pytest.mark.usefixtures("_rows_of_an_administrator")
def test_a_row_of_an_administrator_counts_beside_the_known_ones() -> None:
    amounts = {"example.com/lens": "2", "example.com/fpga": "9", "example.com/lens-memory": "3000"}
    assert accelerator_of(parse_resources(amounts)) == "example.com/lens"
    assert fits(
        parse_resources(amounts),
        parse_resources({"example.com/lens": "2", "example.com/fpga": "9"}),
    )
    assert is_device("e.io/rdma")
    assert is_device("nvidia.com/gpu")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("npu", "'npu' is no name of an extended resource"),
        ("example.com/npu:memory", "'memory' is no name of an extended resource"),
        ("example.com/n pu", "'example.com/n pu' is no name"),
        (":example.com/npu-memory", "'' is no name"),
        ("e.io/x," * 1000, "at most 4096 characters"),
    ],
)
def test_a_row_names_extended_resources(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        parse_rows(text)
