"""The remedy that `hyperjob lint` prints for a mistake, where its value shows what is meant."""

import pytest
from click.testing import CliRunner

from hyperjob.cli.lint import lint
from tests.support.kubectltexts import Row

NAMED = Row("spec", "suspend: true").document().replace("name: a", "name: My_training_job")
MISTAKES = [
    ("container", "resources: {limits: {memory: 16GB}}", "write 16Gi, or 16G for powers of 1000"),
    (
        "container",
        'resources: {limits: {memory: "16 GB"}}',
        "write 16Gi, or 16G for powers of 1000",
    ),
    ("container", "resources: {limits: {memory: 16gi}}", "write 16Gi, or 16G for powers of 1000"),
    (
        "container",
        "resources: {limits: {memory: 512kb}}",
        "write 512Ki, or 512k for powers of 1000",
    ),
    ("container", "resources: {limits: {memory: lots}}", "write an amount as 2, as 500m of a CPU"),
    ("container", "resources: {limits: {nvidia.com/gpu: 0.5}}", "request whole devices"),
    ("container", "resources: {limits: {Nvidia.com/GPU: 1}}", "use nvidia.com/gpu"),
    ("container", "command: python train.py", 'write a list: ["python", "train.py"]'),
    ("container", "args: [--lr, 0.1]", 'quote the number: "0.1"'),
    ("container", "env: {LR: a}", "write a list: [{name: LR, value: a}]"),
    ("container", "env: [{name: LR, value: 1}]", 'quote the number: "1"'),
    ("container", "env: [{name: LR, value: y}]", "put the text in quotes, as"),
    ("container", "imagePullPolicy: always", "write Always"),
    ("container", "volumeMounts: [{name: data, mountPath: /d}]", "add the volume to `volumes`"),
    ("container", "tty: 'true'", "write true without quotes"),
    ("pod", "nodeSelector: [pool]", "write a map, such as {pool: text}"),
    ("pod", "nodeSelector: {pool: on}", "put the text in quotes, as"),
    ("pod", "RestartPolicy: Never", "write restartPolicy"),
    ("pod", "terminationGracePeriodSeconds: 5m", "write the seconds: 300"),
    ("pod", 'terminationGracePeriodSeconds: "300"', "write 300 without quotes"),
    ("task", "restartPolicy: Never", "tasks[].template.spec.restartPolicy"),
    ("task", "maxRetry: -1", "write that number or a larger one"),
    ("task", "minAvailable: 2", "lower minAvailable, raise the replicas, or leave"),
    ("task", "dependsOn: [other]", "write a map with some of the fields name, iteration"),
    ("job", "plugins: [svc]", "write a map, such as {svc: []}"),
    ("job", "queue: My_Queue", "use my-queue"),
    ("job", "runningEstimate: 60", "write a number and a unit, as 60s"),
    ("job", "policies: [{exitCodes: [3], action: AbortJob}]", "write exitCode"),
    ("group", "clusterNames: gpu-east", 'write a list: ["gpu-east"]'),
    ("group", "clusterNames: [GPU-East]", "use gpu-east"),
    ("group", "clusterPolicy: required", "write Required"),
    ("group", "queue: research", "move it to spec.replicatedJobs[].templateSpec.queue"),
    ("group", "replica: 2", "write replicas"),
    ("group", 'replicas: "2"', "write 2 without quotes"),
    ("spec", "queue: research", "move it to spec.replicatedJobs[].templateSpec.queue"),
    (
        "spec",
        "priorityClassName: high",
        "move it to spec.replicatedJobs[].templateSpec.priorityClassName",
    ),
    ("spec", "clusterNames: [a]", "move it to spec.replicatedJobs[].clusterNames"),
    ("spec", "maxRestarts: 3", "move it to spec.failurePolicy.maxRestarts"),
    ("spec", "activeDeadlineSeconds: 2h", "write the seconds: 7200"),
    ("spec", "ttlSecondsAfterFinished: 1d", "write the seconds: 86400"),
    ("spec", "minAvailable: 5", "lower minAvailable, raise the replicas"),
    ("spec", "plugins: {pytorhc: []}", "write pytorch"),
    ("file", NAMED, "use my-training-job"),
    ("meta", "labels: {nightly: n}", "put the text in quotes, as"),
]


MISSPELT = [
    ("replicatedJobs:", "replicatedjobs:"),
    ("templateSpec:", "templatespec:"),
    ("restartPolicy:", "restartpolicy:"),
    ("image:", "Image:"),
    ("apiVersion:", "apiversion:"),
]


@pytest.mark.parametrize(("right", "wrong"), MISSPELT)
def test_a_misspelt_field_is_told_once_and_not_as_a_missing_one(right: str, wrong: str):
    text = Row("spec", "suspend: true").document()
    assert right in text
    result = CliRunner().invoke(lint, ["-"], input=text.replace(right, wrong, 1))
    errors = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1, result.stdout
    assert f'did you mean "{right[:-1]}"?' in errors[0]
    assert "warning" not in result.stdout


def test_a_misspelt_field_beside_the_right_one_hides_nothing():
    text = (
        Row("group", "replicas: 0").document().replace("replicas: 0", "replicas: 0\n    replica: 1")
    )
    result = CliRunner().invoke(lint, ["-"], input=text)
    assert "replicas: Invalid value: 0" in result.stdout
    assert "replica: Forbidden: unknown field" in result.stdout


@pytest.mark.parametrize(("at", "text", "remedy"), MISTAKES)
def test_the_remedy_says_what_to_write(at: str, text: str, remedy: str):
    result = CliRunner().invoke(lint, ["-"], input=Row(at, text).document())
    assert result.exit_code == 1
    remedies = [line for line in result.stdout.splitlines() if line.startswith("    remedy: ")]
    assert any(remedy in line for line in remedies), result.stdout
    assert "warning" not in result.stdout
