"""Bad input and outages: each ends in a clear word or a clear wait, and nothing is lost."""

import socket
import subprocess
import sys

import pytest
import yaml

from tests.support.processes import wait_for
from tests.support.system import readiness

MANIFEST = """
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata: {name: NAME}
spec:
  replicatedJobs:
  - name: trainer
    replicas: 2
    templateSpec:
      tasks:
      - name: worker
        replicas: 2
        template:
          metadata: {annotations: {sandbox.hyperjob.volcano.sh/seconds: "1"}}
          spec: {restartPolicy: Never, containers: [{name: main, image: i}]}
"""


def manifest(name="good", **changes):
    """Write the manifest with pieces of its text replaced."""
    text = MANIFEST.replace("NAME", name)
    for old, new in changes.values():
        assert old in text, old
        text = text.replace(old, new)
    return text


BAD = {
    "no replicated job": (
        (MANIFEST.partition("  replicatedJobs:\n")[2], "    []\n"),
        "spec.replicatedJobs: Invalid value",
    ),
    "a name that is no label": (
        ("name: trainer", "name: Trainer_1"),
        "spec.replicatedJobs[0].name",
    ),
    "zero sub-jobs": (
        ("replicas: 2\n    templateSpec", "replicas: 0\n    templateSpec"),
        "replicas",
    ),
    "a number that is a text": (
        ("replicas: 2\n        template", 'replicas: "2"\n        template'),
        "replicas",
    ),
    "a field that nobody knows": (
        ("image: i", "imaeg: i"),
        'unknown field "spec.replicatedJobs[0]',
    ),
    "no image": ((", image: i", ""), "containers[0].image: Required value"),
    "a policy of its own": (
        ("replicas: 2\n    templateSpec", "clusterPolicy: Never\n    templateSpec"),
        'Unsupported value: "Never"',
    ),
    "more than all available": (
        ("spec:\n  replicatedJobs", "spec:\n  minAvailable: 3\n  replicatedJobs"),
        "spec.minAvailable",
    ),
    "not YAML at all": (("spec:", "spec: [:"), "yaml"),
}


@pytest.mark.parametrize(("change", "said"), BAD.values(), ids=list(BAD))
def test_a_malformed_hyperjob_is_refused_by_field(system, project, change, said):
    answer = system.refused(project, manifest(change=change))
    assert said in answer
    assert "Internal error" not in answer


def test_an_unknown_cluster_is_named_while_the_hyperjob_waits(system, project):
    names = (
        "replicas: 2\n    clusterNames: [nowhere]\n    clusterPolicy: Required\n    templateSpec"
    )
    text = manifest("lost", change=("replicas: 2\n    templateSpec", names))
    system.apply(project, yaml.safe_load(text))
    waiting = system.until_phase(project, "lost", "Queued")
    assert "nowhere" in waiting["status"]["state"]["message"]
    assert waiting["status"]["state"]["reason"] == "NoMatchingNode"
    assert {job["reason"] for job in waiting["status"]["jobs"]} == {"WaitingForQueue"}


def test_an_api_server_that_goes_away_and_comes_back_loses_nothing(system, project):
    system.apply(project, yaml.safe_load(manifest("before")))
    system.until_phase(project, "before", "Queued", "Starting", "Running")
    system.relay.cut()
    try:
        system.apply(project, yaml.safe_load(manifest("meanwhile")))
    finally:
        system.relay.remedy()
    for name in ("before", "meanwhile"):
        system.until_phase(project, name, "Completed")
    assert system.controller.process.poll() is None
    assert "Traceback" not in system.controller.text()
    wait_for(lambda: "ok" in readiness(system.controller), what="readiness")
    jobs = system.plane.kubectl("get", "jobs.batch.volcano.sh", "-n", project, "-o", "name").stdout
    assert len(jobs.split()) == 4, jobs


def test_a_webhook_that_is_away_lets_nothing_half_defaulted_in(system, project):
    system.webhook.kill()
    try:
        answer = system.refused(project, manifest("closed"))
    finally:
        system.webhook.start()
    assert 'failed calling webhook "mhyperjob.training.volcano.sh"' in answer
    system.apply(project, yaml.safe_load(manifest("closed")))
    system.until_phase(project, "closed", "Completed")


def test_a_sandbox_says_that_its_port_is_taken(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "hyperjob", "sandbox", "up", "--port", str(port)]
        done = subprocess.run(
            [*command, "--directory", tmp_path], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
