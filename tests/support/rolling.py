"""Replace pods one by one behind a Service's address, as the rollout of a Deployment does."""

import asyncio
import contextlib
import itertools
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.processes import free_port

_READY = b"GET /readyz HTTP/1.0\r\n\r\n"
_SECONDS = 60


class Pod:
    """A process with a probe address."""

    def __init__(self, command: Sequence[str], *, log: Path, port: int = 0) -> None:
        self.port = port
        self.log = log
        self._probe = free_port()
        self._command = [
            *command,
            f"--health-probe-bind-address=127.0.0.1:{self._probe}",
            "--metrics-bind-address=0",
        ]
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        with self.log.open("ab") as sink:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *self._command, stdout=sink, stderr=sink
            )
        await self.until(ready=True)

    async def until(self, *, ready: bool) -> None:
        """Probe the process, as the kubelet does, until it is ready or not ready."""
        assert self.process is not None
        async with asyncio.timeout(_SECONDS):
            while await self._is_ready() is not ready:
                ended = self.process.returncode is not None
                assert not (ready and ended), self.log.read_text()
                await asyncio.sleep(0.05)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; return the exit code."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(_SECONDS):
            return await self.process.wait()

    def tell(self) -> None:
        """Send SIGTERM."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)

    async def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._probe)
            try:
                writer.write(_READY)
                return b" 200 " in await reader.readuntil(b"\r\n")
            finally:
                writer.close()
        return False


class Service:
    """The address of a Service, which sends each new connection to the next endpoint."""

    def __init__(self) -> None:
        self.endpoints: list[Pod] = []
        self._turn = itertools.count()
        self._relays: set[asyncio.Task[None]] = set()
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Accept connections until the end of the block."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for relay in self._relays:
                relay.cancel()
            await asyncio.gather(*self._relays, return_exceptions=True)
            await server.wait_closed()

    async def roll(self, old: Pod, new: Pod) -> None:
        """Replace a pod: the new pod is ready before the old pod gets SIGTERM."""
        await new.start()
        self.endpoints.append(new)
        # The signal precedes the removal of the endpoint, which is possible in a cluster.
        old.tell()
        await old.until(ready=False)
        self.endpoints.remove(old)
        assert await old.end() == 0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._relays.add(task)
        task.add_done_callback(self._relays.discard)
        pod = self.endpoints[next(self._turn) % len(self.endpoints)]
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", pod.port)
        except OSError:
            writer.transport.abort()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(reader, far_writer))
            group.create_task(_pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
