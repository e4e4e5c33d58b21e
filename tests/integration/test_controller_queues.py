"""Queue admission over HTTP: who is made, who waits and why, and after a restart."""

from datetime import timedelta
from typing import Any

from hyperjob_controller.options import Tuning
from hyperjob_core.api.duration import utc_now
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    VCJOBS,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.controller import (
    clusters,
    collect_garbage,
    eventually,
    queue,
    running_controller,
    settled,
)
from tests.support.controlplane import ControlPlane

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
BUILTIN = QueueAdmission.BUILTIN


def hyperjob(
    namespace: str, name: str, *, gpus: int = 4, queue: str = "", priority: str = "", **spec: Any
) -> Object:
    """Make a HyperJob of two sub-jobs."""
    resources = {"limits": {GPU: "1"}}
    container = {"name": "main", "image": "i", "resources": resources}
    template: Object = {
        "queue": queue or namespace,
        "tasks": [
            {"name": "w", "replicas": gpus, "template": {"spec": {"containers": [container]}}}
        ],
    }
    if priority:
        template["priorityClassName"] = priority
    group = {"name": "t", "replicas": 2, "templateSpec": template}
    return {
        "apiVersion": HYPERJOBS.api_version,
        "kind": HYPERJOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicatedJobs": [group], **spec},
    }


async def state_with(kube: Kube, namespace: str, name: str, text: str) -> Object:
    """Wait until the message of a HyperJob holds a text."""
    last: list[object] = [None]

    async def look() -> Object | None:
        status = (await kube.get(HYPERJOBS, name, namespace=namespace)).get("status", {})
        last[0] = state = status.get("state", {})
        return status if text in str(state.get("message")) else None

    try:
        found: Object = await eventually(look, what=f"{name}: {text}")
    except AssertionError as error:
        raise AssertionError(f"{error}; last seen: {last[0]}") from None
    return found


async def jobs(kube: Kube, namespace: str) -> set[str]:
    return {
        each["metadata"]["name"] for each in (await kube.list(VCJOBS, namespace=namespace)).items
    }


async def until_jobs(kube: Kube, namespace: str, *hyperjobs: str) -> None:
    wanted = {f"{name}-t-{index}" for name in hyperjobs for index in range(2)}

    async def look() -> bool:
        return await jobs(kube, namespace) == wanted

    await eventually(look, what=f"children of {hyperjobs} and no others")


async def report(kube: Kube, namespace: str, name: str, phase: str, **pods: int) -> None:
    state = {"phase": phase, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    for index in range(2):
        await kube.patch(
            VCJOBS,
            f"{name}-t-{index}",
            {"status": {"state": state, **pods}},
            kind=PatchType.MERGE,
            namespace=namespace,
            subresource="status",
        )


async def test_one_is_made_at_a_time_and_a_restart_admits_nobody_twice(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    async with clusters(kube, one=12), queue(kube, namespace):
        async with running_controller(
            control_plane.kubeconfig, namespace, admission=BUILTIN, cluster_status_lag=0
        ) as manager:
            await kube.create(HYPERJOBS, hyperjob(namespace, "first"))
            await until_jobs(kube, namespace, "first")
            await kube.create(HYPERJOBS, hyperjob(namespace, "second"))
            waiting = await state_with(kube, namespace, "second", "lacks")
            assert waiting["state"]["phase"] == "Queued"
            assert waiting["state"]["reason"] == "InsufficientCapacity"
            text = waiting["state"]["message"]
            assert text.startswith(f"first of 1 in queue {namespace} (uses 8 of its share of ")
            assert "2 sub-jobs must start together, there is room for 1" in text
            assert [job["phase"] for job in waiting["jobs"]] == ["Queued", "Queued"]
            for policy in (await kube.list(PROPAGATION_POLICIES, namespace=namespace)).items:
                assert policy["spec"]["suspension"] == {"dispatching": True}
            await settled(manager, kube, namespace)
            admitted = (await kube.get(HYPERJOBS, "first", namespace=namespace))["status"]
            assert [job["admitted"] for job in admitted["jobs"]] == [True, True]
        before = await versions(kube, namespace)
        async with running_controller(
            control_plane.kubeconfig, namespace, admission=BUILTIN, cluster_status_lag=0
        ) as manager:
            await settled(manager, kube, namespace)
            assert await versions(kube, namespace) == before, "nothing changed, nothing is written"
            await report(kube, namespace, "first", "Completed")
            await until_jobs(kube, namespace, "first", "second")


async def versions(kube: Kube, namespace: str) -> dict[str, str]:
    return {
        f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind in (HYPERJOBS, VCJOBS, PROPAGATION_POLICIES)
        for each in (await kube.list(kind, namespace=namespace)).items
    }


async def test_a_new_leader_counts_the_pods_of_sub_jobs_that_the_last_one_stopped(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    options: dict[str, Any] = {
        "admission": BUILTIN,
        "cluster_status_lag": 0,
        "leader_elect": True,
        "tuning": Tuning(lease_namespace=namespace),
    }
    slow = hyperjob(namespace, "slow")
    for group in slow["spec"]["replicatedJobs"]:
        for task in group["templateSpec"]["tasks"]:
            task["template"]["spec"]["terminationGracePeriodSeconds"] = 600
    text = "pods of stopped sub-jobs hold 8 of it"
    async with clusters(kube, one=64), queue(kube, namespace, capability={GPU: "8"}):
        async with running_controller(control_plane.kubeconfig, namespace, **options):
            await kube.create(HYPERJOBS, slow)
            await until_jobs(kube, namespace, "slow")
            await report(kube, namespace, "slow", "Running")
            await phase_of(kube, namespace, "slow", "Running")
            uid = (await kube.get(HYPERJOBS, "slow", namespace=namespace))["metadata"]["uid"]
            await kube.delete(HYPERJOBS, "slow", namespace=namespace)
            await collect_garbage(kube, namespace, uid)
            await until_jobs(kube, namespace)
            await kube.create(HYPERJOBS, hyperjob(namespace, "next"))
            await state_with(kube, namespace, "next", text)
        async with running_controller(control_plane.kubeconfig, namespace, **options) as manager:
            await settled(manager, kube, namespace)
            await state_with(kube, namespace, "next", text)
            assert await jobs(kube, namespace) == set()
        later = timedelta(seconds=610)
        async with running_controller(
            control_plane.kubeconfig, namespace, now=lambda: utc_now() + later, **options
        ):
            await until_jobs(kube, namespace, "next")


async def phase_of(kube: Kube, namespace: str, name: str, phase: str) -> None:
    async def look() -> bool:
        status = (await kube.get(HYPERJOBS, name, namespace=namespace)).get("status", {})
        return bool(status.get("state", {}).get("phase") == phase)

    await eventually(look, what=f"{name} {phase}")
