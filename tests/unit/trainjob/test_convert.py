"""A TrainJob and its runtime become a HyperJob, or a refusal by field."""

from copy import deepcopy
from typing import Any

import pytest

from hyperjob_core.api.wire import at
from hyperjob_rules.validation.create import validate_create
from hyperjob_trainjobs.convert import convert
from tests.support.trainjobs import job, runtime, stored
from tests.support.trainjobs import trainjob as written

Object = dict[str, Any]


def trainjob(**given: Any) -> Object:
    return stored(written(**given))


def hyperjob_of(tj: Object, rt: Object) -> Object:
    """Return the HyperJob, which HyperJob's own rules must accept."""
    found = convert(tj, rt)
    assert not found.refusals, [str(error) for error in found.refusals]
    assert found.hyperjob is not None
    decision = validate_create(deepcopy(found.hyperjob), strict=True)
    assert not decision.errors, [str(error) for error in decision.errors]
    return found.hyperjob


def pods(hyperjob: Object) -> list[Object]:
    return [
        task["template"]
        for part in hyperjob["spec"]["replicatedJobs"]
        for task in part["templateSpec"]["tasks"]
    ]


def env(pod: Object, container: str = "node") -> dict[str, Any]:
    spec = pod["spec"]
    found = next(
        each
        for each in [*spec["containers"], *spec.get("initContainers", [])]
        if each["name"] == container
    )
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in found["env"]}


def sizes(hyperjob: Object) -> dict[str, int]:
    return {
        part["name"]: len(part["templateSpec"]["tasks"])
        for part in hyperjob["spec"]["replicatedJobs"]
    }


@pytest.mark.parametrize(
    ("nodes", "spread", "expected"),
    [
        (1, None, {"node": 1}),
        (3, None, {"node": 3}),
        (4, '{"clusters": 2}', {"node-0": 2, "node-1": 2}),
        (3, '{"clusters": 2}', {"node-0": 2, "node-1": 1}),
        (4, '{"clusters": 2, "split": [3, 1]}', {"node-0": 3, "node-1": 1}),
        (2, '{"clusters": ["a", "b"]}', {"node-0": 1, "node-1": 1}),
    ],
)
def test_each_cluster_has_one_sub_job_with_its_share_of_the_nodes(
    nodes: int, spread: str | None, expected: dict[str, int]
) -> None:
    found = hyperjob_of(trainjob(spread=spread, trainer={"numNodes": nodes}), runtime())
    assert sizes(found) == expected
    assert found["spec"]["maxDomains"] == len(expected)


def test_every_node_has_the_rank_and_the_variables_that_trainer_gives_it() -> None:
    found = hyperjob_of(trainjob(spread='{"clusters": 2}', trainer={"numNodes": 3}), runtime())
    variables = [env(pod) for pod in pods(found)]
    assert [each["PET_NODE_RANK"] for each in variables] == ["0", "1", "2"]
    assert [each["JOB_COMPLETION_INDEX"] for each in variables] == ["0", "1", "2"]
    assert {each["PET_NNODES"] for each in variables} == {"3"}
    assert {each["PET_RDZV_BACKEND"] for each in variables} == {"static"}
    assert [
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        for pod in pods(found)
    ] == ["0", "1", "2"]
    assert pods(found)[1]["metadata"]["labels"] == {
        "jobset.sigs.k8s.io/jobset-name": "tj",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "batch.kubernetes.io/job-completion-index": "1",
    }
    assert found["spec"]["plugins"] == {"pytorch": ["--port=29500"]}


@pytest.mark.parametrize(
    ("trainer", "processes"),
    [
        ({}, "1"),
        ({"numProcPerNode": 3}, "3"),
        ({"numProcPerNode": "gpu"}, "gpu"),
        ({"resourcesPerNode": {"requests": {"cpu": "2500m"}}}, "3"),
        ({"resourcesPerNode": {"limits": {"cpu": "2"}}}, "2"),
        ({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8, "cpu": 4}}}, "auto"),
        ({"resourcesPerNode": {"limits": {"nvidia.com/mig-3g.20gb": 2, "cpu": 16}}}, "2"),
        ({"resourcesPerNode": {"limits": {"aliyun.com/gpu-mem": 24, "cpu": 16}}}, "1"),
        ({"resourcesPerNode": {"limits": {"rdma/hca_a": 100, "cpu": 4}}}, "4"),
    ],
)
def test_torchrun_starts_as_many_processes_as_trainer_would(
    trainer: Object, processes: str
) -> None:
    found = hyperjob_of(trainjob(trainer=trainer), runtime())
    assert env(pods(found)[0])["PET_NPROC_PER_NODE"] == processes


def test_an_override_of_the_memory_alone_keeps_the_gpus_of_the_runtime() -> None:
    made = runtime()
    container = made["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"][
        "template"
    ]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": 4, "memory": "8Gi"}}
    override = {"resourcesPerNode": {"limits": {"memory": "32Gi"}}}
    found = hyperjob_of(trainjob(trainer=override), made)
    assert env(pods(found)[0])["PET_NPROC_PER_NODE"] == "auto"


def test_a_jax_runtime_becomes_the_plugin_jax_and_a_plain_one_none() -> None:
    jax = hyperjob_of(trainjob(trainer={"numNodes": 2}), runtime(policy={"jax": {}}))
    assert jax["spec"]["plugins"] == {"jax": ["--port=29500"], "svc": ["--export=false"]}
    plain = hyperjob_of(trainjob(), runtime(policy={"numNodes": 2}))
    assert plain["spec"]["plugins"] == {}
    assert sizes(plain) == {"node": 2}
    assert set(env(pods(plain)[0])) == {"JOB_COMPLETION_INDEX"}


def test_without_an_ml_policy_the_parallelism_of_the_job_is_the_number_of_nodes() -> None:
    rt = runtime()
    del rt["spec"]["mlPolicy"]
    at(rt, "spec", "template", "spec")["replicatedJobs"][0]["template"]["spec"]["parallelism"] = 3  # type: ignore[index]
    assert sizes(hyperjob_of(trainjob(), rt)) == {"node": 3}


def test_the_trainer_changes_the_container_of_the_runtime() -> None:
    rt = runtime("torch", job("trainer"))
    container = rt["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"][
        "spec"
    ]["containers"][0]
    container |= {
        "command": ["old"],
        "args": ["kept"],
        "env": [{"name": "A", "value": "old"}, {"name": "B", "value": "b"}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
    }
    trainer = {
        "image": "mine:2",
        "command": ["torchrun", "train.py"],
        "env": [{"name": "A", "value": "new"}],
        "resourcesPerNode": {"limits": {"cpu": "2"}},
    }
    found = pods(hyperjob_of(trainjob(trainer=trainer), rt))[0]["spec"]["containers"][0]
    assert found["image"] == "mine:2"
    assert found["command"] == ["torchrun", "train.py"]
    assert found["args"] == ["kept"]
    assert found["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}
    variables = {each["name"]: each["value"] for each in found["env"]}
    assert (variables["A"], variables["B"]) == ("new", "b")


def test_initializers_run_in_each_node_before_the_training() -> None:
    claim = {"metadata": {"name": "initializer"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[index]
    mount = [{"name": "initializer", "mountPath": "/workspace"}]
    jobs = [job("dataset-initializer"), job("model-initializer"), job("trainer")]
    jobs[2]["dependsOn"] = [
        {"name": "dataset-initializer", "status": "Complete"},
        {"name": "model-initializer", "status": "Complete"},
    ]
    for each in jobs:
        each["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = mount
    rt = runtime("tune", *jobs, volumeClaimPolicies=[{"templates": [claim]}])
    initializer = {
        "dataset": {"storageUri": "hf://a/b", "secretRef": {"name": "token"}},
        "model": {"env": [{"name": "X", "value": "1"}]},
    }
    found = hyperjob_of(trainjob(initializer=initializer, trainer={"numNodes": 2}), rt)
    for pod in pods(found):
        first, second = pod["spec"]["initContainers"]
        assert (first["name"], second["name"]) == ("dataset-initializer", "model-initializer")
        assert first["envFrom"] == [{"secretRef": {"name": "token"}}]
        assert env(pod, "dataset-initializer")["STORAGE_URI"] == "hf://a/b"
        assert env(pod, "model-initializer")["X"] == "1"
        (volume,) = pod["spec"]["volumes"]
        assert volume["name"] == "initializer"
        assert volume["ephemeral"]["volumeClaimTemplate"]["spec"] == claim["spec"]


def test_runtime_patches_reach_the_pods_and_the_hyperjob() -> None:
    pod = {
        "serviceAccountName": "sa",
        "nodeSelector": {"type": "training"},
        "tolerations": [{"key": "training", "operator": "Exists"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "containers": [{"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    }
    change = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"on": "job"}},
            "spec": {"template": {"metadata": {"labels": {"on": "pod"}}, "spec": pod}},
        },
    }
    template = {"metadata": {"labels": {"team": "ml"}}, "spec": {"replicatedJobs": [change]}}
    patch = {"manager": "example.io/team", "trainingRuntimeSpec": {"template": template}}
    found = hyperjob_of(trainjob(runtimePatches=[patch]), runtime())
    assert found["metadata"]["labels"]["team"] == "ml"
    assert found["spec"]["replicatedJobs"][0]["templateMetadata"]["labels"]["on"] == "job"
    (each,) = pods(found)
    assert each["metadata"]["labels"]["on"] == "pod"
    assert each["spec"]["serviceAccountName"] == "sa"
    assert each["spec"]["nodeSelector"] == {"type": "training"}
    assert each["spec"]["containers"][0]["image"] == "trainer:1"
    assert each["spec"]["containers"][0]["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]


def test_queue_quorum_topology_and_restarts_are_carried_over() -> None:
    rt = runtime(policy={"numNodes": 2}, failurePolicy={"maxRestarts": 1})
    rt["spec"]["podGroupPolicy"] = {"volcano": {"networkTopology": {"mode": "hard"}}}
    rt["spec"]["template"]["metadata"] = {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    rt["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 1
    found = hyperjob_of(trainjob(spread='{"clusters": 2, "quorum": 1}'), rt)["spec"]
    assert found["failurePolicy"] == {"maxRestarts": 3}
    assert found["quorum"] == 1
    assert {each["templateSpec"]["queue"] for each in found["replicatedJobs"]} == {"q"}
    assert found["replicatedJobs"][0]["templateSpec"]["networkTopology"] == {"mode": "hard"}
    default_limit = hyperjob_of(trainjob(), runtime())["spec"]["failurePolicy"]
    assert default_limit == {"maxRestarts": 6}


def test_the_annotation_of_the_trainjob_has_precedence_over_its_runtimes() -> None:
    rt = runtime(policy={"numNodes": 4})
    rt["metadata"]["annotations"] = {
        "training.volcano.sh/spread": '{"clusters": 4, "queue": "shared"}'
    }
    found = hyperjob_of(trainjob(spread='{"clusters": 2}'), rt)
    assert sizes(found) == {"node-0": 2, "node-1": 2}
    assert found["spec"]["replicatedJobs"][0]["templateSpec"]["queue"] == "shared"


def test_the_hyperjob_belongs_to_its_trainjob() -> None:
    found = hyperjob_of(trainjob(suspend=True), runtime(ttlSecondsAfterFinished=60))
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("TrainJob", "tj", "uid-tj")
    assert found["metadata"]["labels"] == {"training.volcano.sh/trainjob": "tj"}
    assert found["metadata"]["annotations"] == {"training.volcano.sh/trainjob-ttl": "60"}
    assert found["spec"]["suspend"] is True


def changed(rt: Object, path: str, value: object) -> Object:
    """Return a runtime with one value below `spec.template.spec` or its first job."""
    place: Any = rt["spec"]["template"]["spec"]
    *parents, last = path.split(".")
    for name in parents:
        place = place[int(name)] if name.isdigit() else place.setdefault(name, {})
    place[last] = value
    return rt


NODES = {"numNodes": 2}
SPREAD = "metadata.annotations[training.volcano.sh/spread]"


def refusals(tj: Object, rt: Object) -> dict[str, str]:
    """Return why there is no HyperJob, by field."""
    found = convert(tj, rt)
    assert found.hyperjob is None
    return {error.field: str(error) for error in found.refusals}


CACHE = job("dataset-initializer", serviceAccountName="cache")
RUNTIMES = {
    "dependsOn[0]": changed(
        runtime(), "replicatedJobs.0.dependsOn", [{"name": "a", "status": "Ready"}]
    ),
    "mlPolicy.flux": runtime(policy={"flux": {}}),
    "mlPolicy.xgboost": runtime(policy={"xgboost": {}}),
    "mlPolicy.newest": runtime(policy={"newest": {}}),
    "no trainer": runtime("t", job("other")),
    "network.subdomain": runtime(network={"subdomain": "x"}),
    "coordinator": runtime(coordinator={"replicatedJob": "node"}),
    "template.spec.suspend": runtime(suspend=True),
    "replicatedJobs[0].replicas": changed(runtime(), "replicatedJobs.0.replicas", 2),
    "podFailurePolicy": changed(
        runtime(), "replicatedJobs.0.template.spec.podFailurePolicy", {"rules": []}
    ),
    "serviceAccountName": runtime("t", CACHE, job("trainer")),
    "hostname": runtime("t", job("trainer", hostname="x")),
}


@pytest.mark.parametrize(("word", "rt"), RUNTIMES.items(), ids=list(RUNTIMES))
def test_a_runtime_that_cannot_be_carried_over_is_refused_by_field(word: str, rt: Object) -> None:
    assert word in refusals(trainjob(), rt)["spec.runtimeRef"]


PATCHED = {"template": {"spec": {"replicatedJobs": [{"name": "other"}]}}}
TRAINJOBS: list[tuple[str, str, Object]] = [
    ("spec.trainer.numNodes", "at least one", {"trainer": {"numNodes": 0}}),
    ("spec.trainer.numNodes", "at most 5,", {"trainer": {"numNodes": 2**31}}),
    (
        "spec.trainer.numProcPerNode",
        "must be at least 1, or auto, or cpu, or gpu",
        {"trainer": {"numProcPerNode": 0}},
    ),
    ("spec.trainer.command", "recipe", {"trainer": {"command": ["tune", "run"]}}),
    (
        "spec.trainer.env",
        "PET_NNODES",
        {"trainer": {"env": [{"name": "PET_NNODES", "value": "1"}]}},
    ),
    ("spec.trainer.colour", "not know", {"trainer": {"colour": "red"}}),
    ("spec.initializer.model", "no job", {"initializer": {"model": {}}}),
    ("spec.runtimeRef.kind", "B", {"runtimeRef": {"name": "a", "kind": "B"}}),
    (
        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]",
        "no job 'other'",
        {"runtimePatches": [{"manager": "a.b/c", "trainingRuntimeSpec": PATCHED}]},
    ),
    (
        "metadata.labels[kueue.x-k8s.io/queue-name]",
        "Kueue",
        {"labels": {"kueue.x-k8s.io/queue-name": "q"}},
    ),
]


@pytest.mark.parametrize(("field", "word", "given"), TRAINJOBS, ids=str)
def test_a_trainjob_that_cannot_be_carried_over_is_refused_by_field(
    field: str, word: str, given: Object
) -> None:
    assert word in refusals(trainjob(**given), runtime())[field]


@pytest.mark.parametrize(
    ("spread", "word"),
    [
        ("no json", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ('{"cluster": 2}', "unknown key 'cluster'"),
        ('{"clusters": 0}', "clusters must be"),
        ('{"clusters": true}', "clusters must be"),
        ('{"clusters": 3}', "not be more than the 2 nodes"),
        ('{"clusters": 2, "split": [1, 2]}', "with the sum 2"),
        ('{"clusters": 2, "split": [2]}', "must have 2 numbers"),
        ('{"clusters": 2, "quorum": 3}', "quorum must be a number from 1 to 2"),
        ('{"queue": 1}', "queue must be"),
    ],
)
def test_a_wrong_spread_is_refused_by_the_annotation(spread: str, word: str) -> None:
    found = refusals(trainjob(spread=spread, trainer=NODES), runtime())
    assert list(found) == [SPREAD]
    assert word in found[SPREAD]


def test_a_shared_claim_is_refused_for_several_nodes_only() -> None:
    claim = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteMany"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[index]
    rt = runtime(volumeClaimPolicies=[{"templates": [claim]}])
    hyperjob_of(trainjob(), rt)
    found = convert(trainjob(trainer=NODES), rt)
    assert "volumeClaimPolicies[0]" in str(found.refusals[0])
