import pytest

from hyperjob_core.api.quantity import MAX
from hyperjob_engine.resources import (
    amount_text,
    fits,
    is_counted,
    lacking,
    order_of,
    parse_resources,
    pod_request,
    scale,
    subtract,
    total,
    whole,
)
from tests.unit.engine.builders import GPU


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
