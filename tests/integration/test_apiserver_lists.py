"""Lists of the embedded API server: pages, versions, representations, selectors."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hyperjob_sandbox.apiserver import ApiServer
from tests.support.rawapi import GADGET_CRD, GADGETS, RawApi, connected, gadget


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(crds=[GADGET_CRD]) as server:
        yield server


@pytest.fixture
async def api(server: ApiServer, tmp_path: Path) -> AsyncIterator[RawApi]:
    async with connected(server, tmp_path) as api:
        for number in range(5):
            await api.post(GADGETS, gadget(f"g{number}", labels={"odd": str(number % 2)}))
        yield api


def names(body: dict) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


async def test_pages_together_are_the_list_and_carry_the_version_of_the_first(api: RawApi) -> None:
    first = await api.get(f"{GADGETS}?limit=2")
    assert names(first.body) == ["g0", "g1"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    await api.merge(f"{GADGETS}/g4", {"spec": {"size": 9}})
    token = first.body["metadata"]["continue"]
    rest = await api.get(f"{GADGETS}?limit=10&continue={token}")
    assert names(rest.body) == ["g2", "g3", "g4"]
    assert rest.version == first.version
    assert rest.body["metadata"]["continue"] == ""
    async with api.watch(f"{GADGETS}?resourceVersion={rest.version}") as events:
        assert await events.names(1) == [("MODIFIED", "g4")]


async def test_secrets_can_be_selected_by_type(api: RawApi) -> None:
    path = "/api/v1/namespaces/default/secrets"
    await api.post(path, {"metadata": {"name": "a"}, "stringData": {"k": "v"}})
    await api.post(path, {"metadata": {"name": "h"}, "type": "helm.sh/release.v1"})
    answer = await api.get(f"{path}?fieldSelector=type%3DOpaque")
    assert names(answer.body) == ["a"]
    assert answer.body["items"][0]["data"] == {"k": "dg=="}
