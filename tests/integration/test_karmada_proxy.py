"""Through `clusters/NAME/proxy` one reads and writes in a member as in the member itself."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest

from hyperjob.client.members import log_path
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import NotFound, Unavailable
from hyperjob_core.kube.resources import PODS, proxied
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.karmada.definitions import control_plane_definitions
from hyperjob_sandbox.karmada.proxy import SUBRESOURCE, ClusterProxy
from tests.support.rawlog import raw_lines

pytestmark = pytest.mark.scenario

POD: dict[str, Any] = {
    **PODS.head,
    "metadata": {"name": "w", "namespace": "default", "labels": {"a": "b"}},
    "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]},
}


class Pair:
    def __init__(self, member: ApiServer, there: Kube, kube: Kube) -> None:
        self.member, self.there, self.kube = member, there, kube

    async def set_state(self, **state: Any) -> None:
        status = {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]}
        await self.there.patch(
            PODS,
            "w",
            {"status": status},
            kind=PatchType.MERGE,
            namespace="default",
            subresource="status",
        )


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        member = await stack.enter_async_context(ApiServer(name="east"))
        there = await stack.enter_async_context(
            Kube.connect(kubeconfig=member.kubeconfig(tmp_path / "east"))
        )
        server = await stack.enter_async_context(
            ApiServer(
                crds=control_plane_definitions(),
                connectors={SUBRESOURCE: ClusterProxy({"east": member})},
            )
        )
        kube = await stack.enter_async_context(
            Kube.connect(kubeconfig=server.kubeconfig(tmp_path / "karmada"), time_limit=5)
        )
        await there.create(PODS, POD)
        yield Pair(member, there, kube)


async def test_lists_with_selectors_are_the_members(pair: Pair) -> None:
    path = proxied("east", PODS.path("default"))
    found = (await pair.kube.raw("GET", path, params={"labelSelector": "a=b"})).json()
    assert [item["metadata"]["name"] for item in found["items"]] == ["w"]
    none = (await pair.kube.raw("GET", path, params={"labelSelector": "a=c"})).json()
    assert none["items"] == []


async def test_writes_reach_the_member(pair: Pair) -> None:
    path = proxied("east", PODS.path("default", "w"))
    await pair.kube.raw("DELETE", path, params={"gracePeriodSeconds": "0"})
    with pytest.raises(NotFound):
        await pair.there.get(PODS, "w", namespace="default")


@pytest.mark.parametrize(
    ("cluster", "path", "said"),
    [
        ("west", "/version", 'clusters.cluster.karmada.io "west" not found'),
        ("east", "/api/v1/namespaces/default/pods/none", 'pods "none" not found'),
    ],
)
async def test_what_is_not_there_is_said_by_whom_it_concerns(
    pair: Pair, cluster: str, path: str, said: str
) -> None:
    with pytest.raises(NotFound) as refused:
        await pair.kube.raw("GET", proxied(cluster, path))
    assert refused.value.message == said


async def test_a_member_that_is_lost_is_told_as_unavailable(pair: Pair) -> None:
    await pair.member.stop_listening()
    with pytest.raises(Unavailable, match="error trying to reach service"):
        await pair.kube.raw("GET", proxied("east", "/version"))


async def test_who_stops_listening_ends_the_stream_in_the_member_too(pair: Pair) -> None:
    await pair.set_state(running={"startedAt": "2026-01-01T00:00:00Z"})
    stream = raw_lines(pair.kube, log_path("east", "default", "w"), params={"follow": "true"})
    async with aclosing(stream) as lines:
        await anext(lines)
    # a second one is served all the same, and the servers stop in time at the end of the test
    again = raw_lines(pair.kube, log_path("east", "default", "w"), params={"tailLines": "1"})
    async with aclosing(again) as lines:
        assert [line async for line in lines]
