"""One HTTPS server with its own authority for the sandbox's webhooks, and their registration.

The webhooks are real: any API server, embedded or not, calls them over TLS in the order of the
configurations' names. It must never listen beyond 127.0.0.1.
"""

import base64
import logging
import ssl
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

import orjson
from aiohttp import web

from certs.x509 import Pair, issue_ca, issue_serving
from hyperjob.api.meta import Object
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import AlreadyExists, KubeError
from hyperjob.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from hyperjob_sandbox.apiserver.transport.pki import load_pair
from hyperjob_sandbox.karmada.reviews import ReviewHandler, answer

log = logging.getLogger(__name__)

_BODY_LIMIT: Final = 7 * 1024 * 1024
_LIFETIME: Final = timedelta(days=365)
_CLOSE_SECONDS: Final = 1.0


class WebhookServer:
    """An aiohttp server on a free port of 127.0.0.1, an async context manager.

    `answers` maps a path to what decides there; more may be added while it runs.
    """

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self._ca = issue_ca(common_name="sandbox-webhooks", lifetime=_LIFETIME, now=now)
        self._serving = issue_serving(self._ca, names=["127.0.0.1"], lifetime=_LIFETIME, now=now)
        self.answers: dict[str, ReviewHandler] = {}
        self._runner: web.ServerRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=_CLOSE_SECONDS)
        await runner.setup()
        self._runner = runner
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_server_context(self._serving))
        await site.start()
        self._port = runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def client_config(self, path: str) -> Object:
        """Return the clientConfig with which an API server reaches a path."""
        bundle = base64.b64encode(self._ca.certificate).decode()
        return {"url": f"https://127.0.0.1:{self._port}{path}", "caBundle": bundle}

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
        body = orjson.dumps(answer(review, decide))
        return web.Response(body=body, content_type="application/json")


def karmada_configuration(server: WebhookServer) -> Object:
    """Return the registration of Karmada's own defaulting of policies."""
    rule = _rule(
        "policy.karmada.io",
        "v1alpha1",
        ["propagationpolicies", "clusterpropagationpolicies"],
        ["CREATE", "UPDATE"],
    )
    # Without it the detector defaults policies itself, so an outage need stop nothing.
    webhook = _webhook(
        server, "propagationpolicy.karmada.io", "/mutate-policy", rule, failure="Ignore"
    )
    return _configuration(MUTATING_WEBHOOKS, "karmada-mutating-config", webhook)


def volcano_global_configurations(server: WebhookServer) -> list[tuple[Resource, Object]]:
    """Return the registrations of Volcano Global in the control plane."""
    bindings = _webhook(
        server,
        "mutateresourcebindings.volcano.sh",
        "/resourcebindings/mutate",
        _rule("work.karmada.io", "v1alpha2", ["resourcebindings"], ["CREATE"]),
        timeout=3,
    )
    return [
        (
            MUTATING_WEBHOOKS,
            _configuration(
                MUTATING_WEBHOOKS, "volcano-admission-service-resourcebindings-mutate", bindings
            ),
        ),
        *volcano_configurations(server, prefix=""),
    ]


def volcano_configurations(server: WebhookServer, *, prefix: str) -> list[tuple[Resource, Object]]:
    """Return the registrations of Volcano's vcjob webhooks, below a path prefix."""
    mutating = _webhook(
        server,
        "mutatejob.volcano.sh",
        f"{prefix}/jobs/mutate",
        _rule("batch.volcano.sh", "v1alpha1", ["jobs"], ["CREATE"]),
    )
    validating = _webhook(
        server,
        "validatejob.volcano.sh",
        f"{prefix}/jobs/validate",
        _rule("batch.volcano.sh", "v1alpha1", ["jobs"], ["CREATE", "UPDATE"]),
    )
    validating.pop("reinvocationPolicy")
    return [
        (
            MUTATING_WEBHOOKS,
            _configuration(MUTATING_WEBHOOKS, "volcano-admission-service-jobs-mutate", mutating),
        ),
        (
            VALIDATING_WEBHOOKS,
            _configuration(
                VALIDATING_WEBHOOKS, "volcano-admission-service-jobs-validate", validating
            ),
        ),
    ]


async def register(kube: Kube, configurations: Iterable[tuple[Resource, Object]]) -> None:
    """Create the configurations, replacing what an earlier sandbox left."""
    for resource, configuration in configurations:
        try:
            await kube.create(resource, configuration)
        except AlreadyExists:
            live = await kube.get(resource, configuration["metadata"]["name"])
            await kube.replace(resource, {**live, "webhooks": configuration["webhooks"]})


async def unregister(kube: Kube, configurations: Iterable[tuple[Resource, Object]]) -> None:
    """Delete the configurations, so that no API server calls a server that is gone."""
    for resource, configuration in configurations:
        try:
            await kube.delete(resource, configuration["metadata"]["name"])
        except KubeError as error:
            log.info("%s stays: %s", configuration["metadata"]["name"], error)


def _configuration(resource: Resource, name: str, webhook: Object) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


def _webhook(
    server: WebhookServer,
    name: str,
    path: str,
    rule: Mapping[str, object],
    *,
    failure: str = "Fail",
    timeout: int = 10,
) -> Object:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": server.client_config(path),
        "failurePolicy": failure,
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "Never",
        "rules": [dict(rule)],
        "sideEffects": "None",
        "timeoutSeconds": timeout,
    }


def _rule(group: str, version: str, resources: list[str], operations: list[str]) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": resources,
        "operations": operations,
        "scope": "*",
    }


def _server_context(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_pair(context, pair)
    return context
