"""Lists of the embedded API server: pages, versions, representations, selectors."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hyperjob_sandbox.apiserver import ApiServer
from tests.support.rawapi import GADGET_CRD, GADGETS, RawApi, connected, gadget

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


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


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("continue=nonsense", 400, "continue key is not valid"),
        ("resourceVersion=abc", 500, "strconv.ParseUint"),
        ("resourceVersion=99999999", 504, "Too large resource version"),
        ("labelSelector=a%3D%3D%3Db", 400, "unable to parse requirement"),
        ("fieldSelector=spec.size%3D3", 400, "field label not supported: spec.size"),
    ],
)
async def test_a_bad_list_request_says_what_is_wrong(
    api: RawApi, query: str, code: int, text: str
) -> None:
    answer = await api.get(f"{GADGETS}?{query}")
    assert answer.code == code
    assert text in answer.body["message"]


async def test_selected_lists_do_not_count_what_remains(api: RawApi) -> None:
    answer = await api.get(f"{GADGETS}?labelSelector=odd%3D0&limit=1")
    assert names(answer.body) == ["g0"]
    assert "remainingItemCount" not in answer.body["metadata"]
    assert answer.body["metadata"]["continue"]


async def test_items_of_a_builtin_list_carry_no_kind(api: RawApi) -> None:
    await api.post(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "b"}})
    answer = await api.get(CONFIG_MAPS)
    assert answer.body["kind"] == "ConfigMapList"
    assert list(answer.body["items"][0]) == ["metadata", "data"]
    watched = await api.get(f"{CONFIG_MAPS}/c")
    assert (watched.body["kind"], watched.body["apiVersion"]) == ("ConfigMap", "v1")


async def test_a_table_carries_metadata_or_whole_objects(api: RawApi) -> None:
    with_meta = await api.get(GADGETS, headers=TABLE)
    assert with_meta.body["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = await api.get(f"{GADGETS}?includeObject=Object", headers=TABLE)
    assert whole.body["rows"][0]["object"]["spec"] == {"size": 3}


async def test_what_cannot_be_written_is_not_acceptable(api: RawApi) -> None:
    answer = await api.get(GADGETS, headers={"Accept": "text/html"})
    assert answer.code == 406
    json = await api.get(CONFIG_MAPS, headers={"Accept": "application/vnd.kubernetes.protobuf"})
    assert json.body["kind"] == "ConfigMapList"


async def test_secrets_can_be_selected_by_type(api: RawApi) -> None:
    path = "/api/v1/namespaces/default/secrets"
    await api.post(path, {"metadata": {"name": "a"}, "stringData": {"k": "v"}})
    await api.post(path, {"metadata": {"name": "h"}, "type": "helm.sh/release.v1"})
    answer = await api.get(f"{path}?fieldSelector=type%3DOpaque")
    assert names(answer.body) == ["a"]
    assert answer.body["items"][0]["data"] == {"k": "dg=="}
