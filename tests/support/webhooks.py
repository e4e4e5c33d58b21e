"""Webhooks on one HTTPS port, with answers set by a test and a record of reviews."""

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import trustme
from aiohttp import web

from hyperjob_core.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME

RULE = {
    "apiGroups": ["conf.example.dev"],
    "apiVersions": ["v1"],
    "resources": ["gadgets"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
}


async def trusted_by(kube):
    """Return the authorities that an API server trusts for HyperJob's webhooks."""
    return {
        base64.b64decode(hook["clientConfig"].get("caBundle", ""))
        for resource, name in (
            (MUTATING_WEBHOOKS, MUTATING_NAME),
            (VALIDATING_WEBHOOKS, VALIDATING_NAME),
        )
        for hook in (await kube.get(resource, name))["webhooks"]
    }


def review(**fields):
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", **fields}


def answered(uid, **response):
    return web.json_response(review(response={"uid": uid, "allowed": True, **response}))


class Webhooks:
    """Webhooks on one HTTPS port: each path has an answer set by its test and records reviews."""

    def __init__(self):
        self.answers = {}
        self.reviews = []
        self.headers = []
        self.connections = set()
        self.authority = trustme.CA()
        self.url = ""
        self.port = 0

    def answer(self, path, **response):
        async def handler(request, uid):
            return answered(uid, **response)

        self.answers[path] = handler

    def patch(self, path, make):
        async def handler(request, uid):
            ops = make(self.reviews[-1][1]["object"])
            if not ops:
                return answered(uid)
            patch = base64.b64encode(orjson.dumps(ops)).decode()
            return answered(uid, patchType="JSONPatch", patch=patch)

        self.answers[path] = handler

    def raw(self, path, handler):
        self.answers[path] = handler

    def seen(self, path):
        return [request for found, request in self.reviews if found == path]

    async def handle(self, request):
        self.connections.add(request.transport.get_extra_info("peername"))
        self.headers.append((dict(request.headers), request.query_string))
        review = orjson.loads(await request.read())["request"]
        self.reviews.append((request.path, review))
        return await self.answers[request.path](request, review["uid"])

    def config(self, name, *paths, ca=None, url=None, **fields):
        ca = self.authority.cert_pem.bytes() if ca is None else ca
        return {
            "metadata": {"name": name},
            "webhooks": [
                {
                    "name": f"{path.strip('/')}.{name}.dev",
                    "clientConfig": {
                        "url": (url or self.url) + path,
                        "caBundle": base64.b64encode(ca).decode(),
                    },
                    "rules": [RULE],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "timeoutSeconds": 5,
                    **fields,
                }
                for path in paths
            ],
        }


@asynccontextmanager
async def running() -> AsyncIterator[Webhooks]:
    hooks = Webhooks()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    hooks.authority.issue_cert("127.0.0.1", "hooks.system.svc").configure_cert(context)
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", hooks.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    hooks.port = runner.addresses[0][1]
    hooks.url = f"https://127.0.0.1:{hooks.port}"
    try:
        yield hooks
    finally:
        await runner.cleanup()
