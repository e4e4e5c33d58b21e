"""The protection of /metrics, as controller-runtime offers it: HTTPS, and a right to read the path.

The API server identifies the client by its bearer token (TokenReview) and decides whether the
client may `get` the nonResourceURL /metrics (SubjectAccessReview). It is that of `KUBECONFIG`, else
that of the pod's own ServiceAccount: the one whose tokens Prometheus has, not the Karmada API
server.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from hyperjob_certs.source import FileSource
from hyperjob_certs.x509 import InvalidPair
from hyperjob_core.kube.accessreviews import AccessQuestion, AccessReviews, bearer
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import ConfigError, KubeError
from hyperjob_core.tasks import cancel
from hyperjob_core.telemetry.endpoints import Admit, Protection

log = logging.getLogger(__name__)

_LONGEST_TOKEN: Final = 16 * 1024
_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}


class ProtectionError(OSError):
    """/metrics cannot be protected; the text names the setting."""


@asynccontextmanager
async def protection(directory: Path, *, user_agent: str) -> AsyncIterator[Protection]:
    """Yield the protection with tls.crt and tls.key of a directory.

    Raises ProtectionError if the pair is unusable or no API server is known.
    """
    source = FileSource(directory / "tls.crt", directory / "tls.key")
    try:
        source.load()
    except InvalidPair as problem:
        raise ProtectionError(f"--metrics-cert-dir: {problem}") from None
    connecting = Kube.connect(user_agent=user_agent)
    try:
        kube = await connecting.__aenter__()
    except ConfigError as error:
        raise ProtectionError(f"--metrics-cert-dir: {error}") from error
    following = asyncio.create_task(source.run(), name="metrics certificate")
    try:
        async with AccessReviews(kube) as reviews:
            yield Protection(source.server_context(), admitting(reviews))
    finally:
        await cancel([following])
        await connecting.__aexit__(None, None, None)


def admitting(reviews: AccessReviews) -> Admit:
    """Return the check of a request; it raises the HTTP error of a client without the right."""

    async def admit(request: web.Request) -> None:
        token = bearer(request.headers)
        if not 0 < len(token) <= _LONGEST_TOKEN:
            raise web.HTTPUnauthorized(text="send a bearer token", headers=_CHALLENGE)
        try:
            user = await reviews.user(token)
            if user is None:
                why = "the API server does not accept the bearer token"
                raise web.HTTPUnauthorized(text=why, headers=_CHALLENGE)
            question = AccessQuestion(user, "get", path=request.path)
            if not await reviews.allows(question):
                raise web.HTTPForbidden(text=f"{user.name} may not get {request.path}")
        except KubeError as error:
            log.warning("The API server answers no review of a client of the metrics: %s", error)
            why = "the API server did not answer whether you may read the metrics"
            raise web.HTTPServiceUnavailable(text=why) from error

    return admit
