"""What mallory sends to admission: texts and lists that once stopped it, and what was not hers."""

import copy
import time

import pytest

from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS
from tests.support.webhookprocess import registered_webhook

pytestmark = pytest.mark.scenario

TASK = {
    "name": "t",
    "replicas": 1,
    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
}
JOB = {"name": "a", "templateSpec": {"tasks": [TASK]}}


def hyperjob(name, *jobs, **metadata):
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": name, **metadata},
        "spec": {"replicatedJobs": list(jobs or (copy.deepcopy(JOB),))},
    }


def zeros():
    job = copy.deepcopy(JOB)
    box = job["templateSpec"]["tasks"][0]["template"]["spec"]["containers"][0]
    box["resources"] = {"limits": {"nvidia.com/gpu": "0" * 3300 + "e1.5"}}
    return hyperjob("zeros", job)


def unknown_names():
    return hyperjob(
        "unknown",
        *(
            {**JOB, "name": f"j{i}", "dependsOn": [{"name": f"x{i}", "status": "Ready"}]}
            for i in range(250)
        ),
    )


def many_tasks():
    return hyperjob("tasks", {"name": "a", "templateSpec": {"tasks": [{}] * 100_000}})


def protected():
    labels = {"resourcetemplate.karmada.io/deletion-protected": "Always"}
    return hyperjob("kept", {**JOB, "templateMetadata": {"labels": labels}})


def first_in_line():
    template = {**JOB["templateSpec"], "priorityClassName": "system-node-critical"}
    return hyperjob("first", {**JOB, "templateSpec": template})


def long_token():
    return hyperjob("token", annotations={"training.volcano.sh/restart": "x" * 100_000})


ATTACKS = {
    "a quantity of zeros": zeros,
    "unknown names": unknown_names,
    "many tasks": many_tasks,
    "what Karmada would keep": protected,
    "a class of Kubernetes": first_in_line,
    "a long token": long_token,
    "too many sub-jobs": lambda: hyperjob("many", {**JOB, "replicas": 20_000_000}),
}


@pytest.fixture(scope="module")
def webhook(control_plane, tmp_path_factory):
    with registered_webhook(
        control_plane.kubeconfig, tmp_path_factory.mktemp("webhook")
    ) as process:
        yield process


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
async def test_an_attack_is_refused_and_admission_serves_on(people, webhook, namespace, attack):
    harmless = hyperjob("harmless", namespace=namespace)
    made = attack()
    made["metadata"]["namespace"] = namespace
    with pytest.raises(KubeError):
        await people.mallory.create(HYPERJOBS, made)
    started = time.monotonic()
    await people.mallory.create(HYPERJOBS, harmless)
    # The webhook's configuration gives a request five seconds, and Fail refuses it after that.
    assert time.monotonic() - started < 5


async def test_what_is_being_deleted_keeps_its_spec_and_may_lose_its_finalizers(
    people, webhook, namespace
):
    made = hyperjob("going", namespace=namespace, finalizers=["example.com/wait"])
    await people.mallory.create(HYPERJOBS, made)
    await people.mallory.delete(HYPERJOBS, "going", namespace=namespace)
    grown = [{"op": "add", "path": "/spec/replicatedJobs/0/replicas", "value": 4000}]
    with pytest.raises(KubeError, match="while the HyperJob is being deleted"):
        await people.mallory.patch(
            HYPERJOBS, "going", grown, namespace=namespace, kind=PatchType.JSON
        )
    freed = [{"op": "remove", "path": "/metadata/finalizers"}]
    await people.mallory.patch(HYPERJOBS, "going", freed, namespace=namespace, kind=PatchType.JSON)
