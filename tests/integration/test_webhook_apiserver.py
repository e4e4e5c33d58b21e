"""The webhook called by an API server: what kubectl and the controllers see of it."""

import asyncio
import json

import pytest
import yaml

from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import InternalError
from hyperjob_core.kube.resources import RESOURCE_BINDINGS
from tests.support.webhookprocess import registered_webhook

pytestmark = pytest.mark.scenario

GATE = "training.volcano.sh/gate"

HYPERJOB = yaml.safe_load(
    """
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata: {name: llm}
spec:
  replicatedJobs:
  - name: trainer
    replicas: 2
    templateSpec:
      plugins: {pytorch: ["--master=master", "--worker=worker"]}
      tasks:
      - name: master
        replicas: 1
        template: &gpus
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: train:v1
              resources: {requests: {nvidia.com/gpu: 1}}
      - name: worker
        replicas: 3
        template: *gpus
"""
)


@pytest.fixture
def webhook(control_plane, tmp_path):
    with registered_webhook(control_plane.kubeconfig, tmp_path) as process:
        yield process


def binding(name, namespace, *, affinity):
    return {
        **RESOURCE_BINDINGS.head,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "resource": {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": name.removesuffix("-job"),
                "namespace": namespace,
            },
            "placement": {
                "clusterAffinities": [{"affinityName": affinity, "clusterNames": ["member1"]}],
                "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
            },
            "suspension": {"dispatching": True},
        },
    }


def test_what_kubectl_applies_is_stored_as_it_is(control_plane, namespace, webhook):
    document = json.dumps(HYPERJOB)
    apply = ("apply", "-n", namespace, "-f", "-")
    assert "created" in control_plane.kubectl(*apply, stdin=document).stdout
    stored = json.loads(
        control_plane.kubectl("get", "hj", "llm", "-n", namespace, "-o", "json").stdout
    )
    assert stored["spec"] == HYPERJOB["spec"]
    control_plane.kubectl(*apply, stdin=document)
    again = json.loads(
        control_plane.kubectl("get", "hj", "llm", "-n", namespace, "-o", "json").stdout
    )
    assert again["spec"] == stored["spec"]
    assert again["metadata"]["generation"] == 1, "the same manifest is no change"
    done = json.dumps({"status": {"splitCount": 2}})
    patch = ("patch", "hj", "llm", "-n", namespace, "--subresource=status", "--type=merge")
    control_plane.kubectl(*patch, "-p", done)
    control_plane.kubectl("delete", "hj", "llm", "-n", namespace, "--timeout=30s")


def test_all_mistakes_are_told_at_once_in_kubectl(control_plane, namespace, webhook):
    wrong = json.loads(json.dumps(HYPERJOB))
    tasks = wrong["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"]
    tasks[1]["minAvailable"] = 4
    del tasks[0]["template"]["spec"]["containers"][0]["image"]
    refused = control_plane.kubectl(
        *("apply", "-n", namespace, "-f", "-"), stdin=json.dumps(wrong), check=False
    )
    assert refused.returncode == 1
    path = "spec.replicatedJobs[0].templateSpec.tasks"
    assert refused.stderr.startswith('The HyperJob "llm" is invalid: ')
    assert f"{path}[1].minAvailable: Invalid value: 4" in refused.stderr
    assert f"{path}[0].template.spec.containers[0].image: Required value" in refused.stderr


def test_a_dry_run_is_judged_like_the_real_thing(control_plane, namespace, webhook):
    raw = json.loads(json.dumps(HYPERJOB))
    template = raw["spec"]["replicatedJobs"][0]["templateSpec"]
    del template["plugins"], template["tasks"][0]["name"]
    dry_run = ("create", "-n", namespace, "--dry-run=server", "-o", "json", "-f", "-")
    applied = control_plane.kubectl(*dry_run, stdin=json.dumps(raw))
    tasks = json.loads(applied.stdout)["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"]
    assert [each["name"] for each in tasks] == ["default0", "worker"]
    template["minAvailable"] = 5
    refused = control_plane.kubectl(*dry_run, stdin=json.dumps(raw), check=False)
    assert "minAvailable: Invalid value: 5" in refused.stderr


async def test_a_gang_s_binding_is_held_until_its_gate_opens(kube, namespace, webhook):
    """Created, released by Volcano Global, opened by the controller: each write as they make it."""
    made = await kube.create(
        RESOURCE_BINDINGS, binding("j-t-0-job", namespace, affinity="hyperjob-gang")
    )
    assert made["spec"]["suspension"] == {"dispatching": True, "scheduling": True}
    assert made["metadata"]["annotations"][GATE] == "held"
    assert made["metadata"]["labels"]["training.volcano.sh/binding"] == "hyperjob"

    async def patch(body, kind):
        return await kube.patch(
            RESOURCE_BINDINGS, "j-t-0-job", body, kind=kind, namespace=namespace
        )

    release = [{"op": "add", "path": "/spec/suspension", "value": {"scheduling": False}}]
    released = await patch(release, PatchType.JSON)
    assert released["spec"]["suspension"] == {"dispatching": True, "scheduling": False}
    opening = {
        "metadata": {"annotations": {GATE: "open"}},
        "spec": {"suspension": {"dispatching": None}},
    }
    for _ in range(2):
        opened = await patch(opening, PatchType.MERGE)
        assert opened["spec"]["suspension"] == {"scheduling": False}


async def test_while_it_is_away_only_our_own_objects_wait(kube, control_plane, namespace, webhook):
    await kube.create(RESOURCE_BINDINGS, binding("j-t-0-job", namespace, affinity="hyperjob-gang"))
    webhook.process.kill()
    await asyncio.to_thread(webhook.process.wait, 30)
    await kube.create(RESOURCE_BINDINGS, binding("mine-job", namespace, affinity="mine"))
    with pytest.raises(InternalError, match="failed calling webhook"):
        await kube.create(
            RESOURCE_BINDINGS, binding("j-t-1-job", namespace, affinity="hyperjob-gang")
        )
    refused = await asyncio.to_thread(
        lambda: control_plane.kubectl(
            *("create", "-n", namespace, "-f", "-"), stdin=json.dumps(HYPERJOB), check=False
        )
    )
    assert 'failed calling webhook "mhyperjob.training.volcano.sh"' in refused.stderr
    await kube.delete(RESOURCE_BINDINGS, "j-t-0-job", namespace=namespace)
