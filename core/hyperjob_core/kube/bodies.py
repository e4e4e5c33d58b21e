"""The bodies of responses, which end at a bound: a peer may send without end."""

import aiohttp

from hyperjob_core.kube.transport import LONGEST_BODY


async def read_body(response: aiohttp.ClientResponse, *, most: int = LONGEST_BODY) -> bytes | None:
    """Return the whole body after its decompression; None for one of more than `most` bytes.

    The connection of a longer body is closed, and no more of it is read.
    """
    parts, size = list[bytes](), 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            hang_up(response)
            return None
        parts.append(part)
    return b"".join(parts)


def hang_up(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of a response that has not ended.

    A clean close would wait for the server for up to half a minute, maybe beyond the end of the
    event loop.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
