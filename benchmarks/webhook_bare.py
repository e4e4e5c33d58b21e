"""The baseline: a minimal aiohttp handler of AdmissionReviews, over TLS.

The handler parses the body, returns the uid and allows. It has no checks, metrics or logs.
"""

import asyncio
import ssl
import sys

import orjson
from aiohttp import web


async def allow(request: web.BaseRequest) -> web.Response:
    review = orjson.loads(await request.read())
    answer = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": True},
    }
    return web.Response(body=orjson.dumps(answer), content_type="application/json")


async def main(kind: str, certificate: str, key: str) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    runner: web.AppRunner | web.ServerRunner
    if kind == "application":
        app = web.Application(client_max_size=7 * 1024 * 1024)
        app.router.add_post("/{path:.*}", allow)
        runner = web.AppRunner(app, access_log=None)
    else:
        runner = web.ServerRunner(web.Server(allow, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
