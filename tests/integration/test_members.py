"""The reader of members over real HTTP: what it knows, and when it knows nothing any more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hyperjob.client.members import refusals_of_all, views_of
from hyperjob.client.summary import read as summarised
from hyperjob_controller.members import reader as members_reader
from hyperjob_controller.members.reader import Members
from hyperjob_core.api.duration import utc_now
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import CLUSTERS, CORE_EVENTS, HYPERNODES, NODES, PODS, Resource
from hyperjob_core.tasks import cancel
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.model.members import NodeState
from hyperjob_engine.model.observed import Observed
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream
from hyperjob_sandbox.karmada.definitions import control_plane_definitions
from hyperjob_sandbox.karmada.proxy import SUBRESOURCE, ClusterProxy
from hyperjob_sandbox.objects import new_object, with_conditions
from tests.unit.controller.test_pass import until
from tests.unit.engine.builders import hyperjob, job, observed
from tests.unit.engine.test_members_fold import node, pod

pytestmark = pytest.mark.scenario

READY = with_conditions({}, now=wire_now(), Ready=("True", "ClusterReady", "it is healthy"))


@dataclass
class Faults:
    """Which members do not answer, and which refuse."""

    refuses: set[str] = field(default_factory=set)
    requests: list[tuple[str, str]] = field(default_factory=list)


class FaultyProxy(ClusterProxy):
    def __init__(self, members: dict[str, ApiServer], faults: Faults) -> None:
        super().__init__(members)
        self._faults = faults

    async def __call__(self, call: Call) -> Reply | Stream:
        name = call.info.name
        self._faults.requests.append((name, call.info.subresource))
        if name in self._faults.refuses:
            raise errors.forbidden("", "pods", "", "the account of the reader has no right")
        return await super().__call__(call)


@dataclass
class World:
    """Two members behind a Karmada API server, and the reader of both."""

    kube: Kube
    members: dict[str, ApiServer]
    there: dict[str, Kube]
    reader: Members
    faults: Faults
    freed: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    woken: list[str] = field(default_factory=list)
    failed: list[BaseException] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def free(self, cluster: str) -> dict[str, int]:
        view = self.reader.views(self.now()).get(cluster)
        if view is None:
            return {}
        return {each.name: each.free.get("nvidia.com/gpu", 0) // 10**9 for each in view.nodes}


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(members_reader, "_TURN_SECONDS", 0.1)
    faults = Faults()
    async with AsyncExitStack() as stack:
        members, there = {}, {}
        for name in ("east", "west"):
            members[name] = await stack.enter_async_context(
                ApiServer(name=name, crds=[HYPERNODE_CRD] if name == "east" else [])
            )
            path = members[name].kubeconfig(tmp_path / name)
            there[name] = await stack.enter_async_context(Kube.connect(kubeconfig=path))
            await make(there[name], NODES, node(f"{name}-1"))
        server = await stack.enter_async_context(
            ApiServer(
                crds=control_plane_definitions(),
                connectors={SUBRESOURCE: FaultyProxy(members, faults)},
            )
        )
        kube = await stack.enter_async_context(
            Kube.connect(kubeconfig=server.kubeconfig(tmp_path / "karmada"))
        )
        clusters = Informer(kube, CLUSTERS)
        found: dict[str, World] = {}
        reader = Members(
            kube,
            clusters,
            nodes=True,
            now=lambda: found["it"].now(),
            freed=lambda name: found["it"].freed.append(name),
            shown=lambda jobs: found["it"].shown.extend(jobs),
            wake=lambda key: found["it"].woken.append(key),
            faulty=lambda error, _of: found["it"].failed.append(error),
        )
        found["it"] = made = World(kube, members, there, reader, faults)
        tasks = [asyncio.ensure_future(clusters.run()), asyncio.ensure_future(reader.run())]
        for name in members:
            await join(kube, name)
        yield made
        await cancel(tasks)
        assert made.failed == []


HYPERNODE_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "hypernodes.topology.volcano.sh"},
    "spec": {
        "group": HYPERNODES.group,
        "scope": "Cluster",
        "names": {"plural": "hypernodes", "kind": "HyperNode", "singular": "hypernode"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


async def join(kube: Kube, name: str) -> None:
    await kube.create(CLUSTERS, new_object(CLUSTERS, name, spec={"syncMode": "Push"}))
    await kube.patch(CLUSTERS, name, {"status": READY}, kind=PatchType.MERGE, subresource="status")


async def make(kube: Kube, resource: Resource, obj: dict[str, Any]) -> None:
    kind = resource.head
    await kube.create(resource, {**kind, **obj})


async def end(kube: Kube, name: str) -> None:
    await kube.raw("DELETE", PODS.path("default", name), params={"gracePeriodSeconds": "0"})


def on(name: str, where: str, gpus: int = 1, **more: Any) -> dict[str, Any]:
    made = pod(name, where, gpus, **more)
    del made["metadata"]["ownerReferences"]
    made["spec"]["containers"][0]["image"] = "x"
    return made


async def test_nodes_pods_and_hypernodes_are_known_and_their_changes(world: World) -> None:
    await until(lambda: world.free("east") == {"east-1": 8})
    await until(lambda: world.free("west") == {"west-1": 8})
    east = world.there["east"]
    await make(east, PODS, on("a", "east-1", 3))
    await until(lambda: world.free("east") == {"east-1": 5})
    await make(east, NODES, node("east-2", 4))
    spec = {
        "tier": 1,
        "members": [{"type": "Node", "selector": {"exactMatch": {"name": "east-2"}}}],
    }
    await make(east, HYPERNODES, {"metadata": {"name": "s1"}, "spec": spec})
    await until(lambda: world.free("east") == {"east-1": 5, "east-2": 4})

    def hypernodes() -> list[tuple[str, frozenset[str]]]:
        view = world.reader.views(world.now())["east"]
        return [(each.name, each.nodes) for each in view.hypernodes]

    await until(lambda: hypernodes() == [("s1", frozenset({"east-2"}))])
    cordon = {"spec": {"unschedulable": True}}
    await east.patch(NODES, "east-2", cordon, kind=PatchType.MERGE)

    def states() -> list[NodeState]:
        return [each.state for each in world.reader.views(world.now())["east"].nodes]

    await until(lambda: states() == [NodeState.READY, NodeState.CORDONED])
    await until(lambda: not world.reader._due)  # the cordon was reported
    world.freed.clear()
    await end(east, "a")
    await until(lambda: world.free("east")["east-1"] == 8)
    await until(lambda: world.freed)
    assert set(world.freed) == {"east"}
    shown = world.reader.state(world.now())
    assert shown["east"]["nodes"]["east-2"]["state"] == "Cordoned"
    absent = {"hypernodes.topology.volcano.sh", "podgroups.scheduling.volcano.sh"}
    assert shown["west"]["errors"].keys() == absent


def left(world: World, cluster: str = "east", lost: timedelta = timedelta(minutes=5)) -> int | None:
    record = JobStatus(name="hj-a-0", replicated_job="a", index=0, cluster=cluster)
    found = world.reader.pods_left("default", {"hj-a-0": record}, world.now(), lost=lost)
    return found.get("hj-a-0")


def stands(world: World, *, cluster: str = "east", made: bool = True) -> Observed:
    """Return a pass of a HyperJob whose vcjob was created now, or is gone."""
    record = {"name": "hj-a-0", "replicatedJob": "a", "index": 0, "cluster": cluster}
    raw = job("hj-a-0")
    raw["metadata"]["creationTimestamp"] = rfc3339(world.now())
    status = {"jobs": [record]}
    return observed(hyperjob(status=status), *([raw] if made else []), now=world.now())


async def beat(world: World, cluster: str, *, seconds: float) -> None:
    """Let a kubelet of a member report its node so many seconds from now."""
    then = rfc3339(world.now() + timedelta(seconds=seconds))
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": then}
    patch = {"status": {"conditions": [ready]}}
    kube = world.there[cluster]
    await kube.patch(NODES, f"{cluster}-1", patch, kind=PatchType.MERGE, subresource="status")


async def test_no_pod_is_believed_after_pods_of_that_vcjob_or_a_later_event_were_shown(
    world: World,
) -> None:
    await until(lambda: world.free("east") and world.free("west"))
    await make(world.there["west"], PODS, on("w-0", "west-1", job="hj-a-0"))
    await until(lambda: left(world) == 1)
    await end(world.there["west"], "w-0")
    await until(lambda: left(world) is None)  # that pod was of another cluster's vcjob
    world.reader.planned(stands(world))
    assert left(world) is None
    world.reader.planned(stands(world, made=False))
    await beat(world, "west", seconds=60)
    await beat(world, "east", seconds=1)
    await until(lambda: world.reader._members["west"].fold.latest > world.now())
    await until(lambda: world.reader._members["east"].fold.latest is not None)
    assert left(world) is None
    await beat(world, "east", seconds=10)
    await until(lambda: left(world) == 0)


async def test_the_end_of_the_last_pod_of_a_sub_job_requests_a_pass(world: World) -> None:
    await until(lambda: world.free("east"))
    world.reader.planned(stands(world))
    assert left(world) is None
    for name in ("w-0", "w-1"):
        await make(world.there["east"], PODS, on(name, "east-1", job="hj-a-0"))
    await until(lambda: left(world) == 2 and world.shown != [])
    assert set(world.shown) == {"default/hj-a-0"}
    assert world.woken == []
    for name in ("w-0", "w-1"):
        await end(world.there["east"], name)
    await until(lambda: world.woken)
    assert left(world) == 0
    assert world.woken == ["default/hj"]
    world.reader.forget("default/hj")


async def test_a_vcjob_with_pods_is_a_stray_until_a_pass_has_its_hyperjob(world: World) -> None:
    await make(world.there["east"], PODS, on("w-0", "east-1", job="hj-a-0"))
    await until(lambda: world.reader.strays() == {"default/hj-a-0"})
    world.reader.planned(stands(world, made=False))
    assert world.reader.strays() == set()
    world.reader.forget("default/hj")
    assert world.reader.strays() == {"default/hj-a-0"}


async def test_pods_on_a_cluster_that_counts_as_lost_are_not_waited_for(world: World) -> None:
    await until(lambda: world.free("east"))
    await make(world.there["east"], PODS, on("w-0", "east-1", job="hj-a-0"))
    await until(lambda: left(world) == 1)
    gone = with_conditions({}, now=wire_now(), Ready=("False", "ClusterNotReachable", "no answer"))
    body = {"status": gone}
    await world.kube.patch(CLUSTERS, "east", body, kind=PatchType.MERGE, subresource="status")
    await until(lambda: not left(world, lost=timedelta()))
    assert left(world) == 1, "it may come back, and its pods with it"


async def test_the_command_line_reads_the_nodes_that_the_reader_sees(world: World) -> None:
    await make(world.there["east"], NODES, node("east-2"))
    await until(lambda: len(world.free("east")) == 2)
    await until(lambda: bool(world.free("west")))
    world.faults.refuses.add("west")
    views, errors = await views_of(world.kube, ["east", "west"])
    assert views["east"].nodes == world.reader.views(world.now())["east"].nodes
    assert list(errors) == ["west"]


def refused_event(name: str, job: str, words: str, **more: Any) -> dict[str, Any]:
    """Build Volcano's Event about a pod that the member's API server refuses."""
    at = rfc3339(utc_now())
    about = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job,
        "namespace": "default",
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": about,
        "reason": "FailedCreate",
        "type": "Warning",
        "message": words,
        "firstTimestamp": at,
        "lastTimestamp": at,
        **more,
    }


async def test_the_words_of_a_member_that_refuses_pods_are_known(world: World) -> None:
    east, words = world.there["east"], "pods is forbidden: exceeded quota: team"
    await until(lambda: world.free("east") == {"east-1": 8})
    await make(east, CORE_EVENTS, refused_event("other", "hj-g-0", "x", reason="Scheduled"))
    await make(east, CORE_EVENTS, refused_event("refused", "hj-g-0", words))
    record = JobStatus(name="hj-g-0", replicated_job="g", index=0, cluster="east")

    def told() -> list[str]:
        found = world.reader.told(MemberFold.refused, "default", {"hj-g-0": record})
        return [each.message for each in found.values()]

    await until(lambda: told() == [words])
    entry = {"name": "hj-g-0", "replicatedJob": "g", "index": 0, "cluster": "east"}
    (job,) = summarised({"metadata": {"name": "hj"}, "spec": {}, "status": {"jobs": [entry]}}).jobs
    read = await refusals_of_all(world.kube, "default", [job])
    assert [each.message for each in read.values()] == [words]
    world.faults.refuses.add("east")
    assert await refusals_of_all(world.kube, "default", [job]) == {}
    world.faults.refuses.discard("east")
    await east.delete(CORE_EVENTS, "refused", namespace="default")
    await until(lambda: told() == [])
