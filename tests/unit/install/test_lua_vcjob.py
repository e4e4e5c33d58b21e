"""What Karmada learns of a vcjob from our scripts, asked as Karmada asks."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO, Quantity
from hyperjob_engine.expansion.expand import demand_of
from hyperjob_sandbox.karmada.interpreter import requirements_of
from tests.unit.install.karmadalua import Script

GPU = "nvidia.com/gpu"


def task(name: str | None, replicas: int | None, requests: dict[str, str], **extra: Any) -> Any:
    container: dict[str, Any] = {"name": "main", "image": "train:1"}
    if requests:
        container["resources"] = {"requests": requests}
    found = {"template": {"spec": {"containers": [container]}}, **extra}
    if name is not None:
        found["name"] = name
    return found if replicas is None else {**found, "replicas": replicas}


def vcjob(*tasks: Any, **spec: Any) -> Any:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "llm-trainer-0", "namespace": "ml"},
        "spec": {"tasks": list(tasks), **spec},
    }


def replicas_of(job: Any) -> Any:
    return Script("vcjob_requests.lua").call(job, function="GetReplicas")


def components_of(job: Any) -> Any:
    return Script("vcjob_requests.lua").call(job, function="GetComponents")


def told_in_the_sandbox(job: Any) -> Any:
    found = requirements_of(job, hooks=frozenset({"replicaResource"}))
    return found.get("replicas", 0), found.get("replicaRequirements", {} if found else None)


# replicaResource and componentResource


# the tasks -> the replicas and the request of each
REPLICAS = {
    "one task": ([task("worker", 4, {GPU: "8", "cpu": "2"})], (4, {GPU: "8", "cpu": "2000m"})),
    "tasks that ask for the same": (
        [task("a", 2, {GPU: "1"}), task("b", 3, {GPU: "1"})],
        (5, {GPU: "1"}),
    ),
    "a master without devices does not spoil the count of devices": (
        [task("master", 1, {"cpu": "4"}), task("worker", 8, {GPU: "1", "cpu": "8"})],
        (8, {GPU: "1", "cpu": "8500m"}),
    ),
    "devices that only fewer replicas divide": (
        [task("a", 2, {GPU: "4"}), task("b", 3, {GPU: "1"})],
        (1, {GPU: "11"}),
    ),
    "the pods that start together": (
        [task("worker", 200, {GPU: "1"}, minAvailable=8)],
        (8, {GPU: "1"}),
    ),
    "two kinds of devices": (
        [task("a", 4, {GPU: "3"}), task("b", 2, {"huawei.com/npu": "4"})],
        (4, {GPU: "3", "huawei.com/npu": "2"}),
    ),
    "a remainder of a CPU or of a byte is dropped, never rounded up": (
        [task("a", 1, {"cpu": "1", "memory": "100"}), task("b", 2, {"cpu": "100m"})],
        (3, {"cpu": "400m", "memory": "33"}),
    ),
    "binary and decimal units": (
        [task("a", 1, {"memory": "1Gi"}), task("b", 1, {"memory": "1G"})],
        (2, {"memory": str((2**30 + 10**9) // 2)}),
    ),
    "more than a terabyte in plain digits": (
        [task("a", 2, {"memory": "4Ti", "ephemeral-storage": "100k"})],
        (2, {"memory": str(4 * 2**40), "ephemeral-storage": "100000"}),
    ),
    "fractions of CPUs": ([task("a", 3, {"cpu": "570m"})], (3, {"cpu": "570m"})),
    "pods that ask for nothing": ([task("a", 3, {})], (3, None)),
    "a task of none": ([task("a", 0, {GPU: "8"}), task("b", 2, {GPU: "1"})], (2, {GPU: "1"})),
    "a task that does not say how many": (
        [task("a", None, {GPU: "8"}), task("b", 2, {GPU: "1"})],
        (2, {GPU: "1"}),
    ),
    "a task without template": ([{"name": "a", "replicas": 2}], (2, None)),
    "amounts of nothing": ([task("a", 2, {GPU: "0", "cpu": "1"})], (2, {"cpu": "1000m"})),
}


@pytest.mark.parametrize("case", REPLICAS)
def test_replicas_times_request_is_the_job_and_its_one_component_has_the_same(case: str) -> None:
    tasks, (replicas, request) = REPLICAS[case]
    job, expected = vcjob(*tasks), {} if request is None else {"resourceRequest": request}
    assert replicas_of(job) == told_in_the_sandbox(job) == (replicas, expected)
    (component,) = components_of(job)
    assert component["replicas"] == replicas
    assert (component.get("replicaRequirements") or {}).get("resourceRequest") == request
    assert component["name"] == "vcjob", "Karmada accepts names of at most 32 bytes"


def test_marked_parts_of_devices_are_left_out_of_the_request() -> None:
    """Volcano Global's queues would admit no vcjob that requests what no cluster reports."""
    asked = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": "50", "cpu": "1"}
    job = vcjob(task("worker", 4, asked))
    marks = {"training.volcano.sh/uncounted": "volcano.sh/vgpu-cores,volcano.sh/vgpu-memory"}
    job["metadata"]["annotations"] = marks
    request = {"resourceRequest": {"volcano.sh/vgpu-number": "1", "cpu": "1000m"}}
    assert replicas_of(job) == told_in_the_sandbox(job) == (4, request)


@pytest.mark.parametrize(
    ("phase", "asks"),
    [
        ("Completed", False),
        ("Failed", False),
        ("Aborted", False),
        ("Terminated", False),
        ("Running", True),
        ("Restarting", True),
        ("Completing", True),
        ("", True),
    ],
)
def test_a_job_that_has_ended_keeps_its_replicas_and_asks_for_nothing(
    phase: str, asks: bool
) -> None:
    job = {**vcjob(task("worker", 4, {GPU: "8"})), "status": {"state": {"phase": phase}}}
    request = {"resourceRequest": {GPU: "8"}} if asks else None
    assert replicas_of(job) == (4, request)
    (component,) = components_of(job)
    assert (component["replicas"], component.get("replicaRequirements")) == (4, request)


@pytest.mark.parametrize(
    "job",
    [vcjob(), {"metadata": {"name": "x"}}, {"metadata": {}, "spec": {}}],
    ids=["no tasks", "no spec", "an empty spec"],
)
def test_a_job_without_pods_asks_for_nothing(job: Any) -> None:
    assert replicas_of(job) == (0, None)
    assert components_of(job) is None


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 40), st.integers(0, 16), st.integers(0, 128_000), st.integers(0, 2**41)
        ),
        min_size=1,
        max_size=4,
    )
)
def test_no_device_is_lost_and_nothing_is_counted_twice(rows: list[tuple[int, ...]]) -> None:
    tasks = [
        task(f"t{i}", pods, {GPU: str(gpus), "cpu": f"{cpu}m", "memory": str(memory)})
        for i, (pods, gpus, cpu, memory) in enumerate(rows)
    ]
    pods = sum(row[0] for row in rows)
    count, requirements = replicas_of(vcjob(*tasks))
    assert 0 <= count <= pods
    assert (count == 0) == (pods == 0)
    request = (requirements or {}).get("resourceRequest", {})
    for name, column, unit in ((GPU, 1, 1), ("cpu", 2, 1000), ("memory", 3, 1)):
        asked = sum(row[0] * row[column] for row in rows)
        told = Quantity.parse(request.get(name, "0")).nano * unit // NANO * count
        if name == GPU:
            assert told == asked
        else:
            assert 0 <= asked - told < max(count, 1)


# dependencyInterpretation


def with_volumes(name: str, *volumes: Any) -> Any:
    found = task(name, 1, {})
    found["template"]["spec"]["volumes"] = list(volumes)
    return found


def with_claims(name: str, *claims: Any) -> Any:
    found = task(name, 1, {})
    found["template"]["spec"]["resourceClaims"] = list(claims)
    return found


def reference(kind: str, name: str, version: str = "v1") -> Any:
    return {"apiVersion": version, "kind": kind, "namespace": "ml", "name": name}


CODE = {"name": "code", "configMap": {"name": "code"}}
KEY = {"name": "key", "secret": {"secretName": "key"}}
DEPENDENCIES = {
    "none at all": (vcjob(task("a", 1, {})), []),
    "no tasks": (vcjob(), []),
    "no spec": ({"metadata": {"name": "x", "namespace": "ml"}}, []),
    "a task without template": (vcjob({"name": "a"}), []),
    "every task's, each once": (
        vcjob(with_volumes("a", CODE), with_volumes("b", CODE, KEY), task("c", 1, {})),
        [reference("ConfigMap", "code"), reference("Secret", "key")],
    ),
    "a claim that the job mounts": (
        vcjob(volumes=[{"mountPath": "/data", "volumeClaimName": "data"}]),
        [reference("PersistentVolumeClaim", "data")],
    ),
    "claims of devices, and templates of them": (
        vcjob(
            with_claims("a", {"name": "x", "resourceClaimTemplateName": "gpus"}),
            with_claims(
                "b",
                {"name": "x", "resourceClaimTemplateName": "gpus"},
                {"name": "y", "resourceClaimName": "link"},
                {"name": "z"},
            ),
        ),
        [
            reference("ResourceClaimTemplate", "gpus", "resource.k8s.io/v1"),
            reference("ResourceClaim", "link", "resource.k8s.io/v1"),
        ],
    ),
    "but not one that it makes": (
        vcjob(volumes=[{"mountPath": "/d", "volumeClaimName": "d", "volumeClaim": {"x": 1}}]),
        [],
    ),
    "nor one without a name": (vcjob(volumes=[{"mountPath": "/d", "volumeClaimName": ""}]), []),
}


@pytest.mark.parametrize("case", DEPENDENCIES)
def test_what_a_job_needs_follows_it(case: str) -> None:
    job, expected = DEPENDENCIES[case]
    assert Script("vcjob_dependency_interpretation.lua").call(job, like=[[]]) == expected


# retention


def member(*tasks: Any, **spec: Any) -> Any:
    """Build a job as a member holds it, with all that Volcano filled in."""
    filled = [
        {
            **each,
            "name": each.get("name", f"default{index}"),
            "maxRetry": each.get("maxRetry", 3),
            "minAvailable": each.get("minAvailable", each.get("replicas", 0)),
        }
        for index, each in enumerate(tasks)
    ]
    available = sum(each["minAvailable"] for each in filled)
    defaults = {"schedulerName": "volcano", "queue": "default", "maxRetry": 3}
    return vcjob(*filled, **{**defaults, "minAvailable": available, **spec})


def retain(desired: Any, observed: Any) -> Any:
    return Script("vcjob_retention.lua").call(desired, observed, like=[desired, observed])


def test_what_volcano_filled_in_stays() -> None:
    bare = [task("master", 1, {}), task("worker", 4, {GPU: "1"}), task(None, 2, {})]
    observed = member(*bare)
    observed["spec"]["tasks"][2]["name"] = "default2"
    assert retain(vcjob(*bare), observed)["spec"] == observed["spec"]


def test_what_the_control_plane_says_wins() -> None:
    ours = member(task("worker", 4, {}, maxRetry=1, minAvailable=2), queue="research", maxRetry=9)
    theirs = member(task("worker", 4, {}), queue="default", schedulerName="other")
    assert retain(ours, theirs)["spec"] == ours["spec"]


SCALED = {
    "all stays all": ((4, None, None), (2, 2, 2), (4, 4)),
    "fewer stays fewer": ((4, None, None), (3, 2, 2), (2, 2)),
    "never more than there are": ((1, None, None), (4, 3, 3), (1, 1)),
    "scaled there is scaled here": ((8, 6, 6), (4, 4, 4), (6, 6)),
    "a job's zero means that Volcano shall choose": ((4, 4, 0), (2, 2, 2), (4, 4)),
    "a task's zero is meant": ((4, 0, 1), (4, 4, 4), (0, 1)),
}


@pytest.mark.parametrize("case", SCALED)
def test_min_available_follows_the_scale(case: str) -> None:
    (replicas, task_least, job_least), (running, task_kept, job_kept), expected = SCALED[case]
    ours = vcjob(task("worker", replicas, {}))
    if task_least is not None:
        ours["spec"]["tasks"][0]["minAvailable"] = task_least
    if job_least is not None:
        ours["spec"]["minAvailable"] = job_least
    theirs = member(task("worker", running, {}, minAvailable=task_kept), minAvailable=job_kept)
    spec = retain(ours, theirs)["spec"]
    assert (spec["tasks"][0]["minAvailable"], spec["minAvailable"]) == expected


def test_tasks_are_told_apart_by_name() -> None:
    ours = vcjob(task("worker", 2, {}), task("master", 1, {}))
    theirs = member(
        task("master", 1, {}, maxRetry=7), task("worker", 2, {}, maxRetry=5, minAvailable=1)
    )
    worker, master = retain(ours, theirs)["spec"]["tasks"]
    assert (worker["maxRetry"], worker["minAvailable"]) == (5, 1)
    assert (master["maxRetry"], master["minAvailable"]) == (7, 1)


@pytest.mark.parametrize(("ours", "theirs"), [(1, 3), (3, 1), (0, 2), (2, 0)])
def test_tasks_may_come_and_go(ours: int, theirs: int) -> None:
    def tasks(count: int) -> list[Any]:
        return [task(f"t{i}", 1, {}) for i in range(count)]

    result = retain(vcjob(*tasks(ours)), member(*tasks(theirs)))
    assert [each["name"] for each in result["spec"]["tasks"]] == [f"t{i}" for i in range(ours)]
    filled = [each for each in result["spec"]["tasks"] if "maxRetry" in each]
    assert len(filled) == min(ours, theirs)


CLAIM = {"accessModes": ["ReadWriteOnce"]}


def test_a_claim_that_volcano_named_stays_where_it_is_mounted() -> None:
    made = {"mountPath": "/data", "volumeClaim": CLAIM}
    named = {"mountPath": "/home", "volumeClaimName": "home"}
    ours = vcjob(volumes=[named, made])
    theirs = member(volumes=[{**made, "volumeClaimName": "llm-volume-0"}, named])
    assert retain(ours, theirs)["spec"]["volumes"] == [
        named,
        {**made, "volumeClaimName": "llm-volume-0"},
    ]


def test_a_claim_that_moved_is_not_given_to_another() -> None:
    ours = vcjob(volumes=[{"mountPath": "/new", "volumeClaim": CLAIM}, {"volumeClaim": CLAIM}])
    theirs = member(volumes=[{"mountPath": "/old", "volumeClaimName": "old"}])
    assert retain(ours, theirs)["spec"]["volumes"] == ours["spec"]["volumes"]


def test_plugins_that_others_imply_stay() -> None:
    ours = vcjob(plugins={"pytorch": ["--master=master"]})
    theirs = member(plugins={"pytorch": ["--master=old"], "svc": []})
    assert retain(ours, theirs)["spec"]["plugins"] == {"pytorch": ["--master=master"], "svc": []}


@given(
    tasks=st.lists(
        st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9)), min_size=1, max_size=3
    ),
    wanted=st.none() | st.integers(1, 20),
)
@settings(max_examples=40)
def test_volcano_global_counts_the_pods_with_which_the_controller_counts(
    tasks: list[tuple[int, int | None]], wanted: int | None
) -> None:
    made = [
        task(f"t{i}", replicas, {GPU: "1"}, **({} if least is None else {"minAvailable": least}))
        for i, (replicas, least) in enumerate(tasks)
    ]
    job = vcjob(*made, **({} if wanted is None else {"minAvailable": wanted}))
    replicas, requirements = replicas_of(job)
    devices = Quantity.parse(((requirements or {}).get("resourceRequest") or {}).get(GPU, "0"))
    assert replicas * devices.nano == demand_of(job["spec"]).get(GPU, 0)
    assert told_in_the_sandbox(job) == (replicas, requirements)
