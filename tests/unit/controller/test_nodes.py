import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_engine.gang.review import PinnedPlace, review
from hyperjob_engine.model.nodes import Nodes, PodGroup, parse_nodes
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.capacity import less, summarise, unreserved
from hyperjob_engine.placement.place import place
from hyperjob_engine.placement.share import Wish, share
from hyperjob_engine.queueing.reserve import reserved
from hyperjob_engine.queueing.round import schedule
from hyperjob_engine.queueing.state import Settings, new_state, set_queues, update
from hyperjob_engine.queueing.workload import QueuedHyperJob, QueuedSubJob
from hyperjob_engine.reasons.trouble import trouble_text
from hyperjob_engine.resources import parse_resources, scale, total, whole
from hyperjob_sandbox.karmada.clusterstatus import cluster_status, default_resource_models
from tests.unit.engine.builders import GPU, NOW, cluster
from tests.unit.engine.queueworld import queue

Object = dict[str, Any]


def models(*names: str) -> list[Object]:
    """Grades from 0, 1, 2, 4, 8 and 16 on, the same for each resource."""
    steps = [0, 1, 2, 4, 8, 16, 2**40]
    return [
        {
            "grade": grade,
            "ranges": [{"name": name, "min": str(least), "max": str(below)} for name in names],
        }
        for grade, (least, below) in enumerate(itertools.pairwise(steps))
    ]


def node(name: str, **allocatable: str) -> Object:
    named = {GPU if key == "gpu" else key: value for key, value in allocatable.items()}
    return {
        "metadata": {"name": name},
        "status": {
            "allocatable": {"pods": "110", **named},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(on: str, **requests: str) -> Object:
    named = {GPU if key == "gpu" else key: value for key, value in requests.items()}
    return {
        "metadata": {"name": f"p-{on}"},
        "spec": {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": named}}]},
        "status": {"phase": "Running"},
    }


def reported(nodes: list[Object], pods: list[Object], resource_models: list[Object]) -> Object:
    """A Cluster as Karmada would report it."""
    raw: Object = {"metadata": {"name": "a"}, "spec": {"resourceModels": resource_models}}
    apis = [{"groupVersion": "batch.volcano.sh/v1alpha1", "resources": [{"kind": "Job"}]}]
    raw["status"] = cluster_status(
        raw, version="v1", apis=apis, nodes=nodes, pods=pods, now="2026-01-02T03:04:05Z"
    )
    return raw


def known(nodes: list[Object], pods: list[Object], *names: str) -> Nodes:
    found = parse_nodes(reported(nodes, pods, models(*names)))
    assert found is not None
    return found


HALF = [pod(f"n{i}", gpu="4") for i in range(4)]
FOUR = [node(f"n{i}", gpu="8", cpu="64") for i in range(4)]


def test_a_pod_of_eight_fits_no_node_that_has_four_left() -> None:
    found = known(FOUR, HALF, GPU)
    assert [found.most(GPU, whole(size)) for size in (8, 5, 4, 2, 1)] == [0, 0, 4, 8, 16]


def test_what_is_left_in_all_tells_what_several_resources_leave_open() -> None:
    found = known(FOUR, HALF, GPU, "cpu")
    assert found.most(GPU, whole(8)) == 0
    assert found.most(GPU, whole(4)) == 4


def test_models_without_the_resource_say_nothing_of_it() -> None:
    raw = reported(FOUR, HALF, default_resource_models())
    found = parse_nodes(raw)
    assert found is not None
    assert found.resources == {"cpu", "memory"}


def test_nodes_that_no_grade_counts_may_hold_what_is_left() -> None:
    full = replace(known(FOUR, HALF, GPU), all_counted=False)
    assert full.most(GPU, whole(8)) == 0
    empty = Nodes(grades=(), left={GPU: whole(20)}, all_counted=False)
    assert empty.most(GPU, whole(8)) == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw["spec"].pop("resourceModels"),
        lambda raw: raw["status"]["resourceSummary"].pop("allocatableModelings"),
        lambda raw: raw["spec"]["resourceModels"].pop(),
        lambda raw: raw["status"].pop("resourceSummary"),
    ],
)
def test_models_that_are_missing_or_do_not_match_say_nothing(spoil: Any) -> None:
    raw = reported(FOUR, HALF, models(GPU))
    spoil(raw)
    assert parse_nodes(raw) is None


def sized(number: int, gpus: int, name: str = "j") -> PlacementRequest:
    group = PodGroup(parse_resources({GPU: str(gpus), "pods": "1"}), number)
    return PlacementRequest(
        name=name, group="g", demand=scale(group.request, group.number), pods=(group,)
    )


def test_a_sub_job_goes_where_its_pods_fit_on_nodes() -> None:
    crowded = replace(cluster("a", 16), nodes=known(FOUR, HALF, GPU))
    found = place([sized(1, 8)], [crowded, cluster("b", 100)])
    assert dict(found.assigned) == {"j": "b"}
    alone = place([sized(1, 8)], [crowded])
    assert alone.unplaced["j"].text == (
        f"needs 8 {GPU}: a has no node with 8 {GPU} left, by its resource models"
    )


def test_sub_jobs_of_one_pass_share_the_nodes() -> None:
    crowded = replace(cluster("a", 16), nodes=known(FOUR, HALF, GPU))
    found = place([sized(3, 4, "j-0"), sized(1, 3, "j-1"), sized(1, 1, "j-2")], [crowded])
    assert set(found.assigned) == {"j-0", "j-1", "j-2"}
    found = place([sized(3, 4, "j-0"), sized(2, 3, "j-1")], [replace(crowded, free=FREE)])
    assert set(found.assigned) == {"j-0"}
    assert found.unplaced["j-1"].text == (
        f"needs 6 {GPU}: a has nodes for 4 pods with 3 {GPU} each, by its resource models,"
        " and 5 are needed"
    )


FREE = parse_resources({GPU: "100", "pods": "100"})


def test_shares_of_a_split_are_bounded_by_nodes() -> None:
    crowded = replace(cluster("a", 16), nodes=known(FOUR, HALF, GPU))
    wish = Wish(
        group="g",
        accelerators=24,
        kind=GPU,
        fixed=0,
        per_pod=3,
        pod=parse_resources({GPU: "3", "pods": "1"}),
    )
    clusters = (crowded, cluster("b", 13))
    found = share(wish, FreeRoom.of(clusters, ()), max_domains=None)
    assert {item.cluster: item.pods for item in found} == {"a": 4, "b": 4}


@pytest.mark.parametrize(
    ("summary", "usable"),
    [
        ({"totalNum": 3, "readyNum": 1}, True),
        ({"totalNum": 3}, False),
        ({}, True),
    ],
)
def test_a_cluster_without_a_ready_node_is_no_candidate(summary: Object, usable: bool) -> None:
    raw = reported(FOUR, [], models(GPU))
    raw["status"]["nodeSummary"] = summary
    found = summarise(raw)
    assert (found.usable, trouble_text(found.trouble)) == (
        usable,
        "" if usable else "has no ready node",
    )


amounts = st.integers(0, 20)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(amounts, amounts, st.integers(0, 20)), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 3)), min_size=1, max_size=3),
    st.booleans(),
)
def test_what_the_nodes_can_hold_is_never_ruled_out(
    left: list[tuple[int, int, int]], groups: list[tuple[int, int]], two: bool
) -> None:
    """Whatever pods are packed onto nodes, their models allow it."""
    nodes = [
        node(f"n{i}", gpu=str(gpus + used), cpu=str(cpus))
        for i, (gpus, cpus, used) in enumerate(left)
    ]
    pods = [pod(f"n{i}", gpu=str(used)) for i, (_, _, used) in enumerate(left) if used]
    found = known(nodes, pods, *([GPU, "cpu"] if two else [GPU]))
    free = [gpus for gpus, _, _ in left]
    packed = []
    for size, number in groups:
        fitted = 0
        for i, gpus in enumerate(free):
            while fitted < number and gpus >= size:
                gpus -= size
                fitted += 1
            free[i] = gpus
        packed.append(PodGroup(parse_resources({GPU: str(size)}), fitted))
    a = replace(cluster("a", 400), nodes=found)
    assert FreeRoom.of([a], ()).slots.crowding("a", packed) == ""


def test_pods_taken_back_leave_their_nodes() -> None:
    room = FreeRoom.of([replace(cluster("a", 100), nodes=known(FOUR, HALF, GPU))], ())
    wanted = sized(4, 4)
    room.put(wanted, "a")
    assert room.options(replace(wanted, name="k")) == []
    room.take(wanted)
    assert room.options(wanted) == ["a"]
    assert total([room.free["a"]]) == total([cluster("a", 100).free])


def halved(free: int = 100, *reserved: PlacementRequest) -> Cluster:
    """Four nodes of which two have 4 left: as many pods of 4, or none of 8."""
    crowded = replace(cluster("a", free), nodes=known(FOUR, HALF, GPU))
    return less(crowded, reserved)


def test_what_is_reserved_takes_its_nodes_and_gives_them_back() -> None:
    wanted, other = sized(4, 4), replace(sized(1, 4), name="k")
    assert FreeRoom.of([halved()], ()).options(wanted) == ["a"]
    taken = halved(100, other)
    assert FreeRoom.of([taken], ()).options(wanted) == []
    assert FreeRoom.of([unreserved(taken, [other])], ()).options(wanted) == ["a"]
    again = unreserved(halved(), [other])  # nobody knows of it
    assert FreeRoom.of([again], ()).options(replace(wanted, name="l")) == ["a"]
    assert FreeRoom.of([again], ()).options(sized(4, 5)) == [], "that makes no room"


def test_what_is_placed_again_does_not_stand_in_its_own_way() -> None:
    """Two held sub-jobs of 2 pods each are reserved; the cluster of one is lost."""
    one, two = (replace(sized(4, 2), name=name) for name in "jk")
    seats = [
        PinnedPlace(request=one, pin="a", held=True, released=True),
        PinnedPlace(request=two, pin="gone", held=True, released=True),
    ]
    found = review(seats, [halved(92, one)], standing=(), max_domains=None)
    assert (found.ready, dict(found.moves)) == (frozenset({"j"}), {"k": "a"})
    third = PinnedPlace(request=replace(two, name="l"), pin="gone", held=True, released=True)
    found = review([*seats, third], [halved(92, one)], standing=(), max_domains=None)
    assert (found.moves, list(found.short)) == ({"k": "a"}, ["l"])


def test_two_of_one_round_are_not_promised_the_same_nodes() -> None:
    state = new_state(Settings(lag=timedelta(seconds=30)))
    set_queues(state, [queue("default")])
    for name in ("first", "second"):
        part = QueuedSubJob(queue="default", request=replace(sized(4, 3), name=f"{name}-0"))
        alone = QueuedHyperJob(key=f"ns/{name}", created=name, minimum=1, parts=(part,))
        update(state, alone.key, alone, now=NOW)
    assert schedule(state, [halved()], now=NOW).keys == ["ns/first"]
    assert [request.name for request in reserved(state, but="ns/second")["a"]] == ["first-0"]
    assert schedule(state, [halved()], now=NOW).keys == []
