"""The command `hyperjob-controller`: it reads the options and runs until SIGTERM or SIGINT.

An expected error ends it with a message of one line. Exit codes: 0 stopped, 1 error, 2 wrong usage.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from asyncio.sslproto import SSLProtocol
from collections.abc import Iterator, Sequence
from typing import Final

from hyperjob_controller import process
from hyperjob_controller.options import Options, parse
from hyperjob_core.garbage import collect_rarely
from hyperjob_core.kube.errors import ConfigError
from hyperjob_core.kube.informer import RestoredError
from hyperjob_core.kube.leaderelection import LeadershipLostError
from hyperjob_core.telemetry import logs
from hyperjob_engine.devices import add_rows, parse_rows

log = logging.getLogger("hyperjob_controller")
_TLS_BUFFER: Final = 2**16
"""The bytes that asyncio allocates for each TLS connection, 256 KiB by default.

A quarter of the controller's memory beside a hundred members; a TLS record has at most 16 KiB.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller and return the exit code."""
    options = parse(arguments)
    add_rows(parse_rows(options.devices))
    logs.setup(format=options.log_format, level=options.log_level)
    collect_rarely()
    SSLProtocol.max_size = _TLS_BUFFER  # of this process alone: programs import the client too
    try:
        asyncio.run(_until_stopped(options))
    except BaseException as error:
        reasons = [_known(leaf) for leaf in _leaves(error)]
        if not all(reasons):
            raise
        for reason, leaf in zip(reasons, _leaves(error), strict=True):
            log.error(reason, extra={"error": str(leaf)})  # noqa: TRY400 - the operator's error
        return 1
    return 0


async def _until_stopped(options: Options) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    run = asyncio.create_task(process.run(options))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({run, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not run.done():
            log.info("Stopping")
            run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run
    finally:
        stopping.cancel()


def _known(error: BaseException) -> str:
    """Return the message of an error that the operator can correct; empty for a bug."""
    if isinstance(error, ConfigError):
        return "Cannot reach the API server"
    if isinstance(error, RestoredError):
        return "The API server was put back from a backup; start again"
    if isinstance(error, LeadershipLostError):
        return "Lost the lease; start again"
    return "Cannot start" if isinstance(error, OSError) else ""


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


if __name__ == "__main__":
    sys.exit(main())
