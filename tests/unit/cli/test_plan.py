import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from hyperjob.cli.plan import plan, planning
from hyperjob.client.plan.judge import Verdict, judge
from hyperjob.client.plan.snapshot import Snapshot
from hyperjob_controller.options import Options
from hyperjob_core.kube.resources import CLUSTERS as MEMBERS
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    QUEUES,
    VCJOBS,
    Resource,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.hyperjobs import hyperjob, job_template
from tests.unit.cli.objects import cluster, queue

ROOT = Path(__file__).parents[3]
CLUSTERS = ROOT / "examples/clusters.yaml"
GPU = "nvidia.com/gpu"
Object = dict[str, Any]


def job(name: str = "llm", *, gpus: int = 64, split: Object | None = None, **group: Any) -> Object:
    """One replicatedJob of pods with 8 GPUs."""
    template = job_template(
        pods=gpus // 8,
        resources={"limits": {GPU: 8}},
        pod={"restartPolicy": "Never"},
        queue=group.pop("queue", "default"),
    )
    if split is not None:
        group["splitPolicy"] = {"mode": "auto", "acceleratorType": GPU, **split}
    return hyperjob(name, template, namespace="ml", group=group)


def run(
    folder: Path,
    *jobs: Object,
    form: tuple[str, ...] = ("-o", "json"),
    clusters: Path = CLUSTERS,
    admission: str = "volcano-global",
) -> Result:
    with admitted_by(admission):
        return planned_from(folder, *jobs, clusters=clusters, form=form)


def planned_from(
    folder: Path, *jobs: Object, clusters: Path = CLUSTERS, form: Sequence[str] = ("-o", "json")
) -> Result:
    path = folder / "jobs.yaml"
    path.write_text(yaml.safe_dump_all(jobs))
    return CliRunner().invoke(plan, ["-f", str(path), "--clusters", str(clusters), *form])


def in_file(folder: Path, names: str, nodes: int, **more: Any) -> Path:
    """A file of clusters with one letter each, of nodes with 8 GPUs."""
    node = {"count": nodes, "allocatable": {"cpu": 64, GPU: 8, "pods": 32}}
    clusters = [{"name": name, "nodes": [node]} for name in names]
    path = folder / "clusters.yaml"
    path.write_text(yaml.safe_dump({"clusters": clusters, **more}))
    return path


@contextmanager
def admitted_by(admission: str) -> Iterator[None]:
    """Plan files as for a controller with a queue admission that its file cannot name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "admitting", lambda **_: QueueAdmission(admission))
        yield


def judged(result: Result) -> list[Object]:
    return json.loads(result.output)["items"]


def placed(item: Object) -> dict[str, tuple[str, int]]:
    return {each["name"]: (each["cluster"], each["accelerators"]) for each in item["jobs"]}


def test_what_fits_is_told_with_every_cluster(tmp_path: Path):
    result = run(tmp_path, job(gpus=128, replicas=2))
    assert result.exit_code == 0
    (item,) = judged(result)
    assert (item["verdict"], item["message"]) == ("Fits", "2 sub-jobs on gpu-east, gpu-west")
    assert placed(item) == {"llm-trainer-0": ("gpu-east", 128), "llm-trainer-1": ("gpu-west", 128)}
    assert item["queues"] == [
        {
            "name": "default",
            "open": True,
            "message": "",
            "resource": GPU,
            "used": "256",
            "share": "272",
        }
    ]
    assert item["jobs"][0]["notOn"] == {
        "cluster-ascend-910b-1": f"lacks 128 {GPU} (has none)",
        "cluster-ascend-910b-2": f"lacks 128 {GPU} (has none)",
        "cluster-ascend-910c-1": f"lacks 128 {GPU} (has none)",
        "gpu-west": f"lacks 112 {GPU} (16 free)",
    }


def test_with_how_many_of_its_pods_a_sub_job_starts_is_told(tmp_path: Path):
    large = job(gpus=160)
    large["spec"]["replicatedJobs"][0]["templateSpec"]["minAvailable"] = 16
    (item,) = judged(run(tmp_path, large))
    assert (item["jobs"][0]["fewestPods"], item["jobs"][0]["pods"]) == (16, 20)
    assert "  16 to 20" in run(tmp_path, large, form=()).output


@pytest.mark.parametrize(
    ("made", "cluster", "reason"),
    [
        ({}, "gpu-west", "has room, but fits less closely than gpu-east"),
        ({"clusterNames": ["gpu-west"]}, "gpu-east", "has room, but is not in clusterNames"),
        (
            {"clusterNames": ["gpu-west", "gpu-east"]},
            "gpu-east",
            "has room, but comes after gpu-west in clusterNames",
        ),
        (
            {"clusterNames": ["gpu-west"], "clusterPolicy": "Required"},
            "gpu-east",
            "is not in clusterNames (clusterPolicy Required)",
        ),
        (
            {"split": {"accelerators": 64}},
            "gpu-west",
            (
                "has room, but the split takes as few clusters as hold it, near ones and close fits"
                " first"
            ),
        ),
    ],
)
def test_the_reason_against_a_cluster_with_room(
    tmp_path: Path, made: Object, cluster: str, reason: str
):
    (item,) = judged(run(tmp_path, job(**made)))
    assert item["jobs"][0]["notOn"][cluster] == reason


def test_what_would_be_refused_takes_no_room(tmp_path: Path):
    wrong = job("wrong", gpus=144)
    wrong["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["minAvailable"] = 99
    result = run(tmp_path, wrong, job("right", gpus=144))
    assert result.exit_code == 2
    refused, right = judged(result)
    assert refused["verdict"] == "Refused"
    assert refused["errors"][0].startswith(
        "spec.replicatedJobs[0].templateSpec.tasks[0].minAvailable: Invalid value: 99"
    )
    assert refused["jobs"] == []
    assert right["verdict"] == "Fits"


def test_a_table_names_each_cluster_that_was_passed_over(tmp_path: Path):
    result = run(tmp_path, job(), form=())
    assert result.output.splitlines()[:5] == [
        "ml/llm  Fits  1 sub-job on gpu-east",
        f"  queue default is Open, then uses 64 of its share of 272 {GPU}",
        "  SUB-JOB         CLUSTER    ACCELERATORS        PODS   MESSAGE",
        "  llm-trainer-0   gpu-east   64 nvidia.com/gpu   8",
        "  NOT ON                  SUB-JOBS        WHY",
    ]
    assert "gpu-west                llm-trainer-0   has room, but fits less closely" in (
        result.output
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: ConfigMap\n", "the files contain no HyperJob"),
        ("a: [\n", "jobs.yaml: line"),
    ],
)
def test_a_file_that_cannot_be_planned_ends_with_2(tmp_path: Path, text: str, message: str):
    path = tmp_path / "jobs.yaml"
    path.write_text(text)
    result = CliRunner().invoke(plan, ["-f", str(path), "--clusters", str(CLUSTERS)])
    assert result.exit_code == 2
    assert message in result.output


def test_a_control_plane_that_cannot_be_reached_ends_with_1(tmp_path: Path):
    path = tmp_path / "jobs.yaml"
    path.write_text(yaml.safe_dump(job()))
    config = tmp_path / "kubeconfig"
    config.write_text("")
    result = CliRunner().invoke(plan, ["-f", str(path), "--kubeconfig", str(config)])
    assert result.exit_code == 1


def test_the_examples_are_planned():
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        if path != CLUSTERS:
            result = CliRunner().invoke(plan, ["-f", str(path), "--clusters", str(CLUSTERS)])
            assert result.exit_code == (3 if path.name == "queue.yaml" else 0), result.output


@pytest.mark.parametrize("admission", ["none", "builtin", "volcano-global"])
def test_a_plan_takes_the_alternative_that_can_run(tmp_path: Path, admission: str):
    """The order decides with room in both, then what the first HyperJob leaves, then what is."""
    alternatives = [
        {"name": "one", "replicas": 1},
        {"name": "two", "replicas": 2, "clusterNames": ["b", "c"]},
    ]
    jobs = [
        job(name, gpus=16, clusterNames=["a"], clusterPolicy="Required", alternatives=alternatives)
        for name in ("first", "second", "third")
    ]
    clusters = in_file(tmp_path, "abc", nodes=2)
    found = judged(run(tmp_path, *jobs, clusters=clusters, admission=admission))
    assert [(each["verdict"], [piece["cluster"] for piece in each["jobs"]]) for each in found] == [
        ("Fits", ["a"]),
        ("Fits", ["b", "c"]),
        ("Waits", [""]),
    ]
    assert "of its alternatives this is about trainer=one" in found[2]["message"]
    assert [each["alternatives"][0]["name"] for each in found[:2]] == ["one", "two"]


def test_a_plan_says_the_number_of_sub_jobs_and_up_to_which_it_may_grow(tmp_path: Path):
    clusters = in_file(tmp_path, "a", nodes=3)
    first = job("first", gpus=8, minReplicas=1, maxReplicas=4)
    (size,) = judged(run(tmp_path, first, clusters=clusters))[0]["alternatives"]
    assert (size["name"], size["reason"], size["sizes"]) == ("3", "LargestWithRoom", "1 to 4")
    shown = run(tmp_path, first, clusters=clusters, form=()).output
    assert "trainer takes, of 1 to 4 sub-jobs, 3: it is the largest number" in shown
    policy = {"mode": "auto", "acceleratorType": GPU, "accelerators": 32, "minAccelerators": 8}
    divided = job("divided", gpus=8, splitPolicy=policy)
    shown = run(tmp_path, divided, clusters=clusters, form=()).output
    assert "trainer takes, of 8 to 32 accelerators, 24: it is the largest number" in shown


def test_objects_of_a_list_on_one_line_keep_their_kinds_and_their_errors(tmp_path: Path):
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "q"}}
    wrong = job("wrong") | {"apiVersion": "training.volcano.sh/v1"}
    path = tmp_path / "list.json"
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [queue, job("one"), wrong]})
    )
    result = CliRunner().invoke(plan, ["-f", str(path), "--clusters", str(CLUSTERS), "-o", "json"])
    assert [(each["name"], each["verdict"], len(each["errors"])) for each in judged(result)] == [
        ("one", "Fits", 0),
        ("wrong", "Refused", 1),
    ]


def test_a_queue_beside_the_hyperjobs_counts_as_created(tmp_path: Path):
    written: Object = {
        **QUEUES.head,
        "metadata": {"name": "research"},
        "spec": {"capability": {GPU: 64}},
    }
    first, second = job("first", queue="research"), job("second", queue="research")
    assert run(tmp_path, first, written).exit_code == 0
    one, two = judged(planned_from(tmp_path, first, written, second))
    assert (one["verdict"], two["verdict"]) == ("Fits", "Waits")
    assert "uses 64 of its capability of 64" in two["message"]


@pytest.mark.parametrize("admission", ["builtin", "none"])
@pytest.mark.parametrize(
    ("made", "told"),
    [
        (job(gpus=800), "too large for all usable clusters, even empty: "),
        (job(gpus=72, replicas=4), " and too little even on empty clusters: "),
        (job(split={"accelerators": 280}), "too large for all usable clusters, even empty: "),
        (
            job(gpus=144, clusterNames=["gpu-east"], clusterPolicy="Required"),
            "clusters, even empty: ",
        ),
    ],
    ids=["sub-job", "gang", "automatic split", "required cluster"],
)
def test_what_is_larger_than_empty_clusters_cannot_run(
    tmp_path: Path, admission: str, made: Object, told: str
):
    result = run(tmp_path, job("one", gpus=128), made, admission=admission)
    assert result.exit_code == 4
    one, large = judged(result)
    assert (one["verdict"], large["verdict"]) == ("Fits", "CannotRun")
    assert told in large["message"]


def live(
    *,
    existing: Object | None = None,
    ready: bool = True,
    names: Sequence[str] = ("a",),
    placed: Mapping[Resource, Sequence[Object]] | None = None,
    **more: Any,
) -> Snapshot:
    return Snapshot(
        now=datetime(2026, 1, 1, tzinfo=UTC),
        objects={
            MEMBERS: [cluster(name, gpus=64, ready=ready) for name in names],
            QUEUES: [queue()],
            HYPERJOBS: [existing] if existing else [],
            **(placed or {}),
        },
        options=Options(queue_admission=QueueAdmission.NONE),
        **more,
    )


def stored(raw: Object, **status: Any) -> Object:
    """A HyperJob as the API server keeps it."""
    metadata = raw["metadata"] | {"uid": "owner", "generation": 1, "resourceVersion": "1"}
    return {**raw, "metadata": metadata, "status": status}


def placed_on(cluster: str, raw: Object, **status: Any) -> dict[Resource, Sequence[Object]]:
    """The sub-job of a stored HyperJob, and the policy that places it."""
    name = raw["metadata"]["name"]
    metadata = {
        "name": f"{name}-trainer-0",
        "namespace": "ml",
        "uid": "u",
        "labels": {"volcano.sh/hyperjob-name": name, "volcano.sh/replicatedjob-name": "trainer"},
        "ownerReferences": [{"kind": "HyperJob", "name": name, "uid": "owner", "controller": True}],
    }
    spec = raw["spec"]["replicatedJobs"][0]["templateSpec"]
    pinned = {"placement": {"clusterAffinity": {"clusterNames": [cluster]}}}
    return {
        VCJOBS: [{"metadata": metadata, "spec": spec, "status": status}],
        PROPAGATION_POLICIES: [{"metadata": metadata, "spec": pinned}],
    }


def test_what_was_placed_and_is_not_in_the_status_yet_is_taken_off():
    other = stored(job("other", gpus=32))
    snapshot = live(existing=other, placed=placed_on("a", other))
    found = judge(job(gpus=40), snapshot)
    assert found.verdict is Verdict.WAITS
    assert f"a lacks 8 {GPU} (32 free)" in found.message


def test_with_a_cluster_that_is_not_ready_it_may_run_some_day():
    found = judge(job(gpus=40), live(ready=False))
    assert found.verdict is Verdict.WAITS


def test_a_hyperjob_that_exists_is_judged_as_a_change_of_it():
    old = stored(job(gpus=64), state={"phase": "Running"})
    new = job(gpus=64, queue="other")
    found = judge(new, live(existing=old))
    assert found.verdict is Verdict.REFUSED
    assert found.errors[0].startswith("spec.replicatedJobs[0].templateSpec.queue: Forbidden")


OBJECTS = {
    "ConfigMap": {"volumes": [{"name": "v", "configMap": {"name": "data"}}]},
    "Secret": {"imagePullSecrets": [{"name": "data"}]},
    "PersistentVolumeClaim": {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    },
    "ServiceAccount": {"serviceAccountName": "data"},
}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("exists", [False, True], ids=["new", "there already"])
def test_an_object_that_pods_need_and_that_is_missing_is_warned_of(kind: str, exists: bool):
    made = job(gpus=8)
    template = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]
    template["spec"] |= OBJECTS[kind]
    snapshot = live(existing=stored(made) if exists else None, there={("ml", kind): {"dta": ""}})
    found = judge(made, snapshot)
    (warning,) = (text for text in found.warnings if kind in text)
    assert f'there is no {kind} "data" in the namespace now' in warning
    assert 'did you mean "dta"?' in warning


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_a_hyperjob_that_has_ended_does_not_fit(phase: str):
    condition = {"type": phase, "status": "True"}
    old = stored(job(gpus=64), state={"phase": phase}, conditions=[condition])
    found = judge(job(gpus=64), live(existing=old))
    assert found.verdict is Verdict.HAS_ENDED
    assert found.message == (f"is {phase} and never runs again: delete it, then apply it again")


def test_of_a_hyperjob_that_runs_every_other_cluster_has_a_true_reason():
    record = {"name": "llm-trainer-0", "replicatedJob": "trainer", "cluster": "b"}
    old = stored(
        job(gpus=32),
        observedGeneration=1,
        state={"phase": "Running"},
        jobs=[{**record, "phase": "Running", "pods": 4, "running": 4}],
    )
    placed = placed_on("b", old, state={"phase": "Running"}, running=4)
    snapshot = live(existing=old, names=("a", "b"), placed=placed)
    found = judge(job(gpus=32), snapshot)
    assert (found.verdict, found.message) == (Verdict.FITS, "1 sub-job on b")
    assert found.pieces[0].elsewhere == {"a": "has room, but running sub-jobs stay where they are"}


def test_a_pod_that_no_node_of_the_file_matches_cannot_run(tmp_path: Path):
    made = job(gpus=32, replicas=2)
    template = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]
    template["spec"]["nodeSelector"] = {"hardware-type": "H200"}
    result = run(tmp_path, made)
    assert result.exit_code == 4
    (item,) = judged(result)
    assert item["verdict"] == "CannotRun"
    assert item["message"].startswith(
        "no node matches hardware-type=H200; did you mean hardware-type=H100?; it is in no line"
    )
    template["spec"]["nodeSelector"] = {"hardware-type": "H100"}
    assert run(tmp_path, made).exit_code == 0
