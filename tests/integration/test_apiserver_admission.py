"""Webhooks of the embedded API server over real TLS: who is asked, what they may do."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme
from aiohttp import web

from hyperjob_sandbox.apiserver import ApiServer
from tests.support.rawapi import GADGET_CRD, GADGETS, RawApi, connected, gadget

ROOT = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{ROOT}/mutatingwebhookconfigurations"
VALIDATING = f"{ROOT}/validatingwebhookconfigurations"
Respond = Callable[[dict[str, Any]], dict[str, Any]]


def allow(request: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": True}


def patch(*operations: dict[str, Any]) -> Respond:
    encoded = base64.b64encode(orjson.dumps(operations)).decode()

    def respond(request: dict[str, Any]) -> dict[str, Any]:
        return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}

    return respond


@dataclass
class Webhook:
    """A webhook over TLS that notes what it is asked."""

    url: str = ""
    ca: str = ""
    respond: Respond = allow
    requests: list[dict[str, Any]] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    hold: asyncio.Event | None = None

    async def handle(self, request: web.BaseRequest) -> web.Response:
        review = orjson.loads(await request.read())["request"]
        self.requests.append(review)
        self.entered.set()
        if self.hold is not None:
            await self.hold.wait()
        answer = {"uid": review["uid"], **self.respond(review)}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    def configuration(self, kind: str, **more: Any) -> dict[str, Any]:
        rules = {
            "apiGroups": ["test.example.dev"],
            "apiVersions": ["v1"],
            "resources": ["gadgets"],
            "operations": ["*"],
        }
        hook = {
            "name": "hook.test.example.dev",
            "clientConfig": {"url": self.url, "caBundle": self.ca},
            "rules": [rules],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
            **more,
        }
        return {"kind": kind, "metadata": {"name": "hooks"}, "webhooks": [hook]}


@pytest.fixture
async def webhook() -> AsyncIterator[Webhook]:
    hook = Webhook()
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = web.Server(hook.handle)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0, ssl=context)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(listener.wait_closed)
        stack.push_async_callback(server.shutdown, 0.1)
        stack.callback(listener.close)
        hook.url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}/hook"
        hook.ca = base64.b64encode(authority.cert_pem.bytes()).decode()
        yield hook


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[RawApi]:
    async with (
        ApiServer(crds=[GADGET_CRD]) as server,
        connected(server, tmp_path) as api,
    ):
        yield api


async def configure(api: RawApi, path: str, body: dict[str, Any]) -> None:
    answer = await api.post(path, body)
    assert answer.code == 201, answer.body


async def test_a_mutation_is_defaulted_validated_and_stored(api: RawApi, webhook: Webhook) -> None:
    webhook.respond = patch({"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}})
    await configure(api, MUTATING, webhook.configuration("MutatingWebhookConfiguration"))
    created = await api.post(GADGETS, gadget("a"))
    assert created.body["metadata"]["labels"] == {"by": "hook"}
    (request,) = webhook.requests
    assert (request["operation"], request["name"], request["namespace"]) == (
        "CREATE",
        "a",
        "default",
    )
    assert request["userInfo"]["username"] == "kubernetes-admin"
    assert request["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert request["object"]["spec"] == {"size": 3}
    assert "uid" not in request["object"]["metadata"]
    webhook.respond = patch({"op": "replace", "path": "/spec/size", "value": 0})
    refused = await api.post(GADGETS, gadget("b"))
    assert refused.code == 422
    assert "spec.size in body should be greater than or equal to 1" in refused.body["message"]


async def test_an_update_shows_both_objects_and_a_status_write_its_path(
    api: RawApi, webhook: Webhook
) -> None:
    created = await api.post(GADGETS, gadget("a"))
    configuration = webhook.configuration("ValidatingWebhookConfiguration")
    configuration["webhooks"][0]["rules"][0]["resources"] = ["gadgets/*"]
    configuration["webhooks"][0]["rules"][0]["resources"].append("gadgets")
    await configure(api, VALIDATING, configuration)
    await api.merge(f"{GADGETS}/a?fieldManager=me", {"spec": {"size": 4}})
    await api.merge(f"{GADGETS}/a/status", {"status": {"ready": 1}})
    update, status = webhook.requests
    assert update["object"]["spec"] == {"size": 4}
    assert update["oldObject"]["spec"] == {"size": 3}
    assert update["object"]["metadata"]["resourceVersion"] == created.version
    assert update["options"] == {
        "kind": "PatchOptions",
        "apiVersion": "meta.k8s.io/v1",
        "fieldManager": "me",
    }
    assert (status["subResource"], status["object"]["status"]) == ("status", {"ready": 1})


async def test_a_removed_configuration_asks_nobody(api: RawApi, webhook: Webhook) -> None:
    await configure(api, MUTATING, webhook.configuration("MutatingWebhookConfiguration"))
    await api.delete(f"{MUTATING}/hooks")
    await api.post(GADGETS, gadget("a"))
    assert webhook.requests == []


async def test_a_patch_that_loses_the_race_during_admission_is_made_again(
    api: RawApi, webhook: Webhook
) -> None:
    await api.post(GADGETS, gadget("a"))
    await configure(api, VALIDATING, webhook.configuration("ValidatingWebhookConfiguration"))
    patches = [{"metadata": {"labels": {f"k{n}": "v"}}} for n in range(3)]
    answers = await asyncio.gather(*(api.merge(f"{GADGETS}/a", body) for body in patches))
    assert {answer.code for answer in answers} == {200}
    labels = (await api.get(f"{GADGETS}/a")).body["metadata"]["labels"]
    assert set(labels) == {"k0", "k1", "k2"}


async def test_a_webhook_that_cannot_be_compiled_is_refused(api: RawApi, webhook: Webhook) -> None:
    kind = "ValidatingWebhookConfiguration"
    condition = {"name": "bad", "expression": "nobody.name == 'x'"}
    refused = await api.post(VALIDATING, webhook.configuration(kind, matchConditions=[condition]))
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert "webhooks: Invalid value" in refused.body["message"]
