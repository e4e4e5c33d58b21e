"""The client of `host.py`, which starts, signals and awaits containers."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from hyperjob_sandbox.processes.volumes import Mount

LOG_LIMIT: Final = 10 << 20
"""Size of one half of a container's log, in bytes."""
_ANSWER_SECONDS: Final = 60.0
_END_SECONDS: Final = 15.0


class RefusedError(Exception):
    """A process could not be started; `code` is the exit code of a shell for this error."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class HostGoneError(OSError):
    """The parent of all containers has ended, and all containers with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to run: `path` is its search path, `memory` its limit in bytes."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    path: str
    log: Path
    scratch: Path
    hostname: str = ""
    """The process has its own mounts and host name if this is set."""
    mounts: Sequence[Mount] = ()
    memory: int | None = None


@dataclass(slots=True)
class Process:
    """A process; `exited` is its exit code, 128 + n after signal n."""

    name: str
    host: "ProcessHost"
    exited: "asyncio.Future[int]"

    def signal(self, number: int) -> None:
        """Send a signal to the whole process group."""
        if not self.exited.done():
            self.host.tell(op="signal", id=self.name, signal=number)

    async def kill(self) -> None:
        """Kill the whole process group, and wait until its last process has ended."""
        self.signal(signal.SIGKILL)
        await asyncio.wait((self.exited,))


@dataclass(slots=True)
class ProcessHost:
    """The parent of all container processes, an async context manager."""

    permitted: bool = False
    """Whether this machine permits a process its own mounts."""
    why_not: str = ""
    _process: "asyncio.subprocess.Process | None" = None
    _reader: "asyncio.Task[None] | None" = None
    _starting: "dict[str, asyncio.Future[None]]" = field(default_factory=dict)
    _running: dict[str, Process] = field(default_factory=dict)
    _asked: "asyncio.Future[None] | None" = None
    _number: int = 0

    async def __aenter__(self) -> Self:
        program = Path(__file__).with_name("host.py")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            os.fspath(program),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )
        self._reader = asyncio.create_task(self._read(), name="process-host")
        self._asked = asyncio.get_running_loop().create_future()
        self.tell(op="namespaces")
        async with asyncio.timeout(_ANSWER_SECONDS):
            await self._asked
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        assert self._reader is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def start(self, name: str, command: Command) -> Process:
        """Start a process under a name; raises RefusedError, HostGoneError."""
        self._number += 1
        unique = f"{name}#{self._number}"
        loop = asyncio.get_running_loop()
        starting = self._starting[unique] = loop.create_future()
        process = self._running[unique] = Process(unique, self, loop.create_future())
        # The future of a process may be cancelled before the process ends.
        process.exited.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.tell(
            op="start",
            id=unique,
            argv=list(command.argv),
            env=dict(command.env),
            cwd=command.cwd,
            path=command.path,
            log=os.fspath(command.log),
            log_limit=LOG_LIMIT,
            memory=command.memory,
            scratch=os.fspath(command.scratch),
            hostname=command.hostname,
            mounts=[[os.fspath(m.source), m.target, m.read_only] for m in command.mounts],
        )
        try:
            await starting
        except asyncio.CancelledError:
            await process.kill()
            raise
        finally:
            self._starting.pop(unique, None)
        return process

    def tell(self, **command: object) -> None:
        """Send one command."""
        if self._process is None or self._process.stdin is None or self._process.stdin.is_closing():
            raise HostGoneError("the process host has ended")
        self._process.stdin.write(json.dumps(command).encode() + b"\n")

    async def failure(self) -> None:
        """Wait until the host ends unexpectedly, and raise HostGoneError."""
        assert self._reader is not None
        await asyncio.wait((self._reader,))
        raise HostGoneError("the process host has ended, and all containers with it")

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._take(json.loads(line))
        gone = HostGoneError("the process host has ended")
        for starting in self._starting.values():
            if not starting.done():
                starting.set_exception(gone)
        for process in self._running.values():
            if not process.exited.done():
                process.exited.set_exception(gone)

    def _take(self, event: dict[str, object]) -> None:
        name = str(event.get("id", ""))
        match event["event"]:
            case "namespaces":
                self.permitted, self.why_not = bool(event["permitted"]), str(event["error"])
                if self._asked is not None and not self._asked.done():
                    self._asked.set_result(None)
            case "started":
                if (starting := self._starting.get(name)) is not None and not starting.done():
                    starting.set_result(None)
            case "refused":
                refused = self._running.pop(name, None)
                if refused is not None and not refused.exited.done():
                    refused.exited.set_result(int(str(event["code"])))
                if (starting := self._starting.get(name)) is not None and not starting.done():
                    starting.set_exception(
                        RefusedError(str(event["error"]), int(str(event["code"])))
                    )
            case "exited":
                process = self._running.pop(name, None)
                if process is not None and not process.exited.done():
                    process.exited.set_result(int(str(event["code"])))
