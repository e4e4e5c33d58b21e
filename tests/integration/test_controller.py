"""The controller over HTTP: what it writes, and what it does not."""

import asyncio
from collections import Counter
from functools import partial
from typing import Any

from hyperjob_controller.manager import Manager
from hyperjob_controller.memory import MESSAGE_SECONDS
from hyperjob_controller.options import Tuning
from hyperjob_core.api.names import LEASE_NAME
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    LEASES,
    NAMESPACES,
    VCJOBS,
)
from tests.support import hyperjobs
from tests.support.controller import (
    clusters,
    eventually,
    round_is_due,
    running_controller,
    set_cluster,
    settled,
)
from tests.support.controlplane import ControlPlane

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


def hyperjob(
    namespace: str, name: str = "hj", *, replicas: int = 2, gpus: int = 4, **spec: Any
) -> Object:
    resources = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    template = hyperjobs.job_template(pods=gpus, resources=resources)
    return hyperjobs.hyperjob(name, template, namespace=namespace, replicas=replicas, **spec)


async def report(kube: Kube, namespace: str, name: str, phase: str, **pods: int) -> None:
    """Write a vcjob's status as Karmada brings it back."""
    state = {"phase": phase, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await kube.patch(
        VCJOBS,
        name,
        {"status": {"state": state, **pods}},
        kind=PatchType.MERGE,
        namespace=namespace,
        subresource="status",
    )


async def phase_is(kube: Kube, namespace: str, phase: str, name: str = "hj") -> Object:
    async def look() -> Object | None:
        status = (await kube.get(HYPERJOBS, name, namespace=namespace)).get("status", {})
        return status if status.get("state", {}).get("phase") == phase else None

    found: Object = await eventually(look, what=f"phase {phase}")
    return found


def ours(counts: Counter[tuple[str, str, str]]) -> dict[str, int]:
    """Keep the writes on what the controller writes, Events apart."""
    kept = {"hyperjobs", "jobs", "propagationpolicies", "resourcebindings"}
    return {
        " ".join(filter(None, key)): number
        for key, number in counts.items()
        if key[1] in kept and number
    }


async def test_n_sub_jobs_cost_2n_creates_and_a_rest_or_restart_costs_nothing(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    async with clusters(kube, one=100, two=100):
        async with running_controller(control_plane.kubeconfig, namespace) as manager:
            before = control_plane.writes()
            await kube.create(HYPERJOBS, hyperjob(namespace, replicas=20))
            await phase_is(kube, namespace, "Starting")
            await settled(manager, kube, namespace)
            first = control_plane.writes()
            assert ours(first - before) == {
                "POST hyperjobs": 1,
                "POST propagationpolicies": 20,
                "POST jobs": 20,
                "PATCH hyperjobs status": 1,
            }
            for index in range(20):
                await report(kube, namespace, f"hj-trainer-{index}", "Running", running=4)
            status = await phase_is(kube, namespace, "Running")
            assert status["jobsReady"] in {f"{n}/20" for n in range(20, 21)}
            await settled(manager, kube, namespace)
            at_rest = control_plane.writes()
            await kube.create(HYPERJOBS, hyperjob(namespace, "later", replicas=1))
            await phase_is(kube, namespace, "Starting", "later")
            await settled(manager, kube, namespace)
            assert ours(control_plane.writes() - at_rest) == {
                "POST hyperjobs": 1,
                "POST propagationpolicies": 1,
                "POST jobs": 1,
                "PATCH hyperjobs status": 1,
            }
            at_rest = control_plane.writes()
        async with running_controller(control_plane.kubeconfig, namespace) as manager:
            await settled(manager, kube, namespace)
        assert ours(control_plane.writes() - at_rest) == {}


async def test_those_that_wait_are_not_written_at_every_heartbeat_but_say_what_is_true(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    waiting, beats = 10, 12

    async def all_say(text: str) -> bool:
        found = (await kube.list(HYPERJOBS, namespace=namespace)).items
        said = [item.get("status", {}).get("state", {}).get("message", "") for item in found]
        return len(said) == waiting and all(text in message for message in said)

    async with (
        clusters(kube, busy=1),
        running_controller(control_plane.kubeconfig, namespace) as manager,
    ):
        for number in range(waiting):
            await kube.create(HYPERJOBS, hyperjob(namespace, f"hj{number}"))
        await eventually(partial(all_say, "(has 1)"), what="all wait")
        await settled(manager, kube, namespace)
        before, began = control_plane.writes(), asyncio.get_running_loop().time()
        for beat in range(beats):
            await set_cluster(kube, "busy", 2 + beat % 2)
            await eventually(partial(seen_by_a_round, manager, kube), what="a round")
        elapsed = asyncio.get_running_loop().time() - began
        await eventually(partial(all_say, "(has 3)"), what="all say what is true")
        written = ours(control_plane.writes() - before)
        rounds = 2 + (elapsed + 5) // MESSAGE_SECONDS
        assert written["PATCH hyperjobs status"] <= waiting * min(rounds, beats - 1)
        await settled(manager, kube, namespace)
        at_rest = control_plane.writes()
        await kube.create(HYPERJOBS, hyperjob(namespace, "later"))
        waiting += 1
        await eventually(partial(all_say, "(has 3)"), what="a later one waits, too")
        await settled(manager, kube, namespace)
        assert ours(control_plane.writes() - at_rest) == {
            "POST hyperjobs": 1,
            "PATCH hyperjobs status": 1,
        }


async def seen_by_a_round(manager: Manager, kube: Kube) -> bool:
    """Return whether a round of the queue engine has seen the clusters as they are."""
    there = {item["metadata"]["resourceVersion"] for item in (await kube.list(CLUSTERS)).items}
    seen = {item["metadata"]["resourceVersion"] for item in manager.caches.clusters.items()}
    return seen == there and not round_is_due(manager)


async def test_of_two_controllers_one_works_and_the_other_takes_over(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    options = {
        "leader_elect": True,
        "tuning": Tuning(lease_namespace=namespace),
    }
    async with clusters(kube, one=100):
        standby_started = asyncio.Event()

        async def standby() -> None:
            async with running_controller(control_plane.kubeconfig, namespace, **options):
                standby_started.set()
                await phase_is(kube, namespace, "Starting", "second")

        async with running_controller(control_plane.kubeconfig, namespace, **options):
            other = asyncio.create_task(standby())
            await kube.create(HYPERJOBS, hyperjob(namespace, "first"))
            await phase_is(kube, namespace, "Starting", "first")
            assert not standby_started.is_set()
        await kube.create(HYPERJOBS, hyperjob(namespace, "second"))
        await other
        assert standby_started.is_set()


async def test_two_controllers_of_two_namespaces_both_lead(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    other = f"{namespace}-b"
    await kube.create(NAMESPACES, {"metadata": {"name": other}})
    options = {"leader_elect": True, "tuning": Tuning(lease_namespace=namespace)}
    async with (
        clusters(kube, one=100),
        running_controller(control_plane.kubeconfig, namespace, **options),
        running_controller(control_plane.kubeconfig, other, **options),
    ):
        for home in (namespace, other):
            await kube.create(HYPERJOBS, hyperjob(home))
            await phase_is(kube, home, "Starting")
        leases = (await kube.list(LEASES, namespace=namespace)).items
        names = {lease["metadata"]["name"]: lease["spec"]["holderIdentity"] for lease in leases}
        assert names.keys() == {f"{LEASE_NAME}-{namespace}", f"{LEASE_NAME}-{other}"}
        assert len(set(names.values())) == 2
