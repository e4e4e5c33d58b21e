"""`hyperjob convert`, and what `hyperjob lint` says of jobs of other kinds."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from hyperjob.cli import main

Object = dict[str, Any]
POD = {"containers": [{"name": "main", "image": "training:v1", "command": ["train"]}]}
VCJOB: Object = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "bert", "namespace": "nlp", "labels": {"team": "a"}, "uid": "1"},
    "spec": {
        "minAvailable": 3,
        "schedulerName": "volcano",
        "queue": "research",
        "ttlSecondsAfterFinished": 600,
        "plugins": {"svc": [], "env": []},
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [
            {
                "name": "worker",
                "replicas": 3,
                "template": {"spec": {**POD, "restartPolicy": "Never"}},
            }
        ],
    },
    "status": {"state": {"phase": "Running"}},
}
JOB: Object = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "sweep"},
    "spec": {
        "parallelism": 4,
        "completions": 4,
        "completionMode": "Indexed",
        "activeDeadlineSeconds": 60,
        "template": {"spec": {**POD, "restartPolicy": "OnFailure"}},
    },
}
JOBSET: Object = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "llm"},
    "spec": {
        "failurePolicy": {"maxRestarts": 3},
        "startupPolicy": {"startupPolicyOrder": "InOrder"},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["workers"]},
        "replicatedJobs": [
            {"name": "leader", "template": {"spec": {"template": {"spec": POD}}}},
            {
                "name": "workers",
                "replicas": 2,
                "template": {
                    "spec": {
                        "parallelism": 8,
                        "completions": 8,
                        "backoffLimit": 0,
                        "template": {"spec": {**POD, "restartPolicy": "Never"}},
                    }
                },
            },
        ],
    },
}
PYTORCH: Object = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "resnet"},
    "spec": {
        "runPolicy": {"schedulingPolicy": {"queue": "vision", "minAvailable": 3}},
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": POD}},
            "Worker": {"replicas": 2, "template": {"spec": POD}},
        },
    },
}


def run(command: str, tmp_path: Path, *objects: Object) -> Result:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    words = ["convert", "-f", str(path)] if command == "convert" else [command, str(path)]
    return CliRunner().invoke(main, words)


def only(result: Result) -> Object:
    assert result.exit_code == 0, result.output
    [made] = yaml.safe_load_all(result.stdout)
    assert made["apiVersion"] == "training.volcano.sh/v1alpha1"
    return dict(made)


def test_a_vcjob_is_the_template_of_one_sub_job(tmp_path: Path):
    made = only(run("convert", tmp_path, VCJOB))
    assert made["metadata"] == {"name": "bert", "namespace": "nlp", "labels": {"team": "a"}}
    spec = dict(VCJOB["spec"])
    assert made["spec"]["ttlSecondsAfterFinished"] == spec.pop("ttlSecondsAfterFinished")
    [group] = made["spec"]["replicatedJobs"]
    assert (group["name"], group["replicas"], group["templateSpec"]) == ("job", 1, spec)


def test_the_sub_job_of_a_vcjob_has_its_labels_and_annotations(tmp_path: Path):
    annotations = {
        "volcano.sh/preemptable": "true",
        "sla-waiting-time": "1h",
        "propagationpolicy.karmada.io/name": "bert",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    metadata = {**VCJOB["metadata"], "annotations": annotations}
    [group] = only(run("convert", tmp_path, {**VCJOB, "metadata": metadata}))["spec"][
        "replicatedJobs"
    ]
    assert group["templateMetadata"] == {
        "labels": {"team": "a"},
        "annotations": {"volcano.sh/preemptable": "true", "sla-waiting-time": "1h"},
    }


def test_a_job_of_kueue_is_told_where_it_waits(tmp_path: Path):
    job = deepcopy(JOB)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    job["spec"]["suspend"] = True
    result = run("convert", tmp_path, job)
    assert only(result)["spec"]["suspend"] is True
    assert "Kueue admits no HyperJob: it waits in the Volcano Queue" in result.stderr
    assert "stays suspended until it is resumed" in result.stderr


def test_the_default_scheduler_of_a_job_becomes_that_of_volcano(tmp_path: Path):
    job = deepcopy(JOB)
    pod = job["spec"]["template"]["spec"]
    pod["schedulerName"] = "default-scheduler"
    [task] = only(run("convert", tmp_path, job))["spec"]["replicatedJobs"][0]["templateSpec"][
        "tasks"
    ]
    assert "schedulerName" not in task["template"]["spec"]


def test_a_kubernetes_job_is_a_task_whose_pods_know_their_index(tmp_path: Path):
    made = only(run("convert", tmp_path, JOB))["spec"]
    [task] = made["replicatedJobs"][0]["templateSpec"]["tasks"]
    assert (made["activeDeadlineSeconds"], task["replicas"]) == (60, 4)
    [variable] = task["template"]["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.annotations['volcano.sh/task-index']"


@pytest.mark.parametrize(("limit", "policy"), [(0, "Never"), (2**31 - 1, "OnFailure")])
def test_a_job_whose_containers_restart_never_or_without_limit_keeps_that(
    tmp_path: Path, limit: int, policy: str
):
    job = {**JOB, "spec": {**JOB["spec"], "backoffLimit": limit}}
    template = only(run("convert", tmp_path, job))["spec"]["replicatedJobs"][0]["templateSpec"]
    fails = [{"event": "PodFailed", "action": "TerminateJob"}] if policy == "Never" else None
    [task] = template["tasks"]
    assert task["template"]["spec"]["restartPolicy"] == policy
    assert template.get("policies") == fails


def test_a_jobset_keeps_its_jobs_their_order_and_its_policies(tmp_path: Path):
    made = only(run("convert", tmp_path, JOBSET))["spec"]
    assert made["failurePolicy"] == {"maxRestarts": 3}
    assert made["successPolicy"]["targetReplicatedJobs"] == ["workers"]
    leader, workers = made["replicatedJobs"]
    assert (leader["replicas"], workers["replicas"]) == (1, 2)
    assert workers["dependsOn"] == [{"name": "leader", "status": "Ready"}]
    assert workers["templateSpec"]["tasks"][0]["replicas"] == 8
    assert workers["templateSpec"]["policies"] == [{"event": "PodFailed", "action": "TerminateJob"}]
    assert leader["templateSpec"]["tasks"][0]["template"]["spec"]["restartPolicy"] == "OnFailure"


def test_a_pytorchjob_has_the_ranks_of_the_plugin_and_ends_with_its_master(tmp_path: Path):
    template = only(run("convert", tmp_path, PYTORCH))["spec"]["replicatedJobs"][0]["templateSpec"]
    assert (template["queue"], template["minAvailable"]) == ("vision", 3)
    assert list(template["plugins"]) == ["pytorch"]
    master, worker = template["tasks"]
    assert master["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]
    assert worker["policies"] == [{"event": "PodFailed", "action": "TerminateJob"}]
    assert worker["template"]["spec"]["restartPolicy"] == "Never"


def workers_of(jobset: Object) -> Object:
    found: Object = jobset["spec"]["replicatedJobs"][1]["template"]["spec"]
    return found


REFUSED: dict[str, tuple[Object, Callable[[Object], object], str]] = {
    "a work queue": (JOB, lambda o: o["spec"].pop("completions"), "spec.completions: must be 4"),
    "replaced pods": (
        JOBSET,
        lambda o: workers_of(o).update(backoffLimit=4),
        "spec.replicatedJobs[1].template.spec.backoffLimit: must be 0",
    ),
    "counted restarts": (
        JOB,
        lambda o: o["spec"].update(backoffLimit=4),
        "spec.backoffLimit: must be 0 or left out",
    ),
    "what Kubernetes refuses": (
        JOB,
        lambda o: o["spec"]["template"]["spec"].pop("restartPolicy"),
        "spec.template.spec.restartPolicy: must be OnFailure or Never",
    ),
    "a failure policy of pods": (
        JOB,
        lambda o: o["spec"].update(podFailurePolicy={}),
        "spec.podFailurePolicy: a HyperJob has nothing like it",
    ),
    "rules of a JobSet": (
        JOBSET,
        lambda o: o["spec"]["failurePolicy"].update(rules=[]),
        "spec.failurePolicy.rules: a HyperJob has nothing like it",
    ),
    "nodes for one Job alone": (
        JOBSET,
        lambda o: o["metadata"].update(
            annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
        ),
        "exclusive-topology]: a HyperJob keeps no other pods off its nodes",
    ),
    "host names of a JobSet": (
        JOBSET,
        lambda o: workers_of(o)["template"].update(
            spec={**POD, "restartPolicy": "Never", "hostname": "llm-leader-0-0.llm"}
        ),
        "spec.replicatedJobs: names pods as llm-leader-0",
    ),
    "elastic PyTorch": (
        PYTORCH,
        lambda o: o["spec"].update(elasticPolicy={}),
        "spec.elasticPolicy: a HyperJob has nothing like it",
    ),
    "classes of exit codes": (
        PYTORCH,
        lambda o: o["spec"]["pytorchReplicaSpecs"]["Worker"].update(restartPolicy="ExitCode"),
        "spec.pytorchReplicaSpecs.Worker.restartPolicy: a HyperJob restarts by no class",
    ),
    "no master": (
        PYTORCH,
        lambda o: o["spec"]["pytorchReplicaSpecs"].pop("Master"),
        "spec.pytorchReplicaSpecs.Master: must be there",
    ),
    "what admission refuses": (
        VCJOB,
        lambda o: o["spec"].update(minAvailable=9),
        "minAvailable: Invalid value: 9",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_hyperjob_cannot_express_is_refused_by_field(tmp_path: Path, case: str):
    given, change, told = REFUSED[case]
    job = deepcopy(given)
    change(job)
    result = run("convert", tmp_path, job)
    assert (result.exit_code, result.stdout) == (1, "")
    assert told in result.stderr


def test_a_file_without_a_job_is_an_error(tmp_path: Path):
    result = run("convert", tmp_path, {"apiVersion": "v1", "kind": "ConfigMap"})
    assert result.exit_code == 2
    assert "contain no vcjob, JobSet, PyTorchJob or Kubernetes Job" in result.stderr


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (VCJOB, "vcjob nlp/bert: is no HyperJob; hyperjob convert -f "),
        (JOB, "Kubernetes Job sweep: is no HyperJob; hyperjob convert -f "),
        (JOBSET, "JobSet llm: is no HyperJob; hyperjob convert -f "),
        (PYTORCH, "PyTorchJob resnet: is no HyperJob; hyperjob convert -f "),
        (
            {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"},
            "TrainJob (no name): is no HyperJob; kubectl apply it as it is",
        ),
    ],
    ids=["vcjob", "Job", "JobSet", "PyTorchJob", "TrainJob"],
)
def test_lint_names_a_job_of_another_kind_and_what_to_do(tmp_path: Path, job: Object, told: str):
    result = run("lint", tmp_path, job)
    assert result.exit_code == 1
    assert told in result.stderr


RUNTIME: Object = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch", "labels": {"training.volcano.sh/runs-as": "HyperJob"}},
    "spec": {
        "mlPolicy": {"numNodes": 2, "torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {
                                "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
                            },
                            "spec": {"template": {"spec": {"containers": [{"name": "node"}]}}},
                        },
                    }
                ]
            }
        },
    },
}
TRAINJOB: Object = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "bert"},
    "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"image": "bert:v1"}},
}


def test_lint_validates_a_trainjob_whose_runtime_is_in_a_file(tmp_path: Path):
    accepted = run("lint", tmp_path, RUNTIME, TRAINJOB)
    assert accepted.exit_code == 0
    assert accepted.output.endswith("TrainJob bert: would be accepted\n")
    wrong = {**TRAINJOB, "spec": {**TRAINJOB["spec"], "trainer": {"numNodes": 0, "image": "a"}}}
    refused = run("lint", tmp_path, RUNTIME, wrong)
    assert refused.exit_code == 1
    assert "error: spec.trainer.numNodes: Invalid value: 0" in refused.stdout
    memory = {"resourcesPerNode": {"limits": {"memory": "32GB"}}}
    wrong = {**TRAINJOB, "spec": {**TRAINJOB["spec"], "trainer": memory}}
    assert "    remedy: write 32Gi, or 32G" in run("lint", tmp_path, RUNTIME, wrong).stdout


def test_lint_says_what_a_trainjob_lacks_to_be_validated_or_to_run(tmp_path: Path):
    alone = run("lint", tmp_path, TRAINJOB)
    assert "give the file of ClusterTrainingRuntime torch too" in alone.stderr
    plain = {**RUNTIME, "metadata": {"name": "torch"}}
    unlabelled = run("lint", tmp_path, plain, TRAINJOB)
    assert "only in a namespace with the label training.volcano.sh/runs-as" in unlabelled.stdout
    kueue = {**TRAINJOB, "spec": {**TRAINJOB["spec"], "managedBy": "kueue.x-k8s.io/multikueue"}}
    left = run("lint", tmp_path, RUNTIME, kueue).stdout
    assert "managedBy is kueue.x-k8s.io/multikueue: HyperJob leaves the TrainJob alone" in left


def test_lint_names_the_kinds_of_a_file_without_hyperjobs(tmp_path: Path):
    result = run("lint", tmp_path, {"kind": "ConfigMap"}, {"kind": "Secret"})
    assert "contains no HyperJob, but ConfigMap, Secret; --allow-none" in result.stderr
