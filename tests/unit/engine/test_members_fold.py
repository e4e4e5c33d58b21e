"""A member as its lists and watch events show it: folded events equal a fresh list."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import CORE_EVENTS, HYPERNODES, NODES, PODS, Resource
from hyperjob_engine.members.facts import (
    FACTS,
    JOB_NAME,
    RefusalFact,
    hypernode_fact,
    node_fact,
    pod_fact,
)
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.members.weights import Weights
from hyperjob_engine.model.members import ANY_NODE, MemberView, NodeState
from hyperjob_engine.placement.ground import Vacating, ground_of, room
from hyperjob_engine.reasons.pods import PodsRefused
from hyperjob_engine.resources import whole

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 8, *, ready: bool = True, **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "rack": name[:1]}},
        "spec": spec,
        "status": {
            "allocatable": {GPU: gpus, "pods": 110},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(name: str, on: str = "", gpus: int = 1, *, job: str = "", **status: Any) -> Object:
    labels = {"volcano.sh/job-name": job} if job else {"app": "web"}
    owner = {"controller": True, "kind": "Job", "name": job, "uid": f"u-{job}"}
    limits = {GPU: gpus}
    return {
        "metadata": {
            "namespace": "default", "name": name, "labels": labels,
            "ownerReferences": [owner] if job else [],
        },
        "spec": {"nodeName": on, "containers": [{"name": "main", "resources": {"limits": limits}}]},
        "status": {"phase": "Running", **status},
    }  # fmt: skip


def failed(name: str, job: str, *, code: int, at: str, owner: str = "one") -> Object:
    ended = {"name": "main", "state": {"terminated": {"exitCode": code, "finishedAt": at}}}
    raw = pod(name, "n1", job=job, phase="Failed", containerStatuses=[ended])
    raw["metadata"]["ownerReferences"][0]["uid"] = owner
    return raw


def fold_of(nodes: list[Object], pods: list[Object], hypernodes: list[Object] = []) -> MemberFold:  # noqa: B006
    fold = MemberFold()
    fold.replace(NODES, map(node_fact, nodes))
    fold.replace(PODS, map(pod_fact, pods))
    fold.replace(HYPERNODES, map(hypernode_fact, hypernodes))
    return fold


def content(view: MemberView) -> tuple[Any, ...]:
    return view.nodes, view.waiting, view.hypernodes, view.jobs


def hypernode(name: str, tier: int, *selectors: tuple[str, Object]) -> Object:
    members = [{"type": kind, "selector": selector} for kind, selector in selectors]
    return {"metadata": {"name": name}, "spec": {"tier": tier, "members": members}}


def exact(name: str) -> Object:
    return {"exactMatch": {"name": name}}


NAMES = st.sampled_from(["n1", "n2", "m1"])
ANY_POD_OBJECT = st.builds(
    pod,
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from(["", "n1", "n2", "gone"]),
    st.integers(0, 3),
    job=st.sampled_from(["", "hj-a-0", "hj-a-1"]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
)
ANY_NODE_OBJECT = st.builds(
    node, NAMES, st.integers(0, 8), ready=st.booleans(), unschedulable=st.booleans()
)
DOMAINS = st.builds(
    hypernode,
    st.sampled_from(["s0", "s1", "s2"]),
    st.integers(1, 3),
    st.tuples(st.just("Node"), st.builds(exact, NAMES)),
    st.tuples(st.just("HyperNode"), st.builds(exact, st.sampled_from(["s0", "s1"]))),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["put", "drop"]), st.just(PODS), ANY_POD_OBJECT),
        st.tuples(st.sampled_from(["put", "drop"]), st.just(NODES), ANY_NODE_OBJECT),
        st.tuples(st.sampled_from(["put", "drop"]), st.just(HYPERNODES), DOMAINS),
        st.tuples(st.just("look"), st.just(PODS), st.none()),
    ),
    max_size=30,
)


@given(st.lists(ANY_POD_OBJECT, max_size=4), st.lists(ANY_NODE_OBJECT, max_size=3), STEPS)
def test_a_list_and_any_events_equal_a_fresh_list(
    pods: list[Object], nodes: list[Object], steps: list[tuple[str, Resource, Any]]
) -> None:
    fold = fold_of(nodes, pods)
    left: dict[Resource, dict[str, Object]] = {
        PODS: {each["metadata"]["name"]: each for each in pods},
        NODES: {each["metadata"]["name"]: each for each in nodes},
        HYPERNODES: {},
    }
    for verb, resource, raw in steps:
        if verb == "look":
            fold.view()
            continue
        name = raw["metadata"]["name"]
        if verb == "put":
            left[resource][name] = raw
            fold.put(resource, FACTS[resource](raw))
        else:
            left[resource].pop(name, None)
            fold.drop(resource, f"default/{name}" if resource is PODS else name)
    fresh = fold_of(*(list(left[each].values()) for each in (NODES, PODS, HYPERNODES)))
    assert content(fold.view()) == content(fresh.view())
    fold.replace(PODS, map(pod_fact, left[PODS].values()))
    fold.replace(NODES, ())
    assert fold.view().nodes == ()
    fold.replace(NODES, map(node_fact, left[NODES].values()))
    assert content(fold.view()) == content(fresh.view())


@given(st.lists(ANY_POD_OBJECT, max_size=8))
def test_what_is_free_is_what_no_pod_holds(pods: list[Object]) -> None:
    by_name = {each["metadata"]["name"]: each for each in pods}
    view = fold_of([node("n1")], list(by_name.values())).view()
    (shown,) = view.nodes
    held = sum(each.request.get(GPU, 0) for each in shown.pods)
    assert shown.free.get(GPU, 0) == whole(8) - held
    assert shown.free["pods"] == whole(110 - len(shown.pods))
    running = [each for each in by_name.values() if each["status"]["phase"] in "PendingRunning"]
    assert len(shown.pods) == sum(each["spec"]["nodeName"] == "n1" for each in running)


def test_only_changed_nodes_are_made_again() -> None:
    fold = fold_of([node("n1"), node("n2")], [pod("a", "n1"), pod("b", "n2")])
    before = fold.view()
    assert fold.view() is before
    fold.put(PODS, pod_fact(pod("c", "n2")))
    after = fold.view()
    assert after.version > before.version
    assert after.nodes[0] is before.nodes[0]
    assert after.nodes[1] is not before.nodes[1]


def test_the_layout_changes_with_nodes_and_hypernodes_and_not_with_pods() -> None:
    fold = fold_of([node("n1"), node("n2")], [pod("a", "n1")])
    tainted = node("n1", taints=[{"key": "k", "value": "", "effect": "NoSchedule"}])
    domain = {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": []}}
    changes: list[tuple[Callable[[], None], bool]] = [
        (lambda: fold.put(PODS, pod_fact(pod("b", "n2"))), False),
        (lambda: fold.drop(PODS, "default/a"), False),
        (lambda: fold.put(NODES, node_fact(node("n1"))), False),
        (lambda: fold.put(NODES, node_fact(node("n1", 4))), True),
        (lambda: fold.put(NODES, node_fact(tainted)), True),
        (lambda: fold.put(NODES, node_fact(node("n1", ready=False))), True),
        (lambda: fold.drop(NODES, "n2"), True),
        (lambda: fold.drop(NODES, "n2"), False),
        (lambda: fold.put(HYPERNODES, hypernode_fact(domain)), True),
        (lambda: fold.put(HYPERNODES, hypernode_fact(domain)), False),
        (lambda: fold.drop(HYPERNODES, "h"), True),
    ]
    for number, (change, changes_layout) in enumerate(changes):
        before = fold.view().layout
        change()
        assert (fold.view().layout != before) is changes_layout, number


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (node("n1"), NodeState.READY),
        (node("n1", unschedulable=True), NodeState.CORDONED),
        (node("n1", ready=False), NodeState.NOT_READY),
        (node("n1", ready=False, unschedulable=True), NodeState.NOT_READY),
        ({"metadata": {"name": "n1"}}, NodeState.NOT_READY),
    ],
)
def test_the_state_of_a_node(made: Object, state: NodeState) -> None:
    assert node_fact(made).state is state


def test_an_ended_pod_holds_nothing_and_its_job_is_absent() -> None:
    fold = fold_of([node("n1")], [pod("a", "n1", job="hj-a-0"), pod("b", "n1", job="hj-a-0")])
    assert fold.view().jobs == {"default/hj-a-0": 2}
    fold.news()
    fold.put(PODS, pod_fact(pod("a", "n1", job="hj-a-0", phase="Succeeded")))
    assert fold.view().jobs == {"default/hj-a-0": 1}
    assert fold.news().freed
    fold.drop(PODS, "default/b")
    assert fold.view().jobs == {}
    assert fold.news().jobs == {"default/hj-a-0"}
    assert fold.news().jobs == frozenset()


def test_when_pods_of_a_job_were_created_is_known_after_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hyperjob_engine.members.fold._BEGUN", 2)
    fold = fold_of([node("n1")], [])
    assert fold.begun("default/hj-a-0") is None
    for number in range(6):
        for name, second in (("x", 1), ("y", 2)):
            made = pod(f"{name}{number}", "n1", job=f"hj-a-{number}")
            made["metadata"]["creationTimestamp"] = f"2026-01-02T03:00:{number}{second}Z"
            fold.put(PODS, pod_fact(made))
            if number:
                fold.drop(PODS, f"default/{name}{number}")
    shown = {number: fold.begun(f"default/hj-a-{number}") for number in range(6)}
    at = NOW.replace(hour=3, minute=0, second=0)
    assert {number: each for number, each in shown.items() if each} == {
        0: at + timedelta(seconds=2),  # its pods have not ended
        **{number: at + timedelta(seconds=10 * number + 2) for number in (4, 5)},
    }
    assert fold.latest == at + timedelta(seconds=52)


@pytest.mark.parametrize("spec", [{}, {"unschedulable": True}], ids=["in use", "cordoned"])
def test_a_node_that_only_reports_again_shows_how_old_the_state_is_at_most(spec: Object) -> None:
    fold, raw = MemberFold(), node("n1", **spec)
    for when in (NOW, NOW + timedelta(minutes=5)):
        raw["status"]["conditions"][0]["lastHeartbeatTime"] = when.isoformat()
        fold.put(NODES, node_fact(raw))
        assert fold.latest == when


def test_a_job_whose_pod_is_replaced_in_one_look_has_not_ended() -> None:
    fold = fold_of([node("n1")], [pod("a", "n1", job="hj-a-0")])
    fold.drop(PODS, "default/a")
    fold.put(PODS, pod_fact(pod("a", "n1", job="hj-a-0")))
    assert fold.news().jobs == frozenset()


def test_the_first_failure_of_a_job_outlives_its_pod() -> None:
    fold = MemberFold()
    fold.put(PODS, pod_fact(failed("hj-a-0-w-1", "hj-a-0", code=2, at="2026-01-02T00:00:05Z")))
    fold.put(PODS, pod_fact(failed("hj-a-0-w-0", "hj-a-0", code=1, at="2026-01-02T00:00:03Z")))
    fold.put(PODS, pod_fact(failed("hj-a-0-w-2", "hj-a-0", code=3, at="2026-01-02T00:00:04Z")))
    fold.replace(PODS, ())
    found = fold.failure("default/hj-a-0")
    assert (found.pod, found.exit_code) == ("hj-a-0-w-0", 1)
    again = failed("hj-a-0-w-0", "hj-a-0", code=7, at="2026-01-02T00:09:00Z", owner="two")
    fold.put(PODS, pod_fact(again))
    found = fold.failure("default/hj-a-0")
    assert found.exit_code == 7
    assert fold.failure("default/other") is None


def test_a_failure_is_news_although_another_pod_of_its_job_is_created_before_the_look() -> None:
    running = [pod(f"hj-a-0-main-{index}", "n1", job="hj-a-0") for index in (0, 1)]
    fold = fold_of([node("n1")], running)
    fold.news()
    fold.put(
        PODS,
        pod_fact(
            failed("hj-a-0-main-0", "hj-a-0", code=1, at="2026-01-02T00:00:01Z", owner="u-hj-a-0")
        ),
    )
    fold.put(PODS, pod_fact(pod("hj-a-0-main-2", "n1", job="hj-a-0")))
    assert "default/hj-a-0" in fold.news().jobs


def test_refused_pods_are_news_although_a_pod_of_the_job_is_bound_before_the_look() -> None:
    fold = fold_of([node("n1")], [pod("hj-a-0-main-0", job="hj-a-0")])
    fold.news()
    refused = PodsRefused("exceeded quota", NOW, NOW)
    fold.put(CORE_EVENTS, RefusalFact("default/e", "default/hj-a-0", refused))
    fold.put(PODS, pod_fact(pod("hj-a-0-main-0", "n1", job="hj-a-0")))
    assert fold.news().jobs == {"default/hj-a-0"}


def test_pods_that_are_created_again_begin_without_a_failure() -> None:
    fold = MemberFold()
    bad = failed("hj-a-0-w-1", "hj-a-0", code=2, at="2026-01-02T00:00:05Z")
    fold.replace(PODS, map(pod_fact, [bad, pod("hj-a-0-w-0", "n1", job="hj-a-0")]))
    assert fold.failure("default/hj-a-0") is not None, "a list has them in any order"
    fold.drop(PODS, "default/hj-a-0-w-0")
    fold.drop(PODS, "default/hj-a-0-w-1")
    assert fold.failure("default/hj-a-0") is not None
    fold.put(PODS, pod_fact(pod("hj-a-0-w-0", "n1", job="hj-a-0")))
    assert fold.failure("default/hj-a-0") is None


def test_the_last_pod_of_a_failed_job_that_is_being_deleted_is_no_new_pod() -> None:
    fold = MemberFold()
    other = pod("hj-a-0-w-0", "n1", job="hj-a-0")
    fold.put(PODS, pod_fact(other))
    fold.put(PODS, pod_fact(failed("hj-a-0-w-1", "hj-a-0", code=2, at="2026-01-02T00:00:05Z")))
    other["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:06Z"
    fold.put(PODS, pod_fact(other))
    found = fold.failure("default/hj-a-0")
    assert found.pod == "hj-a-0-w-1"


def test_a_container_that_is_started_again_in_its_pod_is_no_failure_of_the_job() -> None:
    raw = failed("hj-a-0-w-1", "hj-a-0", code=2, at="2026-01-02T00:00:05Z")
    raw["status"]["phase"] = "Running"
    fold = MemberFold()
    fold.put(PODS, pod_fact(raw))
    assert fold.failure("default/hj-a-0") is None


def test_the_nodes_of_hypernodes_come_from_names_patterns_labels_and_lower_tiers() -> None:
    nodes = [node(name) for name in ("n1", "n2", "m1", "m2")]
    fold = fold_of(
        nodes,
        [],
        [
            hypernode("s1", 1, ("Node", exact("n1")), ("Node", exact("absent"))),
            hypernode("s2", 1, ("Node", {"regexMatch": {"pattern": "^m[12]$"}})),
            hypernode("s3", 1, ("Node", {"labelMatch": {"matchLabels": {"rack": "n"}}})),
            hypernode("top", 2, ("HyperNode", {"regexMatch": {"pattern": "^s[12]$"}})),
            hypernode("same", 1, ("HyperNode", exact("s1"))),
        ],
    )
    found = {each.name: (each.tier, sorted(each.nodes)) for each in fold.view().hypernodes}
    assert found == {
        "s1": (1, ["n1"]),
        "s2": (1, ["m1", "m2"]),
        "s3": (1, ["n1", "n2"]),
        "top": (2, ["m1", "m2", "n1"]),
        "same": (1, []),
    }
    fold.drop(NODES, "n1")
    found = {each.name: (each.tier, sorted(each.nodes)) for each in fold.view().hypernodes}
    assert found["top"] == (2, ["m1", "m2"])


def test_a_node_with_another_label_is_in_the_hypernodes_of_that_label() -> None:
    rack = hypernode("s", 1, ("Node", {"labelMatch": {"matchLabels": {"rack": "x"}}}))
    fold = fold_of([node("n1"), node("n2")], [], [rack])
    assert fold.view().hypernodes[0].nodes == frozenset()
    moved = node("n1")
    moved["metadata"]["labels"]["rack"] = "x"
    fold.put(NODES, node_fact(moved))
    assert fold.view().hypernodes[0].nodes == {"n1"}
    before = fold.view().hypernodes
    fold.put(NODES, node_fact({**moved, "status": node("n1", 4)["status"]}))
    assert fold.view().hypernodes is before, "its labels are the same"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


LONG = {f"team-{number}": "x" * 63 for number in range(200)}


def test_a_pod_holds_the_ports_of_its_node() -> None:
    raw = pod("p", "n1")
    raw["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    found = pod_fact(raw).held
    assert found.ports == (("TCP", 8080, ""),)
    raw["spec"]["containers"][0]["ports"] = [{"hostPort": each} for each in range(1, 1000)]
    many = pod_fact(raw).held
    assert len(many.ports) == 64


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"labels": LONG}},
        {"spec": {"nodeSelector": LONG}},
        {"spec": {"tolerations": [{"key": "k" * 63}] * 200}},
        {"spec": {"tolerations": [{}] * 1_100}},
        {"spec": {"affinity": {"a": "x" * 9_000}}},
        {"spec": {"affinity": {"a": nested(500)}}},
    ],
)
def test_of_a_pod_that_says_too_much_only_the_amounts_count(more: Object) -> None:
    made = pod("p", "", 3, job="hj-a-0")
    for part, fields in more.items():
        made[part] |= fields
    fact, plain = pod_fact(made), pod_fact(pod("p", "", 3, job="hj-a-0"))
    assert fact.held.request == plain.held.request
    assert (fact.held.labels, fact.held.wants, fact.held.apart) == ((), ANY_NODE, ())
    assert Weights().of(fact) < 2_000


def test_a_waiting_pod_holds_its_anti_affinity_beside_its_demands_of_a_node() -> None:
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made = pod("p")
    made["spec"]["affinity"] = apart
    held = pod_fact(made).held
    assert (held.wants, held.apart != (), held.ending) == (ANY_NODE, True, False)


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("metadata", {"labels": {f"k{number}": "x" * 63 for number in range(900)}}),
        ("spec", {"taints": [{}] * 1_100}),
    ],
)
def test_a_node_that_says_too_much_is_not_ready(part: str, more: Object) -> None:
    made = node("n1")
    made.setdefault(part, {}).update(more)
    fact = node_fact(made)
    assert (fact.state, fact.labels, fact.allocatable) == (NodeState.NOT_READY, (), {})


def test_texts_that_no_api_server_takes_are_not_kept() -> None:
    long = "x" * 254
    odd = pod_fact({"metadata": {"namespace": long, "name": long, "annotations": {JOB_NAME: long}}})
    assert (odd.key, odd.job) == ("/", "")
    assert node_fact({"metadata": {"name": long}}).key == ""
    assert hypernode_fact({"metadata": {"name": long}}).key == ""
    asked = {f"r{number}": "1" for number in range(100)} | {"r" * 400: "1"}
    held = pod_fact({"spec": {"containers": [{"resources": {"requests": asked}}]}}).held
    assert len(held.request) == 65  # and the pod itself
    raw = failed("hj-a-0-w-1", "hj-a-0", code=2, at="2026-01-02T00:00:05Z")
    raw["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = "x" * 1_000_000
    failure = pod_fact(raw).failure
    assert len(failure.message) == 4096


def test_the_latest_words_about_refused_pods_count_while_their_event_exists() -> None:
    fold = MemberFold()
    fold.put(CORE_EVENTS, None)
    for number in (0, 2, 1):
        when = NOW + timedelta(seconds=number)
        refused = PodsRefused(f"why {number}", when, when)
        fold.put(CORE_EVENTS, RefusalFact(key=f"e{number}", job="ns/j", refused=refused))
    words = []
    for number in (2, 1, 0):
        found = fold.refused("ns/j")
        words.append(found and found.message)
        fold.drop(CORE_EVENTS, f"e{number}")
    assert words == ["why 2", "why 1", "why 0"]
    assert fold.refused("ns/j") is None


@pytest.mark.parametrize(
    ("listed", "held"), [({"volcano.sh/vgpu-memory": "32000"}, [0, 1]), ({}, [1, 2])]
)
def test_a_part_of_a_device_counts_where_the_node_lists_it_and_only_there(
    listed: dict[str, str], held: list[int]
) -> None:
    raw, taken = node("n1"), pod("p", "n1")
    raw["status"]["allocatable"] |= {"volcano.sh/vgpu-number": "8", **listed}
    limits = {"volcano.sh/vgpu-number": "4", "volcano.sh/vgpu-memory": "8000"}
    taken["spec"]["containers"][0]["resources"]["limits"] = limits
    ground = ground_of("east", fold_of([raw], [taken]).view())
    (pods,) = (each.pods for each in ground.nodes)
    request = tuple(pods[0].request.items())
    grounds = (ground, ground.vacated(Vacating.ALL))
    assert [room(each.nodes[0].free, request) for each in grounds] == held
