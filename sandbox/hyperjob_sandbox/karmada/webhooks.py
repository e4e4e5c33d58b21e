"""One HTTPS server with its own authority for the sandbox's webhooks, and their registration.

The webhooks are real: any API server, embedded or not, calls them over TLS in the order of the
configurations' names. It must never listen beyond 127.0.0.1.
"""

import base64
import logging
import ssl
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

import orjson
from aiohttp import web

from certs.x509 import issue_ca, issue_serving
from hyperjob.api.meta import Object
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import AlreadyExists, KubeError
from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from hyperjob_sandbox.apiserver.transport.pki import load_pair
from hyperjob_sandbox.karmada import reviews

log = logging.getLogger(__name__)

Configurations = list[tuple[Resource, Object]]
_BODY_LIMIT: Final = 7 * 1024 * 1024
_LIFETIME: Final = timedelta(days=365)
_CLOSE_SECONDS: Final = 1.0
_VCJOBS: Final = "batch.volcano.sh/v1alpha1/jobs"


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

    def configuration(
        self,
        configuration: str,
        decide: reviews.ReviewHandler,
        path: str,
        targets: str,
        operations: list[str],
        resource: Resource = MUTATING_WEBHOOKS,
        **more: object,
    ) -> tuple[Resource, Object]:
        """Answer at a path from now on, and return the configuration that registers it.

        `targets` is `GROUP/VERSION/PLURAL,…`; `more` are fields of the webhook, its name at least.
        """
        self.answers[path] = decide
        group, version, plurals = targets.split("/")
        if resource == MUTATING_WEBHOOKS:
            more = {"reinvocationPolicy": "Never", **more}
        entry: Object = {
            "admissionReviewVersions": ["v1"],
            "clientConfig": self.client_config(path),
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "rules": [
                {
                    "apiGroups": [group],
                    "apiVersions": [version],
                    "resources": plurals.split(","),
                    "operations": operations,
                    "scope": "*",
                }
            ],
            "sideEffects": "None",
            "timeoutSeconds": 10,
            **more,
        }
        return resource, {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": configuration},
            "webhooks": [entry],
        }


def karmada(server: WebhookServer) -> Configurations:
    """Return the registration of Karmada's own defaulting of policies.

    Without it the detector defaults policies itself, so an outage need stop nothing.
    """
    return [
        server.configuration(
            "karmada-mutating-config",
            reviews.mutate_policy,
            "/mutate-policy",
            "policy.karmada.io/v1alpha1/propagationpolicies,clusterpropagationpolicies",
            ["CREATE", "UPDATE"],
            name="propagationpolicy.karmada.io",
            failurePolicy="Ignore",
        )
    ]


def volcano_global(server: WebhookServer) -> Configurations:
    """Return the registration of Volcano Global's webhook for bindings."""
    return [
        server.configuration(
            "volcano-admission-service-resourcebindings-mutate",
            reviews.mutate_binding,
            "/resourcebindings/mutate",
            "work.karmada.io/v1alpha2/resourcebindings",
            ["CREATE"],
            name="mutateresourcebindings.volcano.sh",
            timeoutSeconds=3,
        )
    ]


def volcano(server: WebhookServer, *, queues: Informer, prefix: str = "") -> Configurations:
    """Return the registrations of Volcano's vcjob webhooks, below a path prefix."""
    return [
        server.configuration(
            "volcano-admission-service-jobs-mutate",
            reviews.mutate_job,
            f"{prefix}/jobs/mutate",
            _VCJOBS,
            ["CREATE"],
            name="mutatejob.volcano.sh",
        ),
        server.configuration(
            "volcano-admission-service-jobs-validate",
            reviews.validate_job(queues),
            f"{prefix}/jobs/validate",
            _VCJOBS,
            ["CREATE", "UPDATE"],
            resource=VALIDATING_WEBHOOKS,
            name="validatejob.volcano.sh",
        ),
    ]


async def register(kube: Kube, configurations: Configurations) -> None:
    """Create the configurations, replacing what an earlier sandbox left."""
    for resource, configuration in configurations:
        try:
            await kube.create(resource, configuration)
        except AlreadyExists:
            live = await kube.get(resource, configuration["metadata"]["name"])
            await kube.replace(resource, {**live, "webhooks": configuration["webhooks"]})


async def unregister(kube: Kube, configurations: Configurations) -> None:
    """Delete the configurations, so that no API server calls a server that is gone."""
    for resource, configuration in configurations:
        try:
            await kube.delete(resource, configuration["metadata"]["name"])
        except KubeError as error:
            log.info("%s stays: %s", configuration["metadata"]["name"], error)
