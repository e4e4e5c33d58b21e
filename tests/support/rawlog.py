"""The lines of a response as the server sends them, without the follower of logs."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from hyperjob_core.api.lines import Splitter
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.transport import LONGEST_BODY


async def raw_lines(
    kube: Kube, path: str, *, params: Mapping[str, str]
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a GET until the server ends the response."""
    splitter = Splitter(LONGEST_BODY)
    async with aclosing(kube.stream(path, params=params)) as chunks:
        async for chunk in chunks:
            for line in splitter.feed(chunk):
                yield line
    if last := splitter.rest():
        yield last
