"""Commands on HyperJobs that run: webhook, controller, Karmada and members are there."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.stack import KUBECTL
from tests.support.system import System

pytestmark = pytest.mark.scenario
Object = dict[str, Any]
ROOT = Path(__file__).parents[2]

needs_proxy = pytest.mark.skipif(
    "KUBEBUILDER_ASSETS" in os.environ, reason="a bare API server has no clusters/proxy"
)


def hyperjob(name: str, *, pods: int = 2, gpus: int = 4, seconds: float = 600) -> Object:
    annotations = {"sandbox.hyperjob.volcano.sh/seconds": str(seconds)}
    container = {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    task = {"name": "worker", "replicas": pods, "template": template}
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": name},
        "spec": {
            "replicatedJobs": [
                {"name": "trainer", "replicas": 2, "templateSpec": {"tasks": [task]}}
            ]
        },
    }


def plugin(
    system: System, project: str, *words: str, code: int = 0
) -> "subprocess.CompletedProcess[str]":
    """Run `kubectl hyperjob …` and expect an exit code."""
    done = subprocess.run(
        [KUBECTL, "hyperjob", words[0], "-n", project, *words[1:]],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "KUBECONFIG": str(system.plane.kubeconfig),
            "PATH": f"{KUBECTL.parent}:{os.environ['PATH']}",
        },
    )
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def jobs_of(system: System, project: str, name: str) -> dict[str, Object]:
    """Give the sub-jobs of a HyperJob by name."""
    return {job["name"]: job for job in system.hyperjob(project, name)["status"]["jobs"]}


def test_what_runs_is_waited_for_shown_and_needs_no_answer(system: System, project: str) -> None:
    system.apply(project, hyperjob("runs"))
    done = plugin(system, project, "wait", "runs", "--for=phase=Running", "--timeout=60s")
    assert done.stdout == "hyperjob.training.volcano.sh/runs condition met\n"
    tree = plugin(system, project, "tree", "runs").stdout
    for index in range(2):
        assert f"runs-trainer-{index}  Running  8 nvidia.com/gpu" in tree
    assert "2 running" in tree
    assert "runs is Running" in plugin(system, project, "why", "runs").stdout
    top = json.loads(plugin(system, project, "top", "-o", "json").stdout)
    assert sum(use["hyperjobs"] for use in top["clusters"]) == 16


@needs_proxy
def test_logs_come_from_every_cluster_and_pods_are_in_the_tree(
    system: System, project: str
) -> None:
    # a whole cluster each, so that no two fit on one cluster
    system.apply(project, hyperjob("logs", pods=4, gpus=8))
    plugin(system, project, "wait", "logs", "--for=phase=Running", "--timeout=90s")
    lines = plugin(system, project, "logs", "logs", "--tail=1").stdout.splitlines()
    assert (
        sorted(line.split("]")[0].split("/")[0] for line in lines) == ["[east"] * 4 + ["[west"] * 4
    )
    chosen = plugin(system, project, "logs", "logs", "--cluster=west", "-o", "json")
    assert {json.loads(line)["cluster"] for line in chosen.stdout.splitlines()} == {"west"}
    tree = json.loads(plugin(system, project, "tree", "logs", "--pods", "-o", "json").stdout)
    pods = [job["podList"] for job in tree["replicatedJobs"][0]["jobs"]]
    assert [len(each) for each in pods] == [4, 4]
    assert {pod["phase"] for each in pods for pod in each} == {"Running"}


@needs_proxy
def test_a_log_is_followed_from_before_its_pod_starts_to_its_end(
    system: System, project: str
) -> None:
    system.apply(project, hyperjob("follow", pods=1, seconds=1))
    done = plugin(system, project, "logs", "follow", "-f", "--job", "trainer-0", "--no-prefix")
    assert done.stdout.splitlines()[-1] == "ended with exit code 0"


def test_what_has_no_room_is_told_with_the_next_command(system: System, project: str) -> None:
    system.apply(project, hyperjob("big", pods=40))
    plugin(system, project, "wait", "big", "--for=phase=Queued", "--timeout=60s")
    answer = json.loads(plugin(system, project, "why", "big", "-o", "json", code=4).stdout)
    assert answer["causes"][0]["reason"] == "ExceedsClusters"
    assert answer["causes"][0]["next"] == f"kubectl edit hj big -n {project}"
    late = plugin(system, project, "wait", "big", "--for=phase=Running", "--timeout=1s", code=3)
    assert "timed out" in late.stderr


def test_suspend_takes_it_off_the_clusters_and_resume_brings_it_back(
    system: System, project: str
) -> None:
    system.apply(project, hyperjob("pause"))
    plugin(system, project, "wait", "pause", "--for=phase=Running", "--timeout=60s")
    plugin(system, project, "suspend", "pause")
    plugin(system, project, "wait", "pause", "--for=phase=Suspended", "--timeout=60s")
    answer = json.loads(plugin(system, project, "why", "pause", "-o", "json", code=4).stdout)
    assert answer["causes"][0]["next"] == f"kubectl hyperjob resume pause -n {project}"
    plugin(system, project, "resume", "pause")
    plugin(system, project, "wait", "pause", "--for=phase=Running,Completed", "--timeout=60s")
    assert system.hyperjob(project, "pause")["status"]["state"]["phase"] == "Running"


def test_a_restart_is_taken_and_makes_only_those_named_again(system: System, project: str) -> None:
    system.apply(project, hyperjob("again"))
    plugin(system, project, "wait", "again", "--for=phase=Running", "--timeout=60s")
    done = plugin(system, project, "restart", "again", "--job", "trainer-1", "--wait")
    assert done.stdout == "hyperjob.training.volcano.sh/again restarted\n"
    jobs = jobs_of(system, project, "again")
    assert [jobs[f"again-trainer-{index}"].get("attempt", 0) for index in range(2)] == [0, 1]


def test_a_move_leaves_the_cluster_it_is_asked_to_leave(system: System, project: str) -> None:
    system.apply(project, hyperjob("move"))
    plugin(system, project, "wait", "move", "--for=phase=Running", "--timeout=60s")
    before = jobs_of(system, project, "move")["move-trainer-0"]["cluster"]
    plugin(system, project, "migrate", "move", "trainer-0", "--wait", "--timeout=60s")
    after = jobs_of(system, project, "move")["move-trainer-0"]
    assert after["cluster"] != before
    assert after["excludedClusters"] == [before]


def test_what_failed_is_told_with_where_its_logs_are(system: System, project: str) -> None:
    system.apply(project, hyperjob("is-failing", seconds=0))
    ended = plugin(
        system, project, "wait", "is-failing", "--for=condition=Completed", "--timeout=90s", code=4
    )
    assert "is Failed, so it never is Completed" in ended.stderr
    answer = plugin(system, project, "why", "is-failing", code=4).stdout
    assert f"kubectl hyperjob logs is-failing -n {project} --job is-failing-trainer-0" in answer
    refused = plugin(system, project, "restart", "is-failing", code=4)
    assert "a HyperJob that has ended never runs again" in refused.stderr


def test_the_first_hyperjob_of_an_installation_completes_on_two_clusters(
    system: System, project: str
) -> None:
    system.apply(project, yaml.safe_load((ROOT / "examples/smoke-test.yaml").read_text()))
    plugin(system, project, "wait", "smoke-test", "--for=condition=Completed", "--timeout=90s")
    jobs = json.loads(plugin(system, project, "get", "smoke-test", "-o", "json").stdout)
    assert {job["cluster"] for job in jobs["status"]["jobs"]} == {"east", "west"}
    if "KUBEBUILDER_ASSETS" not in os.environ:
        lines = plugin(system, project, "logs", "smoke-test").stdout.splitlines()
        assert {line.split("/")[0] for line in lines} == {"[east", "[west"}
