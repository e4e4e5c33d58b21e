"""One HTTPS server with its own authority for the sandbox's webhooks, and their registration.

The webhooks are real: any API server, embedded or not, calls them over TLS in the order of the
configurations' names. It must never listen beyond 127.0.0.1.
"""

import base64
import logging
import ssl
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from types import TracebackType
from typing import Final, Self

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
from hyperjob_sandbox.karmada import reviews
from hyperjob_sandbox.objects import FIELD_MANAGER

log = logging.getLogger(__name__)

_BODY_LIMIT: Final = 7 * 1024 * 1024
_LIFETIME: Final = timedelta(days=365)
_CLOSE_SECONDS: Final = 1.0
_RESOURCES: Final = {each.kind: each for each in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}


class WebhookServer:
    """An aiohttp server on a free port of 127.0.0.1, an async context manager.

    `answers` maps a path to what decides there; more may be added while it runs.
    """

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self._ca = issue_ca(common_name="sandbox-webhooks", lifetime=_LIFETIME, now=now)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        serving = issue_serving(self._ca, names=["127.0.0.1"], lifetime=_LIFETIME, now=now)
        load_pair(self._context, serving)
        self.answers: dict[str, reviews.ReviewHandler] = {}
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=_CLOSE_SECONDS)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    def client_config(self, path: str) -> Object:
        """Return the clientConfig with which an API server reaches a path."""
        bundle = base64.b64encode(self._ca.certificate).decode()
        port = self._runner.addresses[0][1]
        return {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        decide = self.answers.get(request.path)
        if request.method != "POST" or decide is None:
            return web.Response(status=404)
        if (request.content_length or 0) > _BODY_LIMIT:
            return web.Response(status=413)
        try:
            review = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            return web.Response(status=400, text="not JSON")
        body = orjson.dumps(reviews.answer(review, decide))
        return web.Response(body=body, content_type="application/json")


class Registrations:
    """The webhook configurations of some products in one API server, and their answers.

    `queues` are those of the cluster; all paths on the server start with `prefix`.
    """

    def __init__(
        self, kube: Kube, server: WebhookServer, queues: Informer, *products: str, prefix: str = ""
    ) -> None:
        self._kube = kube
        answers = {
            "/mutate-policy": reviews.mutate_policy,
            "/resourcebindings/mutate": reviews.mutate_binding,
            "/jobs/mutate": reviews.mutate_job,
            "/jobs/validate": reviews.validate_job(queues),
        }
        server.answers |= {f"{prefix}{path}": decide for path, decide in answers.items()}
        shipped = yaml.safe_load((files(__package__) / "registrations.yaml").read_bytes())
        self._configurations = [each for product in products for each in shipped[product]]
        for configuration in self._configurations:
            for webhook in configuration["webhooks"]:
                path = prefix + webhook["clientConfig"]["url"]
                webhook["clientConfig"] = server.client_config(path)

    async def register(self) -> None:
        """Apply the configurations, over what an earlier sandbox left."""
        for each in self._configurations:
            await self._kube.apply(_RESOURCES[each["kind"]], each, field_manager=FIELD_MANAGER)

    async def unregister(self) -> None:
        """Delete the configurations, so that no API server calls a server that is gone."""
        for each in self._configurations:
            name = each["metadata"]["name"]
            try:
                await self._kube.delete(_RESOURCES[each["kind"]], name)
            except KubeError as failure:
                log.info("%s stays: %s", name, failure)
