"""Temporary folders for private keys; every end of a command removes them, signals included."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command beside SIGINT; asyncio replaces their handlers while a loop runs."""


@contextmanager
def folder(given: Path | None, *, prefix: str) -> Iterator[Path]:
    """Yield the folder `given`, or else a temporary folder that is removed at the end."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    for number in ENDING:
        signal.signal(number, _exit_by_signal)
    where = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield where
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        shutil.rmtree(where, ignore_errors=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def _exit_by_signal(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)
