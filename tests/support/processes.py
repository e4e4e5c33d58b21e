"""Child processes of tests: started on a free port, awaited until ready, always ended."""

import contextlib
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def free_port() -> int:
    """Return a port of the loopback interface that was free a moment ago.

    The port is below the range of ephemeral ports, which a connection could take meanwhile.
    """
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def ran(
    *command: str | Path, timeout: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and keep what it writes as text."""
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)


@contextlib.contextmanager
def running(
    command: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command for the length of the block, its output in `log`."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [str(word) for word in command], stdout=out, stderr=subprocess.STDOUT, env=env
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(stop_signal)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def wait_for(
    ready: Callable[[], object],
    *,
    what: str,
    process: subprocess.Popen[bytes] | None = None,
    log: Path | None = None,
    timeout: float = 60,
) -> None:
    """Poll a condition of another process until it holds; fail with the log of that process."""
    deadline = time.monotonic() + timeout
    while True:
        if ready():
            return
        exited = process is not None and process.poll() is not None
        if exited or time.monotonic() > deadline:
            tail = log.read_text(errors="replace")[-4000:] if log and log.exists() else ""
            why = "ended" if exited else f"was not there within {timeout:.0f} s"
            raise AssertionError(f"{what} {why}\n{tail}")
        time.sleep(0.05)
