"""`hyperjob sandbox up`: kubectl apply works at once, and its clusters can be lost."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.hyperjobs import hyperjob as job_of
from tests.support.hyperjobs import job_template
from tests.support.processes import ran, wait_for
from tests.support.stack import kubectl

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(240)]
CLUSTERS = """
clusters:
- {name: east, nodes: [{count: 1, allocatable: {cpu: 64, memory: 64Gi, nvidia.com/gpu: 4}}]}
- {name: west, nodes: [{count: 1, allocatable: {cpu: 64, memory: 64Gi, nvidia.com/gpu: 4}}]}
karmada: {clusterStatusSeconds: 0.3, clusterFailureSeconds: 0.3}
pods: processes
"""
LOST_SECONDS = 2
Object = dict[str, Any]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start everything; at the end nothing is left of it."""
    where = tmp_path_factory.mktemp("sandbox")
    temporary = tmp_path_factory.mktemp("temporary")
    (where / "clusters.yaml").write_text(CLUSTERS)
    command = [sys.executable, "-m", "hyperjob", "sandbox", "up", "-o", "json"]
    command += ["--clusters", str(where / "clusters.yaml"), "--directory", str(where / "plane")]
    command += [f"--cluster-lost-timeout={LOST_SECONDS}"]
    with (
        (where / "log").open("wb") as log,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        ) as running,
    ):
        try:
            plane = where / "plane"
            wait_for((plane / "ready").exists, what="the file for which scripts wait")
            kubectl(plane / "karmada.kubeconfig", "get", "hyperjobs")
            assert running.stdout is not None
            lines = iter(running.stdout.readline, "}\n")
            said = json.loads("".join([*lines, "}"]))
            assert sorted(said["members"]) == ["east", "west"]
            yield Path(said["kubeconfig"])
            running.send_signal(signal.SIGTERM)
            running.wait(30)
        finally:
            running.kill()
    assert list(temporary.iterdir()) == []


def hyperjob(kubeconfig: Path, *words: str) -> str:
    done = ran(
        sys.executable, "-m", "hyperjob", *words, "--kubeconfig", str(kubeconfig), timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def job(name: str, program: str, *, gpus: int = 0, **more: Any) -> Object:
    """Return a HyperJob of one pod with a shell program."""
    template = job_template(
        resources={"limits": {"nvidia.com/gpu": gpus}} if gpus else {},
        container={"command": ["sh", "-c", program], **more.pop("container", {})},
        pod={
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            **more.pop("pod", {}),
        },
        policies=[{"event": "PodFailed", "action": "RestartJob"}],
        maxRetry=1,
    )
    return job_of(name, template, **more)


def apply(kubeconfig: Path, *documents: Object) -> None:
    kubectl(kubeconfig, "apply", "-f", "-", stdin=yaml.safe_dump_all(documents))


def status(kubeconfig: Path, name: str) -> Object:
    text = kubectl(kubeconfig, "get", "hyperjob", name, "-o", "json").stdout
    found: Object = json.loads(text).get("status") or {}
    return found


def until(kubeconfig: Path, name: str, goal: str) -> None:
    hyperjob(kubeconfig, "wait", name, "--for", goal, "--timeout", "90s")


def test_kubectl_apply_works_at_once(kubeconfig: Path) -> None:
    apply(kubeconfig, job("hello", "echo hello"))
    until(kubeconfig, "hello", "phase=Completed")


def test_a_lost_cluster_loses_its_processes_and_comes_back(
    kubeconfig: Path, tmp_path: Path
) -> None:
    written = tmp_path / "pids"
    program = f'echo $$$$ >> {written}; [ "$(wc -l < {written})" = 2 ] || sleep 600'
    rules = [{"action": "MigrateJob", "onClusterLost": True}]
    policy = {"maxRestarts": 3, "rules": rules}
    apply(kubeconfig, job("moves", program, gpus=4, failurePolicy=policy))
    until(kubeconfig, "moves", "phase=Running")
    lost = status(kubeconfig, "moves")["clusterNames"]
    wait_for(written.exists, what="the first process")
    pid = int(written.read_text())
    assert "is lost" in hyperjob(kubeconfig, "sandbox", "lose", lost)
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), what="the end of the process")
    wait_for(lambda: ready(kubeconfig, lost) == "False", what="the loss of the cluster")
    until(kubeconfig, "moves", "phase=Completed")
    assert status(kubeconfig, "moves")["clusterNames"] != lost
    assert "comes back" in hyperjob(kubeconfig, "sandbox", "restore", lost)
    wait_for(lambda: ready(kubeconfig, lost) == "True", what="the return of the cluster")


def ready(kubeconfig: Path, cluster: str) -> str:
    path = '{.status.conditions[?(@.type=="Ready")].status}'
    return kubectl(kubeconfig, "get", "cluster", cluster, "-o", f"jsonpath={path}").stdout


def claim(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def with_claim(name: str, program: str) -> Object:
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return job(name, program, container=mounts, pod={"volumes": volumes})


def test_a_deleted_claim_loses_its_data_and_no_other_does(kubeconfig: Path, tmp_path: Path) -> None:
    found = tmp_path / "found"
    look = f"ls /data/kept > {found} 2>&1 || true"
    apply(kubeconfig, claim("data"), with_claim("writes", "touch /data/kept"))
    until(kubeconfig, "writes", "phase=Completed")
    kubectl(kubeconfig, "delete", "hyperjob", "writes")  # Karmada removes the copies of the claim
    apply(kubeconfig, with_claim("reads", look))
    until(kubeconfig, "reads", "phase=Completed")
    assert found.read_text().rstrip().endswith("kept")
    assert "No such file" not in found.read_text()
    kubectl(kubeconfig, "delete", "hyperjob", "reads")
    folders = kubeconfig.parent / "pods"
    assert list(folders.glob("*/claims/default/data"))
    kubectl(kubeconfig, "delete", "pvc", "data")
    wait_for(lambda: not list(folders.glob("*/claims/default/data")), what="the end of the data")
    apply(kubeconfig, claim("data"), with_claim("again", look))
    until(kubeconfig, "again", "phase=Completed")
    assert "No such file" in found.read_text()


def test_a_sandbox_says_that_its_port_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "hyperjob", "sandbox", "up", "--port", str(port)]
        done = ran(*command, "--directory", tmp_path)
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
