"""Writes to the embedded API server: bodies, field validation, generations, races, dry runs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hyperjob_sandbox.apiserver import ApiServer
from tests.support.rawapi import GADGET_CRD, GADGETS, RawApi, connected, gadget

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = "application/json-patch+json"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(crds=[GADGET_CRD]) as server:
        yield server


@pytest.fixture
async def api(server: ApiServer, tmp_path: Path) -> AsyncIterator[RawApi]:
    async with connected(server, tmp_path) as api:
        yield api


async def test_a_generated_name_is_completed_and_unique(api: RawApi) -> None:
    body = {**gadget(""), "metadata": {"generateName": "run-"}}
    found = {(await api.post(GADGETS, body)).body["metadata"]["name"] for _ in range(5)}
    assert len(found) == 5
    assert all(len(name) == len("run-") + 5 for name in found)


async def test_a_long_generated_name_is_cut_to_63(api: RawApi) -> None:
    body = {**gadget(""), "metadata": {"generateName": "x" * 80}}
    name = (await api.post(GADGETS, body)).body["metadata"]["name"]
    assert len(name) == 63


async def test_the_spec_moves_the_generation_and_status_does_not(api: RawApi) -> None:
    created = await api.post(GADGETS, {**gadget("a"), "status": {"ready": 5}})
    assert created.body["metadata"]["generation"] == 1
    assert "status" not in created.body
    status = await api.merge(f"{GADGETS}/a/status", {"status": {"ready": 2}, "spec": {"size": 9}})
    assert (status.body["spec"]["size"], status.body["metadata"]["generation"]) == (3, 1)
    labels = await api.merge(f"{GADGETS}/a", {"metadata": {"labels": {"x": "y"}}})
    assert labels.body["metadata"]["generation"] == 1
    spec = await api.merge(f"{GADGETS}/a", {"spec": {"size": 4}, "status": {"ready": 7}})
    assert (spec.body["metadata"]["generation"], spec.body["status"]) == (2, {"ready": 2})


async def test_a_status_write_changes_no_metadata_of_a_custom_resource(api: RawApi) -> None:
    await api.post(GADGETS, gadget("a"))
    body = {"metadata": {"labels": {"x": "y"}}, "status": {"ready": 1}}
    answer = await api.merge(f"{GADGETS}/a/status", body)
    assert "labels" not in answer.body["metadata"]


async def test_writing_what_is_there_changes_nothing(api: RawApi) -> None:
    created = await api.post(GADGETS, gadget("a"))
    same = await api.merge(f"{GADGETS}/a", {"spec": {"size": 3}})
    assert same.version == created.version
    replaced = await api.put(f"{GADGETS}/a", created.body)
    assert replaced.version == created.version


async def test_racing_patches_all_win(api: RawApi) -> None:
    await api.post(GADGETS, gadget("a"))
    patches = [{"metadata": {"labels": {f"k{n}": "v"}}} for n in range(10)]
    answers = await asyncio.gather(*(api.merge(f"{GADGETS}/a", patch) for patch in patches))
    assert {answer.code for answer in answers} == {200}
    labels = (await api.get(f"{GADGETS}/a")).body["metadata"]["labels"]
    assert set(labels) == {f"k{n}" for n in range(10)}


async def test_a_patch_with_an_old_version_conflicts(api: RawApi) -> None:
    created = await api.post(GADGETS, gadget("a"))
    await api.merge(f"{GADGETS}/a", {"spec": {"size": 4}})
    stale = {"metadata": {"resourceVersion": created.version}, "spec": {"size": 5}}
    assert (await api.merge(f"{GADGETS}/a", stale)).code == 409
    other = {"metadata": {"uid": "someone-else"}, "spec": {"size": 5}}
    answer = await api.merge(f"{GADGETS}/a", other)
    assert answer.code == 422
    assert "metadata.uid" in [each["field"] for each in answer.body["details"]["causes"]]
    of_status = await api.merge(f"{GADGETS}/a/status", {**other, "status": {"ready": 1}})
    assert (of_status.code, of_status.body["status"]) == (200, {"ready": 1})
    replaced = {**of_status.body, "metadata": {**of_status.body["metadata"], "uid": "someone-else"}}
    assert (await api.put(f"{GADGETS}/a", replaced)).code == 409


async def test_a_put_without_version_replaces_a_builtin_kind_only(api: RawApi) -> None:
    await api.post(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "1"}})
    answer = await api.put(f"{CONFIG_MAPS}/c", {"metadata": {"name": "c"}, "data": {"b": "2"}})
    assert (answer.code, answer.body["data"]) == (200, {"b": "2"})
    await api.post(GADGETS, gadget("a"))
    assert (await api.put(f"{GADGETS}/a", gadget("a"))).code == 422


@pytest.mark.parametrize(
    ("mode", "code", "warned"),
    [("Strict", 400, False), ("Warn", 201, True), ("", 201, True), ("Ignore", 201, False)],
)
async def test_unknown_fields_are_refused_warned_of_or_ignored(
    api: RawApi, mode: str, code: int, *, warned: bool
) -> None:
    query = f"?fieldValidation={mode}" if mode else ""
    answer = await api.post(GADGETS + query, gadget("a", spec={"sise": 1}))
    assert answer.code == code
    text = 'unknown field "spec.sise"'
    if code == 400:
        assert answer.body["message"].endswith(f"strict decoding error: {text}")
    else:
        assert answer.body["spec"] == {"size": 3}
    warnings = answer.headers.getall("Warning", [])
    expected = '299 - "unknown field \\"spec.sise\\""'
    assert warnings == ([expected] if warned else [])


async def test_yaml_bodies_are_read(api: RawApi) -> None:
    body = b"apiVersion: test.example.dev/v1\nkind: Gadget\nmetadata: {name: y}\nspec: {size: 2}\n"
    answer = await api.post(GADGETS, body, media="application/yaml")
    assert answer.body["spec"] == {"size": 2}


@pytest.mark.parametrize(
    ("method", "path", "media", "code"),
    [
        ("POST", GADGETS, "text/plain", 415),
        ("PATCH", f"{GADGETS}/a", "application/json", 415),
        ("PATCH", f"{GADGETS}/a", "application/strategic-merge-patch+json", 415),
        ("PATCH", GADGETS, "application/merge-patch+json", 405),
        ("PUT", GADGETS, "application/json", 405),
        ("POST", "/version", "application/json", 405),
        ("POST", "/apis/test.example.dev/v1/gadgets", "application/json", 405),
        ("DELETE", "/apis/test.example.dev/v1/gadgets", "application/json", 405),
        ("GET", "/apis/test.example.dev/v1/gadgets/a", "application/json", 404),
        ("GET", "/api/v1/namespaces/default/nodes", "application/json", 404),
        ("POST", f"{GADGETS}/a/status", "application/json", 405),
        ("POST", f"{GADGETS}/a/scale", "application/json", 404),
        ("POST", "/apis/test.example.dev/v1/namespaces/default/nothings", "application/json", 404),
    ],
)
async def test_a_request_that_makes_no_sense_here_has_its_code(
    api: RawApi, method: str, path: str, media: str, code: int
) -> None:
    await api.post(GADGETS, gadget("a"))
    assert (await api.call(method, path, {}, media=media)).code == code


async def test_a_body_over_three_mebibytes_is_too_large(api: RawApi) -> None:
    body = gadget("a", spec={"title": "x" * (3 * 1024 * 1024)})
    answer = await api.post(GADGETS, body)
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_dry_run_answers_as_if_and_stores_nothing(api: RawApi) -> None:
    version = (await api.get(GADGETS)).version
    created = await api.post(f"{GADGETS}?dryRun=All", gadget("a"))
    assert (created.code, created.body["spec"]) == (201, {"size": 3})
    assert (await api.get(f"{GADGETS}/a")).code == 404
    await api.post(GADGETS, gadget("b"))
    patched = await api.merge(f"{GADGETS}/b?dryRun=All", {"spec": {"size": 8}})
    assert patched.body["spec"] == {"size": 8}
    assert (await api.get(f"{GADGETS}/b")).body["spec"] == {"size": 3}
    assert (await api.post(f"{GADGETS}?dryRun=All", gadget("b"))).code == 409
    assert int((await api.get(GADGETS)).version) == int(version) + 1


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({"name": "Upper"}, 'metadata.name: Invalid value: "Upper"'),
        ({"name": "a", "labels": {"k": "a b"}}, 'metadata.labels: Invalid value: "a b"'),
        ({"name": "a", "finalizers": ["no spaces here"]}, "metadata.finalizers[0]"),
        (
            {"name": "a", "ownerReferences": [{"name": "x"}]},
            "metadata.ownerReferences[0].apiVersion: Invalid value",
        ),
        ({"name": "a", "annotations": {"k": "x" * 300_000}}, "metadata.annotations: Too long"),
    ],
)
async def test_bad_metadata_is_invalid(api: RawApi, meta: dict[str, Any], text: str) -> None:
    answer = await api.post(GADGETS, {**gadget(""), "metadata": meta})
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert text in answer.body["message"]


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


async def test_a_write_names_its_manager(api: RawApi) -> None:
    agent = {"User-Agent": "trainer/1.0 (linux)"}
    await api.post(GADGETS, gadget("a"), headers=agent)
    ops = [{"op": "replace", "path": "/spec/size", "value": 5}]
    path = f"{GADGETS}/a?fieldManager=tuner"
    answer = await api.call("PATCH", path, ops, media=JSON_PATCH)
    managers = [(e["manager"], e["operation"]) for e in answer.body["metadata"]["managedFields"]]
    assert managers == [("tuner", "Update")] or set(managers) == {
        ("tuner", "Update"),
        ("trainer", "Update"),
    }


async def test_events_of_both_groups_are_one_object(api: RawApi) -> None:
    core = "/api/v1/namespaces/default/events"
    newer = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Gadget", "name": "a", "namespace": "default"},
        "reason": "Did",
        "note": "did it",
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "i",
        "action": "Do",
    }
    assert (await api.post(newer, event)).code == 201
    seen = (await api.get(f"{core}/e")).body
    assert (seen["message"], seen["involvedObject"]["name"]) == ("did it", "a")
    patched = await api.merge(f"{newer}/e", {"series": {"count": 2}, "note": "did it twice"})
    assert patched.body["note"] == "did it twice"
    listed = await api.get(f"{core}?fieldSelector=involvedObject.name%3Da%2Creason%3DDid")
    assert [item["series"]["count"] for item in listed.body["items"]] == [2]


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
