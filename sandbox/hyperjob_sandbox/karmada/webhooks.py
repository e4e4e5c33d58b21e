"""The webhooks of Karmada, Volcano Global and Volcano: one HTTPS server with its own authority.

The webhooks are real: any API server, embedded or not, calls them over TLS in the order of the
configurations' names. They never listen beyond 127.0.0.1. HyperJob's webhook has no part in this
module.
"""

import base64
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Final
from uuid import uuid4

import jsonpatch
import orjson
import yaml
from aiohttp import web

from certs.x509 import issue_ca, issue_serving
from hyperjob.api.meta import Object
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError
from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from hyperjob_sandbox.apiserver.transport.pki import load_pair
from hyperjob_sandbox.background import Part
from hyperjob_sandbox.karmada.interpreter import is_vcjob
from hyperjob_sandbox.karmada.policies import default_policy
from hyperjob_sandbox.member.jobadmission import default_job, validate_create, validate_update
from hyperjob_sandbox.objects import FIELD_MANAGER

log = logging.getLogger(__name__)

ReviewHandler = Callable[[Object], Object]
"""Makes the response of an AdmissionReview, except its uid, of the request."""
_LIFETIME: Final = timedelta(days=365)
_CLOSE_SECONDS: Final = 1.0
_RESOURCES: Final = {each.kind: each for each in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}


class WebhookServer(Part):
    """An aiohttp server on a free port of 127.0.0.1, an async context manager.

    `answers` maps a path to what decides there; more may be added while it runs.
    """

    def __init__(self) -> None:
        super().__init__()
        now = datetime.now(UTC)
        self._ca = issue_ca(common_name="sandbox-webhooks", lifetime=_LIFETIME, now=now)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        serving = issue_serving(self._ca, names=["127.0.0.1"], lifetime=_LIFETIME, now=now)
        load_pair(self._context, serving)
        self.answers: dict[str, ReviewHandler] = {}
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=_CLOSE_SECONDS)

    async def _set_up(self, stack: AsyncExitStack) -> None:
        await self._runner.setup()
        stack.push_async_callback(self._runner.cleanup)
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context).start()

    def client_config(self, path: str) -> Object:
        """Return the clientConfig with which an API server reaches a path."""
        bundle = base64.b64encode(self._ca.certificate).decode()
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
        "/mutate-policy": mutate_policy,
        "/resourcebindings/mutate": mutate_binding,
        "/jobs/mutate": mutate_job,
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


def mutate_policy(request: Object) -> Object:
    """Default a policy as Karmada's webhook does."""
    policy: Object = request["object"]
    return _patched(policy, default_policy(policy, permanent_id=str(uuid4())))


def mutate_binding(request: Object) -> Object:
    """Suspend the scheduling of a new vcjob's binding; replaces all of its suspension."""
    spec: Object = request["object"]["spec"]
    if (spec.get("suspension") or {}).get("scheduling") or not is_vcjob(spec["resource"]):
        return {"allowed": True}
    return _patch([{"op": "add", "path": "/spec/suspension", "value": {"scheduling": True}}])


def mutate_job(request: Object) -> Object:
    """Default a new vcjob as Volcano does."""
    return _patched(request["object"], default_job(request["object"]))


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


def _patched(old: Object, new: Object) -> Object:
    operations: list[Object] = jsonpatch.make_patch(old, new).patch
    return _patch(operations) if operations else {"allowed": True}


def _patch(operations: list[Object]) -> Object:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(orjson.dumps(operations)).decode(),
    }
