"""Devices of resource claims: counted by class where a member publishes them, else not known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from hyperjob_engine.expansion.expand import demand_of
from hyperjob_engine.expansion.templates import with_devices
from hyperjob_engine.members.deviceclasses import claim_fact, class_fact, slice_fact
from hyperjob_engine.members.facts import node_fact, pod_fact
from hyperjob_engine.members.fold import MemberFold, view_of
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.request import PlacementRequest, kind_of
from hyperjob_engine.placement.capacity import promised_on, seen_by_nodes
from hyperjob_engine.placement.place import place
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import NANO
from tests.unit.engine.builders import cluster
from tests.unit.engine.test_members_fold import node, pod

GPUS, NICS = "deviceclass/gpu.example.com", "deviceclass/nic.example.com"
OF_GPUS = 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].type == "gpu"'


def device(number: int, **attributes: Any) -> Object:
    texts = {name: {"string": value} for name, value in attributes.items()}
    return {"name": f"d{number}", "attributes": {"uuid": {"string": f"u{number}"}, **texts}}


def published(name: str, devices: list[Object], on: str = "n1", **spec: Any) -> Object:
    pool = {"name": on or "pool", "generation": 1, "resourceSliceCount": 1}
    where = {"nodeName": on} if on else {"allNodes": True}
    spec = {"driver": "gpu.example.com", "pool": pool, **where, "devices": devices, **spec}
    return {"metadata": {"name": name}, "spec": spec}


def of_class(name: str, *expressions: str) -> Object:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors}}


def claim(name: str, of: str, number: int) -> Object:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com", "count": number}}
    results = [{"request": "r", "pool": "n1", "device": f"d{each}"} for each in range(number)]
    allocated = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": of, "uid": of}],
    }
    return {
        "metadata": {"namespace": "default", "name": name},
        "spec": {"devices": {"requests": [request]}},
        "status": allocated if of else {},
    }


def template(*requests: Object) -> Object:
    return {
        "metadata": {"namespace": "default", "name": "gpus"},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def member(
    slices: list[Object] | None,
    classes: list[Object],
    *,
    claims: Sequence[Object] = (),
    pods: Sequence[Object] = (),
) -> MemberView:
    facts = {
        RESOURCE_SLICES: None if slices is None else map(slice_fact, slices),
        DEVICE_CLASSES: None if slices is None else map(class_fact, classes),
        RESOURCE_CLAIMS: map(claim_fact, claims),
        NODES: map(node_fact, [node("n1", 0), node("n2", 0)]),
        PODS: map(pod_fact, pods),
    }
    return view_of(facts)


def free(view: MemberView) -> list[int | None]:
    amounts = [each.free.get(GPUS) for each in view.nodes]
    return [amount if amount is None or amount < 0 else amount // NANO for amount in amounts]


EIGHT = [device(number, type="gpu", model="a") for number in range(8)]
NEWER = {"name": "n1", "generation": 2}
ON_N2 = {**EIGHT[0], "nodeName": "n2"}
OF_ONE = "device.attributes['gpu.example.com'].uuid == 'u1'"
MIXED = [*EIGHT[:2], device(8, type="mig"), device(9, type="mig"), device(10, type="mig")]
PLAIN = {**EIGHT[0], "attributes": {"mig": {"bool": False}, "rack.io/row": {"int": 4}}}
SPLIT = {**PLAIN, "attributes": {"mig": {"bool": True}, "rack.io/row": {"int": 5}}}
BY_DRIVER = 'device.driver == "gpu.example.com" && '
IS_SPLIT = BY_DRIVER + 'device.attributes["gpu.example.com"].mig == true'
IN_ROW = BY_DRIVER + 'device.attributes["rack.io"].row == 4'
TAINTED = [{**EIGHT[0], "taints": [{"key": "broken", "effect": "NoSchedule"}]}, EIGHT[1]]


@pytest.mark.parametrize(
    ("slices", "expression", "on_nodes"),
    [
        ([published("s", EIGHT)], OF_GPUS, [8, None]),
        ([published("s", EIGHT), published("t", EIGHT[:3], on="n2")], OF_GPUS, [8, 3]),
        ([published("s", MIXED)], OF_GPUS, [2, None]),
        ([published("s", MIXED)], "device.driver == 'gpu.example.com'", [5, None]),
        ([published("s", MIXED)], OF_GPUS + ' && device.capacity["x"].memory > 3', [2, None]),
        ([published("s", EIGHT)], OF_GPUS.replace('"gpu"', '"mig"'), [None, None]),
        ([published("s", EIGHT)], OF_GPUS + f" && {OF_ONE}", [8, None]),
        ([published("s", TAINTED)], OF_GPUS, [1, None]),
        # An attribute is of the driver unless it names another domain.
        ([published("s", [PLAIN, SPLIT, SPLIT])], IS_SPLIT, [2, None]),
        ([published("s", [PLAIN, SPLIT, SPLIT])], IN_ROW, [1, None]),
        ([published("old", EIGHT), published("s", EIGHT[:4], pool=NEWER)], OF_GPUS, [4, None]),
        ([published("s", [ON_N2], on="")], OF_GPUS, [None, 1]),
        # On which nodes these devices are, no one can say: the class is not known.
        ([published("s", EIGHT, on="")], OF_GPUS, [-1, -1]),
        ([published("s", EIGHT)], "device.driver.startsWith('gpu')", [-1, -1]),
        ([published("s", EIGHT)], OF_GPUS + " || device.driver == 'other'", [-1, -1]),
    ],
)  # fmt: skip
def test_a_node_has_the_devices_of_a_class_that_its_slices_list(
    slices: list[Object], expression: str, on_nodes: list[int | None]
) -> None:
    assert free(member(slices, [of_class("gpu.example.com", expression)])) == on_nodes


def test_of_a_slice_that_is_made_to_fill_the_memory_a_bounded_part_is_kept() -> None:
    texts = {f"a{number}": {"string": "x" * 10**4} for number in range(10**3)}
    far = {"y" * 10**4: {"string": "x"}, **texts}
    (found,) = slice_fact(published("s", [{"name": "d", "attributes": far}])).devices
    kept = [text for pair in found[1] for text in pair if text is not None]
    assert len(found[1]) <= 33
    assert max(map(len, kept)) <= 128


def of_one_pod(demand: Mapping[str, int]) -> PlacementRequest:
    demand = {"pods": NANO, **{name: number * NANO for name, number in demand.items()}}
    return PlacementRequest(name="a", group="g", demand=demand, pods=((kind_of(demand), 1),))


def placed(view: MemberView, demand: Mapping[str, int], *, promised: int = 0) -> list[str]:
    """Return the clusters with room for a sub-job of one pod of a demand."""
    request = of_one_pod(demand)
    seen = seen_by_nodes(cluster("east", gpus=0), view)
    held = {name: amount * promised for name, amount in request.demand.items()}
    return list(Room([promised_on(seen, held)]).ranked(request))


def test_a_cluster_without_devices_of_a_class_is_told_so() -> None:
    seen = seen_by_nodes(cluster("east", gpus=0), member([], CLASSES))
    (told,) = place([of_one_pod({GPUS: 2})], Room([seen])).unplaced.values()
    assert told.text == f"needs 2 {GPUS}: east has no {GPUS} free"


CLASSES = [of_class("gpu.example.com", OF_GPUS)]


@pytest.mark.parametrize(
    ("view", "demand", "promised", "has_room"),
    [
        (member([published("s", EIGHT)], CLASSES), {GPUS: 8}, 0, True),
        (member([published("s", EIGHT)], CLASSES), {GPUS: 9}, 0, False),
        (member([published("s", EIGHT)], CLASSES), {NICS: 1}, 0, False),
        (member([], CLASSES), {GPUS: 1}, 0, False),
        (member([published("s", EIGHT, on="")], CLASSES), {GPUS: 9}, 0, True),
        # Without the API nothing is known, whatever is promised already.
        (member(None, []), {GPUS: 9}, 0, True),
        (member(None, []), {GPUS: 9}, 3, True),
    ],
)
def test_a_cluster_with_the_api_has_room_for_the_devices_that_it_lists_alone(
    view: MemberView, demand: Mapping[str, int], promised: int, *, has_room: bool
) -> None:
    assert placed(view, demand, promised=promised) == (["east"] if has_room else [])


def test_claims_hold_the_devices_of_their_pods_until_these_end_or_the_claim_goes() -> None:
    taken = pod("p", "n1", 0)
    fold = MemberFold()
    fold.replace(NODES, map(node_fact, [node("n1", 0), node("n2", 0)]))
    fold.replace(RESOURCE_SLICES, [slice_fact(published("s", EIGHT))])
    fold.replace(DEVICE_CLASSES, map(class_fact, CLASSES))
    fold.put(RESOURCE_CLAIMS, claim_fact(claim("c", "p", 5)))
    assert free(fold.view()) == [8, None], "the pod is not known yet"
    fold.put(PODS, pod_fact(taken))
    assert free(fold.view()) == [3, None]
    fold.put(RESOURCE_CLAIMS, claim_fact(claim("d", "p", 3)))
    assert free(fold.view()) == [0, None], "none is left"
    assert placed(fold.view(), {GPUS: 1}) == []
    fold.replace(RESOURCE_CLAIMS, [claim_fact(claim("d", "p", 3)), claim_fact(claim("e", "", 4))])
    assert free(fold.view()) == [5, None]
    fold.drop(PODS, "default/p")
    assert free(fold.view()) == [8, None]
    fold.drop(RESOURCE_SLICES, "s")
    assert placed(fold.view(), {GPUS: 1}) == []
    fold.replace(RESOURCE_SLICES, None)
    assert placed(fold.view(), {GPUS: 1}) == ["east"]


def test_a_claim_holds_the_devices_of_the_alternative_that_it_got() -> None:
    taken, plain = claim("c", "p", 2), claim_fact(claim("c", "p", 2))
    (request,) = taken["spec"]["devices"]["requests"]
    first = {"name": "b", "deviceClassName": "nic.example.com"}
    request["firstAvailable"] = [first, {"name": "a", **request.pop("exactly")}]
    for each in taken["status"]["allocation"]["devices"]["results"]:
        each["request"] = "r/a"
    assert claim_fact(taken) == plain


def test_a_pod_of_a_sub_job_holds_its_devices_once_by_its_annotation_and_its_claim() -> None:
    own = pod("p", "n1", 0, job="hj-a-0")
    own["metadata"]["annotations"] = {"training.volcano.sh/devices": "gpu.example.com=5"}
    both = member([published("s", EIGHT)], CLASSES, pods=[own], claims=[claim("c", "p", 5)])
    assert free(both) == free(member([published("s", EIGHT)], CLASSES, pods=[own])) == [3, None]
    del own["metadata"]["labels"]["volcano.sh/job-name"]
    assert free(member([published("s", EIGHT)], CLASSES, pods=[own])) == [8, None], "any pod"


def hyperjob(pod_spec: Object) -> Object:
    spec = {"containers": [{"name": "main"}], **pod_spec}
    task = {"name": "worker", "replicas": 2, "template": {"spec": spec}}
    group = {"name": "trainer", "replicas": 1, "templateSpec": {"tasks": [task]}}
    return {"metadata": {"namespace": "default", "name": "hj"}, "spec": {"replicatedJobs": [group]}}


def exactly(name: str, number: int | None = None) -> Object:
    count = {} if number is None else {"count": number}
    return {"name": "r", "exactly": {"deviceClassName": name, **count}}


BOTH = "gpu.example.com=2,nic.example.com=1"
TWO = exactly("gpu.example.com", 2)
FIRST = {"name": "a", "deviceClassName": "gpu.example.com", "count": 3}
EITHER = {"name": "r", "firstAvailable": [FIRST, {**FIRST, "name": "b", "count": 5}]}
WATCHES = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com", "adminAccess": True}}


@pytest.mark.parametrize(
    ("claims", "requests", "mark", "demand"),
    [
        (["gpus"], [exactly("gpu.example.com", 4)], "gpu.example.com=4", {GPUS: 8}),
        (["gpus", "gpus"], [exactly("gpu.example.com")], "gpu.example.com=2", {GPUS: 4}),
        (["gpus"], [TWO, exactly("nic.example.com")], BOTH, {GPUS: 4, NICS: 2}),
        (["gpus"], [EITHER], "gpu.example.com=3", {GPUS: 6}),
        (["gpus"], [WATCHES], None, {}),
        (["missing"], [exactly("gpu.example.com", 4)], None, {}),
        ([], [exactly("gpu.example.com", 4)], None, {}),
    ],
)  # fmt: skip
def test_the_pods_of_a_sub_job_ask_for_what_the_templates_of_their_claims_ask_for(
    claims: list[str], requests: list[Object], mark: str | None, demand: Mapping[str, int]
) -> None:
    named = [{"name": f"c{i}", "resourceClaimTemplateName": each} for i, each in enumerate(claims)]
    raw = hyperjob({"resourceClaims": [*named, {"name": "shared", "resourceClaimName": "gpus"}]})
    known = {"default/gpus": template(*requests)}
    parsed = parse_hyperjob(raw)
    found = with_devices(parsed, known.get)
    (task,) = found.replicated_jobs[0].template["tasks"]
    marks = task["template"].get("metadata", {}).get("annotations", {})
    assert marks.get("training.volcano.sh/devices") == mark
    total = demand_of(found.replicated_jobs[0].template)
    assert {name: amount // NANO for name, amount in total.items() if "/" in name} == demand
    assert replace(found, replicated_jobs=parsed.replicated_jobs) == parsed
