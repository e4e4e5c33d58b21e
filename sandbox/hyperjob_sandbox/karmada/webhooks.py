"""The webhooks of Karmada, Volcano Global and Volcano: one HTTPS server with its own authority."""

import base64
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from typing import Final
from uuid import uuid4

import jsonpatch
import orjson
import yaml
from aiohttp import web

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from hyperjob_sandbox.apiserver.transport.pki import Authority
from hyperjob_sandbox.background import Part
from hyperjob_sandbox.karmada.interpreter import is_vcjob
from hyperjob_sandbox.karmada.policies import default_policy
from hyperjob_sandbox.member.jobadmission import default_job, validate_create, validate_update
from hyperjob_sandbox.objects import FIELD_MANAGER

log = logging.getLogger(__name__)

ReviewHandler = Callable[[Object], Object]
"""Makes the response of an AdmissionReview, except its uid, of the request."""
_CLOSE_SECONDS: Final = 1.0
_RESOURCES: Final = {each.kind: each for each in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}


class WebhookServer(Part):
    """A server on a free port of 127.0.0.1; `answers` maps a path to what decides there."""

    def __init__(self) -> None:
        super().__init__()
        self._authority = Authority("sandbox-webhooks", hosts=())
        self.answers: dict[str, ReviewHandler] = {}
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=_CLOSE_SECONDS)

    async def _set_up(self, stack: AsyncExitStack) -> None:
        await self._runner.setup()
        stack.push_async_callback(self._runner.cleanup)
        context = self._authority.server_context()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()

    def client_config(self, path: str) -> Object:
        """Return the clientConfig with which an API server reaches a path."""
        bundle = base64.b64encode(self._authority.ca.certificate).decode()
        port = self._runner.addresses[0][1]
        return {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        decide = self.answers.get(request.path)
        if request.method != "POST" or decide is None:
            return web.Response(status=404)
        body = orjson.dumps(answer(orjson.loads(await request.read()), decide))
        return web.Response(body=body, content_type="application/json")


@asynccontextmanager
async def registered(
    kube: Kube, server: WebhookServer, queues: Informer, *products: str, prefix: str = ""
) -> AsyncIterator[None]:
    """Register the webhooks of products in an API server for the length of a block.

    `queues` are those of the cluster; all paths on the server start with `prefix`.
    """
    answers = {
        "/mutate-policy": defaulting(_policy),
        "/resourcebindings/mutate": mutate_binding,
        "/jobs/mutate": defaulting(default_job),
        "/jobs/validate": validate_job(queues),
    }
    server.answers |= {f"{prefix}{path}": decide for path, decide in answers.items()}
    shipped = yaml.safe_load((files(__package__) / "registrations.yaml").read_bytes())
    configurations = [each for product in products for each in shipped[product]]
    for each in configurations:
        for webhook in each["webhooks"]:
            webhook["clientConfig"] = server.client_config(prefix + webhook["clientConfig"]["url"])
        await kube.apply(_RESOURCES[each["kind"]], each, field_manager=FIELD_MANAGER)
    try:
        yield
    finally:  # an API server that goes on must not call a server that is gone
        for each in configurations:
            name = each["metadata"]["name"]
            try:
                await kube.delete(_RESOURCES[each["kind"]], name)
            except KubeError as failure:
                log.info("%s stays: %s", name, failure)


def answer(review: Object, decide: ReviewHandler) -> Object:
    """Return the AdmissionReview that answers another one."""
    request: Object = review["request"]
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **decide(request)},
    }


def defaulting(default: Callable[[Object], Object]) -> ReviewHandler:
    """Return the review that gives an object its defaults."""

    def decide(request: Object) -> Object:
        patch: list[Object] = jsonpatch.make_patch(
            request["object"], default(request["object"])
        ).patch
        return _patch(patch) if patch else {"allowed": True}

    return decide


def _policy(policy: Object) -> Object:
    return default_policy(policy, permanent_id=str(uuid4()))


def mutate_binding(request: Object) -> Object:
    """Suspend the scheduling of a new vcjob's binding; replaces all of its suspension."""
    spec: Object = request["object"]["spec"]
    if (spec.get("suspension") or {}).get("scheduling") or not is_vcjob(spec["resource"]):
        return {"allowed": True}
    return _patch([{"op": "add", "path": "/spec/suspension", "value": {"scheduling": True}}])


def validate_job(queues: Informer) -> ReviewHandler:
    """Return the validation of vcjobs against a cluster's queues."""

    def decide(request: Object) -> Object:
        job: Object = request["object"]
        if request["operation"] == "UPDATE":
            reason = validate_update(job, request["oldObject"])
        else:
            name = str((job.get("spec") or {}).get("queue") or "default")
            reason = validate_create(job, queue=queues.get(name))
        return {"allowed": False, "status": {"message": reason}} if reason else {"allowed": True}

    return decide


def _patch(operations: list[Object]) -> Object:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(orjson.dumps(operations)).decode(),
    }
