"""The page about queues is true: its objects lead to the message that it shows."""

import re
from pathlib import Path
from typing import Any

import yaml

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    HYPERJOBS,
    PRIORITY_CLASSES,
    QUEUES,
    VCJOBS,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.controller import clusters, eventually, running_controller
from tests.support.controlplane import ControlPlane

PAGE = (Path(__file__).parents[2] / "docs/tasks/queues.md").read_text(encoding="utf-8")
RESOURCES = {
    each.kind: each for each in (QUEUES, PRIORITY_CLASSES, CLUSTER_PROPAGATION_POLICIES, HYPERJOBS)
}


def documents() -> list[dict[str, Any]]:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [each for block in blocks for each in yaml.safe_load_all(block)]


async def test_the_page_about_queues_is_true(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    shown = re.search(r"\$ kubectl get hj next-model .*\n(.*)\n", PAGE)
    made = documents()
    shared = [each for each in made if each["kind"] != HYPERJOBS.kind]
    for each in shared:
        await kube.create(RESOURCES[each["kind"]], each)
    try:
        async with (
            clusters(kube, east=128, west=144),
            running_controller(
                control_plane.kubeconfig,
                namespace,
                admission=QueueAdmission.BUILTIN,
                cluster_status_lag=0.5,
            ),
        ):
            for each in made:
                if each in shared:
                    continue
                each["metadata"]["namespace"] = namespace
                if each["metadata"]["name"] == "urgent-model":
                    await eventually(lambda: said(kube, namespace), what="a message")
                    assert await said(kube, namespace) == shown[1]
                    assert await stands(kube, namespace, "base-model")
                await kube.create(HYPERJOBS, each)
                if each["metadata"]["name"] == "base-model":
                    await eventually(
                        lambda: stands(kube, namespace, "base-model"), what="its sub-jobs"
                    )
            await eventually(
                lambda: stands(kube, namespace, "urgent-model"), what="the urgent one instead"
            )
    finally:
        for each in shared:
            await kube.delete(RESOURCES[each["kind"]], each["metadata"]["name"])


async def stands(kube: Kube, namespace: str, name: str) -> bool:
    names = {
        each["metadata"]["name"] for each in (await kube.list(VCJOBS, namespace=namespace)).items
    }
    return names == {f"{name}-trainer-0", f"{name}-trainer-1"}


async def said(kube: Kube, namespace: str) -> str:
    found = await kube.get(HYPERJOBS, "next-model", namespace=namespace)
    return str(found.get("status", {}).get("state", {}).get("message", ""))
