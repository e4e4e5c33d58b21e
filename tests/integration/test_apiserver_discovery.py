"""What the embedded API server says it serves: discovery, OpenAPI, definitions and versions."""

import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hyperjob_sandbox.apiserver import ApiServer
from tests.support.rawapi import GADGET_CRD, GADGETS, RawApi, connected, gadget

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "conformance" / "discovery.json").read_text()
)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[RawApi]:
    async with (
        ApiServer(crds=[GADGET_CRD]) as server,
        connected(server, tmp_path) as api,
    ):
        yield api


async def listed(api: RawApi) -> dict[str, dict[str, Any]]:
    """Give every resource that discovery lists, by group, version and name, with what is below."""
    versions = ["/api/v1"]
    for group in (await api.get("/apis")).body["groups"]:
        versions += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    found: dict[str, dict[str, Any]] = {}
    for path in versions:
        body = (await api.get(path)).body
        where = body["groupVersion"] if "/" in body["groupVersion"] else f"/{body['groupVersion']}"
        for resource in body["resources"]:
            name, _, below = resource["name"].partition("/")
            if below:
                found[f"{where}/{name}"]["subresources"][below] = resource
            else:
                found[f"{where}/{name}"] = {**resource, "subresources": {}}
    return found


async def test_builtin_kinds_are_listed_as_a_real_server_lists_them(api: RawApi) -> None:
    found = await listed(api)
    served = sorted(set(found) & set(RECORDED))
    assert len(served) > 50
    for name in served:
        ours, real = found[name], RECORDED[name]
        assert ours["kind"] == real["responseKind"], name
        assert ("Namespaced" if ours["namespaced"] else "Cluster") == real["scope"], name
        assert ours["singularName"] == real["singularResource"], name
        for key in ("verbs", "shortNames", "categories"):
            assert ours.get(key) == real.get(key), (name, key)
        for below, sub in ours["subresources"].items():
            assert [sub["kind"], sub["verbs"]] == real["subresources"][below], name


async def test_openapi_documents_are_found_by_their_hash_and_cached(api: RawApi) -> None:
    index = (await api.get("/openapi/v3")).body
    text = index if isinstance(index, dict) else json.loads(index)
    url = text["paths"]["apis/test.example.dev/v1"]["serverRelativeURL"]
    found = await api.get(url)
    schema = found.body["components"]["schemas"]["dev.example.test.v1.Gadget"]
    assert schema["properties"]["spec"]["properties"]["size"]["default"] == 3
    kind = {"group": "test.example.dev", "version": "v1", "kind": "Gadget"}
    assert schema["x-kubernetes-group-version-kind"] == [kind]
    patch = found.body["paths"]["/apis/test.example.dev/v1/namespaces/{namespace}/gadgets/{name}"][
        "patch"
    ]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    again = await api.get(url, headers={"If-None-Match": found.headers["ETag"]})
    assert again.code == 304


async def test_openapi_version_two_describes_no_kind(api: RawApi) -> None:
    found = await api.get("/openapi/v2")
    assert found.headers["Content-Type"].endswith("+protobuf")
    assert found.body == "\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.2B\0"


def two_versions() -> dict[str, Any]:
    definition = copy.deepcopy(GADGET_CRD)
    older = copy.deepcopy(definition["spec"]["versions"][0])
    older |= {"name": "v1alpha1", "storage": False}
    definition["spec"]["versions"].append(older)
    return definition


async def test_a_definition_is_served_in_the_version_that_it_stores(tmp_path: Path) -> None:
    async with (
        ApiServer(crds=[two_versions()]) as server,
        connected(server, tmp_path) as api,
    ):
        group = (await api.get("/apis/test.example.dev")).body
        assert [found["version"] for found in group["versions"]] == ["v1"]
        assert (await api.get(GADGETS)).code == 200
        assert (await api.get(GADGETS.replace("/v1/", "/v1alpha1/"))).code == 404


async def test_a_changed_definition_holds_at_once(api: RawApi) -> None:
    path = f"{CRDS}/gadgets.test.example.dev"
    definition = (await api.get(path)).body
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"]["maximum"] = 4
    assert (await api.put(path, definition)).code == 200
    refused = await api.post(GADGETS, gadget("a", spec={"size": 5}))
    assert "should be less than or equal to 4" in refused.body["message"]


async def test_a_definition_that_could_judge_no_object_is_invalid(api: RawApi) -> None:
    definition = copy.deepcopy(GADGET_CRD)
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = [{"jsonPath": ".spec["}]
    answer = await api.post(CRDS, definition)
    assert answer.code == 422
    assert "JSONPath" in answer.body["message"]
