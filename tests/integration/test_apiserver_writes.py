"""Writes to the embedded API server: bodies, field validation, generations, races, dry runs."""

from hyperjob_sandbox.apiserver.server import ApiServer
from tests.support.rawapi import GADGETS, RawApi, gadget


async def test_a_long_generated_name_is_cut_to_63(api: RawApi) -> None:
    body = {**gadget(""), "metadata": {"generateName": "x" * 80}}
    name = (await api.post(GADGETS, body)).body["metadata"]["name"]
    assert len(name) == 63


async def test_writing_what_is_there_changes_nothing(api: RawApi) -> None:
    created = await api.post(GADGETS, gadget("a"))
    same = await api.merge(f"{GADGETS}/a", {"spec": {"size": 3}})
    assert same.version == created.version
    replaced = await api.put(f"{GADGETS}/a", created.body)
    assert replaced.version == created.version


async def test_a_body_over_three_mebibytes_is_too_large(api: RawApi) -> None:
    body = gadget("a", spec={"title": "x" * (3 * 1024 * 1024)})
    answer = await api.post(GADGETS, body)
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_system_fields_are_the_servers(api: RawApi) -> None:
    meta = {
        "uid": "mine",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "generation": 7,
        "deletionTimestamp": "2001-01-01T00:00:00Z",
    }
    created = (await api.post(GADGETS, gadget("a", **meta))).body["metadata"]
    assert created["uid"] != "mine"
    assert created["generation"] == 1
    assert not created["creationTimestamp"].startswith("2001")
    assert "deletionTimestamp" not in created


async def test_requests_are_counted_by_kubernetes_verbs(api: RawApi, server: ApiServer) -> None:
    before = server.metrics.by_verb.copy()
    await api.post(GADGETS, gadget("a"))
    await api.get(f"{GADGETS}/a")
    await api.merge(f"{GADGETS}/a/status", {"status": {"ready": 1}})
    await api.get(f"{GADGETS}?watch=true&timeoutSeconds=1")
    await api.delete(GADGETS)
    assert server.metrics.by_verb - before == {
        ("create", "gadgets", ""): 1,
        ("get", "gadgets", ""): 1,
        ("patch", "gadgets", "status"): 1,
        ("watch", "gadgets", ""): 1,
        ("deletecollection", "gadgets", ""): 1,
    }
    metrics = (await api.get("/metrics")).body
    labels = 'group="test.example.dev",resource="gadgets",scope="resource",subresource="status"'
    assert f'code="200",component="apiserver",dry_run="",{labels},verb="PATCH"' in metrics
