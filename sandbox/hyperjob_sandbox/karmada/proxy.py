"""Karmada's way into its members: `clusters/NAME/proxy/…` answers what the member answers.

The aggregated API server of a real Karmada serves it; it hands requests on and decides nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from http import HTTPStatus
from urllib.parse import quote

from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError
from hyperjob.kube.resources import CLUSTERS
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream

SUBRESOURCE = (CLUSTERS.group, CLUSTERS.plural, "proxy")
_STREAMS = ("follow", "watch")


class ClusterProxy:
    """Hands requests on to members; `member` gives the client of one, None where there is none."""

    def __init__(self, member: Callable[[str], Kube | None]) -> None:
        self._member = member

    async def __call__(self, call: Call) -> Reply | Stream:
        """Answer as the member does; 404 for a cluster that never joined, 503 for a lost one."""
        info = call.info
        kube = self._member(info.name)
        if kube is None:
            raise call.not_found()
        path = "/" + quote(info.rest)
        try:
            if info.method == "GET" and any(info.flag(name) for name in _STREAMS):
                return Stream(await _opened(kube, path, info.query), "text/plain")
            response = await kube.raw(
                info.method,
                path,
                params=info.query,
                body=call.body or None,
                content_type=call.content_type or "application/json",
                accept=call.accept or "*/*",
            )
        except KubeError as error:
            raise _told(error) from None
        kind = response.headers.get("Content-Type", "application/json")
        return Reply(response.status, response.body, kind)


async def _opened(kube: Kube, path: str, query: dict[str, str]) -> AsyncIterator[bytes]:
    """Open a stream of the member; KubeError when it refuses at once."""
    opened = asyncio.Event()
    lines = kube.lines(path, params=query, opened=opened.set)
    first = asyncio.ensure_future(anext(lines, None))
    waiting = asyncio.ensure_future(opened.wait())
    try:
        await asyncio.wait((first, waiting), return_when=asyncio.FIRST_COMPLETED)
        if first.done():
            first.result()
    except BaseException:
        first.cancel()
        raise
    finally:
        waiting.cancel()
    return _rest(first, lines)


async def _rest(
    first: "asyncio.Future[bytes | None]", lines: AsyncGenerator[bytes, None]
) -> AsyncIterator[bytes]:
    """Give the lines, each with its end; a member that breaks off ends them."""
    try:
        line = await first
        while line is not None:
            yield line + b"\n"
            line = await anext(lines, None)
    except KubeError:
        return
    finally:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await lines.aclose()


def _told(error: KubeError) -> errors.ApiError:
    """Say in Karmada's place what the member said, or that it cannot be reached."""
    if error.http_code:
        return errors.ApiError({**error.status, "code": error.http_code})
    message = f"error trying to reach service: {error.message}"
    return errors.failed(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
