"""Devices of resource claims in a whole controller: its Queue bounds them by device class."""

from typing import Any

from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    QUEUES,
    RESOURCE_CLAIM_TEMPLATES,
    VCJOBS,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.apiserver import ApiServer
from tests.unit.controller.test_pass import member, named, reason, running, until
from tests.unit.engine.builders import group

Object = dict[str, Any]


def claimed(count: int) -> Object:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com", "count": count}}
    return {
        "metadata": {"namespace": "default", "name": "gpus"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


async def test_a_queue_counts_the_devices_of_claim_templates_and_follows_their_changes() -> None:
    server, hyperjob = ApiServer(), named("hj", group(replicas=1))
    (task,) = hyperjob["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"]
    task["template"]["spec"]["resourceClaims"] = [
        {"name": "gpus", "resourceClaimTemplateName": "gpus"}
    ]
    pods = task["replicas"]
    capability = {"deviceclass/gpu.example.com": str(3 * pods)}
    queue = {
        "metadata": {"name": "default"},
        "spec": {"weight": 1, "capability": capability},
        "status": {"state": "Open"},
    }
    server.put(CLUSTERS, member("a", 100))
    server.put(QUEUES, queue)
    server.put(RESOURCE_CLAIM_TEMPLATES, claimed(4))
    async with running(server, QueueAdmission.BUILTIN):
        server.put(HYPERJOBS, hyperjob)
        await until(lambda: reason(server) == "ExceedsQueue")
        server.put(RESOURCE_CLAIM_TEMPLATES, claimed(3))
        await until(lambda: server.items(VCJOBS))
    (vcjob,) = server.items(VCJOBS)
    metadata = vcjob["spec"]["tasks"][0]["template"]["metadata"]
    assert metadata["annotations"] == {"training.volcano.sh/devices": "gpu.example.com=3"}
