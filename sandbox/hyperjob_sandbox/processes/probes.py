"""Probes and life-cycle handlers of containers: exec, httpGet, tcpSocket, sleep."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp

from hyperjob_core.api.meta import Object

Exec = Callable[[Sequence[str]], Awaitable[int]]
"""Runs a command beside a container and returns its exit code."""
_PERIOD: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe with defaults; times in seconds."""

    handler: Object
    delay: float
    period: float
    timeout: float
    successes: int
    failures: int

    @classmethod
    def of(cls, spec: Object) -> "Probe":
        """Parse a probe of a container."""
        return cls(
            handler=spec,
            delay=float(spec.get("initialDelaySeconds") or 0),
            period=float(spec.get("periodSeconds") or _PERIOD),
            timeout=float(spec.get("timeoutSeconds") or 1),
            successes=int(spec.get("successThreshold") or 1),
            failures=int(spec.get("failureThreshold") or 3),
        )


async def watch(
    probe: Probe,
    container: Object,
    *,
    address: str,
    run: Exec,
    told: Callable[[bool], None],
    failed: Callable[[str], None],
) -> None:
    """Probe until cancelled; `told` gets the first result and each change of the result.

    `failed` gets the reason of each probe that fails.
    """
    await asyncio.sleep(probe.delay)
    verdict: bool | None = None
    row, last = 0, None
    while True:
        failure = await attempt(
            probe.handler, container, address=address, run=run, timeout=probe.timeout
        )
        passed = not failure
        if failure:
            failed(failure)
        row = row + 1 if passed is last else 1
        last = passed
        if row >= (probe.successes if passed else probe.failures) and passed is not verdict:
            verdict = passed
            told(passed)
        await asyncio.sleep(probe.period)


async def attempt(
    handler: Object, container: Object, *, address: str, run: Exec, timeout: float
) -> str:
    """Run a handler once; return why it failed, "" for a success."""
    try:
        async with asyncio.timeout(timeout):
            return await _attempt(handler, container, address, run)
    except TimeoutError:
        return f"timed out after {timeout:g}s"
    except (OSError, aiohttp.ClientError) as error:
        return str(error)


async def _attempt(handler: Object, container: Object, address: str, run: Exec) -> str:
    match handler:
        case {"exec": {"command": command}}:
            code = await run(command)
            return f"command exited with {code}" if code else ""
        case {"httpGet": http}:
            port = _port(http["port"], container)
            scheme = str(http.get("scheme") or "HTTP").lower()
            path = str(http.get("path") or "/").lstrip("/")
            url = f"{scheme}://{http.get('host') or address}:{port}/{path}"
            headers = {each["name"]: each["value"] for each in http.get("httpHeaders") or ()}
            # A kubelet does not verify the certificates of probes.
            async with (
                aiohttp.ClientSession() as session,
                session.get(url, headers=headers, ssl=False, allow_redirects=False) as reply,
            ):
                if 200 <= reply.status < 400:
                    return ""
                return f"HTTP probe failed with statuscode: {reply.status}"
        case {"tcpSocket": tcp}:
            _, writer = await asyncio.open_connection(
                tcp.get("host") or address, _port(tcp["port"], container)
            )
            writer.close()
        case {"sleep": {"seconds": seconds}}:
            await asyncio.sleep(float(seconds))
    return ""


def _port(port: int | str, container: Object) -> int:
    if isinstance(port, int):
        return port
    for each in container.get("ports") or ():
        if each.get("name") == port:
            return int(each["containerPort"])
    return int(port) if port.isdecimal() else 0
